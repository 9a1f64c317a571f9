//! The tags on a scene's sheet, and how far it may have moved.

use super::Surface;
use super::file::{FiducialsFile, TagFile};
use super::scene_fault::SceneFault;
use base::plane::distance;
use base::units::{Finite, OutOfRange};
use vision::{SheetTag, TAGS_MAX, TagLayout};

/// Range of tag sizes: a camera cannot read smaller ones, and larger ones leave no room to draw.
const SIZE_MM: [f64; 2] = [4.0, 300.0];

/// Range of the offset that a scene may allow, in mm and degrees: less is noise, more is another
/// place.
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

/// Checks the tags of a scene file.
///
/// # Errors
/// The first problem found.
pub(super) fn check(file: &FiducialsFile, surface: &Surface) -> Result<SheetFiducials, SceneFault> {
    if !surface.is_flat() {
        return Err(SceneFault::TagsOnCurvedSheet);
    }
    if !(1..=TAGS_MAX).contains(&file.tags.len()) {
        return Err(SceneFault::TagCount(file.tags.len()));
    }
    let mut tags: Vec<SheetTag> = Vec::with_capacity(file.tags.len());
    for tag_file in &file.tags {
        let tag = tag(tag_file, file, surface)?;
        if let Some(other) = tags.iter().find(|other| !are_separate(other, &tag)) {
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

fn tag(file: &TagFile, tags: &FiducialsFile, surface: &Surface) -> Result<SheetTag, SceneFault> {
    let id = file.id;
    if id >= tags.family.count() {
        return Err(SceneFault::NoTag {
            id,
            family: tags.family,
        });
    }
    let tag = SheetTag {
        id,
        at_mm: file.at_mm.map(Finite::get),
        size_mm: within(&format!("tag {id}: size_mm"), file.size_mm, SIZE_MM)?,
        turn_deg: file.turn_deg.get(),
    };
    let is_on = |at_mm: &[f64; 2]| surface.holds(*at_mm);
    if !tag.edge_mm(tags.family).iter().all(is_on) {
        return Err(SceneFault::TagBeyondSheet {
            id,
            sheet_mm: surface.size_mm(),
        });
    }
    Ok(tag)
}

/// Returns whether two tags are different tags in different places.
fn are_separate(a: &SheetTag, b: &SheetTag) -> bool {
    let min_distance_mm = f64::midpoint(a.size_mm, b.size_mm);
    distance(a.at_mm, b.at_mm) >= min_distance_mm && a.id != b.id
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

    fn check_text(text: &str) -> Result<SheetFiducials, String> {
        let file: FiducialsFile = toml::from_str(text).map_err(|error| error.to_string())?;
        let scene = SceneLibrary::default().scene("default", None).unwrap();
        check(&file, &scene.surface).map_err(|fault| fault.to_string())
    }

    #[test]
    fn problems_of_tags_are_reported() {
        let one = format!("family = \"36h11\"\n[[tags]]\n{TAG}\n");
        let good = check_text(&one).unwrap();
        assert!(!good.required && (good.moved_mm_max - 2.0).abs() < 1e-9);
        for (old, new, expected) in [
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
            let message = check_text(&one.replace(old, new)).unwrap_err();
            assert!(message.contains(expected), "{new}: {message}");
        }
        let refusal = |text: &str| check_text(text).unwrap_err();
        let twice = format!("{one}[[tags]]\n{}", TAG.replace("20.0", "60.0"));
        assert!(refusal(&twice).contains("or have the same id"));
        let above = format!(
            "{one}[[tags]]\n{}",
            TAG.replace("id = 3", "id = 4").replace("20.0", "25.0")
        );
        assert!(refusal(&above).contains("overlap"));
        let no_tags = refusal("family = \"16h5\"\ntags = []");
        assert!(no_tags.contains("0 tags"));
    }

    #[test]
    fn a_flat_sheet_lies_where_its_corner_is() {
        let scene = SceneLibrary::default().scene("tagged", None).unwrap();
        let pose = scene.surface.flat_pose().unwrap();
        let at = pose * nalgebra::Point3::new(0.02, 0.07, 0.001);
        let projection = scene.surface.project(&at);
        let error_mm = (projection.at_mm[0] - 20.0).hypot(projection.at_mm[1] - 70.0);
        assert!(
            error_mm < 1e-9 && (projection.height_mm - 1.0).abs() < 1e-9,
            "{projection:?}"
        );
        let bottle = SceneLibrary::default().scene("bottle", None).unwrap();
        assert!(bottle.surface.flat_pose().is_none());
    }
}
