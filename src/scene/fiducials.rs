//! The tags on a scene's sheet, and how far it may have moved.

use super::Surface;
use super::file::{FiducialsFile, TagFile};
use super::scene_fault::SceneFault;
use base::plane::distance;
use base::units::{Finite, OutOfRange};
use vision::{SheetTag, TAGS_MAX, TagLayout};

/// A camera reads none that are smaller, and larger ones leave no room to draw.
const SIZE_MM: [f64; 2] = [4.0, 300.0];

/// Range of the offset that a scene may allow, in mm and degrees: less is noise, more is a different place.
const MOVED_MM: [f64; 2] = [0.2, 20.0];
const MOVED_DEG: [f64; 2] = [0.2, 10.0];

/// Tags on a sheet.
#[derive(Clone, Debug, PartialEq)]
pub struct SheetFiducials {
    /// The tags and their places.
    pub layout: TagLayout,
    /// Largest offset of any corner of the sheet since it was taught, in mm.
    pub moved_mm_max: f64,
    /// Largest rotation of the sheet since it was taught, in degrees.
    pub moved_deg_max: f64,
    /// True if a camera must see the sheet before anything moves over it.
    pub required: bool,
}

/// # Errors
/// The first thing that is wrong.
pub(super) fn check(file: &FiducialsFile, surface: &Surface) -> Result<SheetFiducials, SceneFault> {
    if !surface.is_flat() {
        return Err(SceneFault::TagsOnCurvedSheet);
    }
    if !(1..=TAGS_MAX).contains(&file.tags.len()) {
        return Err(SceneFault::TagCount(file.tags.len()));
    }
    let mut tags: Vec<SheetTag> = Vec::with_capacity(file.tags.len());
    for said in &file.tags {
        let tag = tag(said, file, surface)?;
        if let Some(other) = tags.iter().find(|other| !are_apart(other, &tag)) {
            return Err(SceneFault::TagsOverlap([other.id, tag.id]));
        }
        tags.push(tag);
    }
    Ok(SheetFiducials {
        layout: TagLayout {
            family: file.family,
            tags,
        },
        moved_mm_max: within("moved_mm_max", file.moved_mm_max, MOVED_MM)?,
        moved_deg_max: within("moved_deg_max", file.moved_deg_max, MOVED_DEG)?,
        required: file.required,
    })
}

fn tag(said: &TagFile, file: &FiducialsFile, surface: &Surface) -> Result<SheetTag, SceneFault> {
    let id = said.id;
    if id >= file.family.count() {
        return Err(SceneFault::NoTag {
            id,
            family: file.family,
        });
    }
    let tag = SheetTag {
        id,
        at_mm: said.at_mm.map(Finite::get),
        size_mm: within(&format!("tag {id}: size_mm"), said.size_mm, SIZE_MM)?,
        turn_deg: said.turn_deg.get(),
    };
    let is_on = |at_mm: &[f64; 2]| surface.holds(*at_mm);
    if !tag.edge_mm(file.family).iter().all(is_on) {
        return Err(SceneFault::TagBeyondSheet {
            id,
            sheet_mm: surface.size_mm(),
        });
    }
    Ok(tag)
}

/// Returns whether two tags are different tags in different places.
fn are_apart(one: &SheetTag, other: &SheetTag) -> bool {
    let reach_mm = f64::midpoint(one.size_mm, other.size_mm);
    distance(one.at_mm, other.at_mm) >= reach_mm && one.id != other.id
}

fn within(what: &str, value: Finite, [least, most]: [f64; 2]) -> Result<f64, OutOfRange> {
    OutOfRange::check(|| format!("fiducials: {what}"), value, &(least..=most))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use crate::SceneLibrary;

    const TAG: &str = "id = 3\nat_mm = [20.0, 30.0]\nsize_mm = 14.0";

    fn checked(text: &str) -> Result<SheetFiducials, String> {
        let file: FiducialsFile = toml::from_str(text).map_err(|error| error.to_string())?;
        let scene = SceneLibrary::default().scene("default", None).unwrap();
        check(&file, &scene.surface).map_err(|fault| fault.to_string())
    }

    #[test]
    fn what_is_wrong_with_tags_is_said() {
        let one = format!("family = \"36h11\"\n[[tags]]\n{TAG}\n");
        let good = checked(&one).unwrap();
        assert!(!good.required && (good.moved_mm_max - 2.0).abs() < 1e-9);
        for (old, new, said) in [
            ("id = 3", "id = 587", "ids are 0 to 586"),
            ("20.0, 30.0", "5.0, 30.0", "reaches beyond the sheet"),
            ("size_mm = 14.0", "size_mm = 1.0", "tag 3: size_mm is 1"),
            ("36h11", "25h9", "25h9"),
            (
                "[[tags]]",
                "moved_mm_max = 50\n[[tags]]",
                "moved_mm_max is 50",
            ),
            ("[[tags]]", "moved_mm = 1\n[[tags]]", "unknown field"),
        ] {
            let told = checked(&one.replace(old, new)).unwrap_err();
            assert!(told.contains(said), "{new}: {told}");
        }
        let twice = format!("{one}[[tags]]\n{}", TAG.replace("20.0", "60.0"));
        assert!(checked(&twice).unwrap_err().contains("or are one"));
        let above = format!(
            "{one}[[tags]]\n{}",
            TAG.replace("id = 3", "id = 4").replace("20.0", "25.0")
        );
        assert!(checked(&above).unwrap_err().contains("lie on each other"));
        assert!(
            checked("family = \"16h5\"\ntags = []")
                .unwrap_err()
                .contains("0 tags")
        );
    }

    #[test]
    fn a_flat_sheet_lies_where_its_corner_is() {
        let scene = SceneLibrary::default().scene("tagged", None).unwrap();
        let lies = scene.surface.flat_pose().unwrap();
        let at = lies * nalgebra::Point3::new(0.02, 0.07, 0.001);
        let seen = scene.surface.project(&at);
        let off = (seen.at_mm[0] - 20.0).hypot(seen.at_mm[1] - 70.0);
        assert!(
            off < 1e-9 && (seen.height_mm - 1.0).abs() < 1e-9,
            "{seen:?}"
        );
        let bottle = SceneLibrary::default().scene("bottle", None).unwrap();
        assert!(bottle.surface.flat_pose().is_none());
    }
}
