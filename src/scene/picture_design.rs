//! Draws a picture made of pixels as the lines that a scene asks for.

use std::sync::{Arc, Mutex};

use super::SceneError;
use super::canvas::PictureBounds;
use super::file::{DesignFile, PenFile, PictureStyle};
use super::library::{DesignSheet, SceneLibrary, SizedDesign};
use super::scene_fault::SceneFault;
use base::lock::MutexExt;
use base::units::OutOfRange;
use config::toml::FileError;
use design::{Design, DesignCaps, DesignError, LineOptions, LineStyle, PixelPicture};

/// Share of the ink that a style can put down, in percent.
pub const INK_PERCENT: std::ops::RangeInclusive<f64> = 5.0..=100.0;

/// Most times that a picture is thinned until it is within the bounds of a canvas.
const THINNINGS_MAX: usize = 8;

/// Least share of the ink that one thinning leaves.
const THINNING_MIN: f64 = 0.3;

/// The last picture that became lines. What was shown is drawn next, and both build its scene: the lines are traced once.
#[derive(Clone, Debug, Default)]
pub(super) struct PictureMemory(Arc<Mutex<Option<TracedPicture>>>);

/// A picture's lines, with all that they depend on.
#[derive(Clone, Debug)]
struct TracedPicture {
    hash: blake3::Hash,
    /// Its frame, which has the size of the picture.
    frame: Design,
    options: LineOptions,
    bounds: Option<PictureBounds>,
    lines: Arc<Design>,
}

impl PictureMemory {
    fn of(&self, hash: blake3::Hash) -> Option<TracedPicture> {
        self.0.locked().clone().filter(|last| last.hash == hash)
    }

    fn keep(&self, picture: TracedPicture) {
        *self.0.locked() = Some(picture);
    }
}

impl PictureStyle {
    /// Returns the style's name in files and options.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Centreline => "centreline",
            Self::Outline => "outline",
            Self::Hatch => "hatch",
            Self::Squiggle => "squiggle",
            Self::Stipple => "stipple",
            Self::Spiral => "spiral",
        }
    }

    /// Returns whether less ink draws the picture with fewer lines; others draw all that they find.
    #[must_use]
    pub const fn keeps_tones(self) -> bool {
        self.line_style().keeps_tones()
    }

    const fn line_style(self) -> LineStyle {
        match self {
            Self::Centreline => LineStyle::Centreline,
            Self::Outline => LineStyle::Outline,
            Self::Hatch => LineStyle::Hatch,
            Self::Squiggle => LineStyle::Squiggle,
            Self::Stipple => LineStyle::Stipple,
            Self::Spiral => LineStyle::Spiral,
        }
    }
}

impl SceneLibrary {
    /// Draws a picture made of pixels in the size that its frame gets; `None` if the file is none.
    pub(super) fn picture_design(
        &self,
        [scene, name]: [&str; 2],
        files: &[(&str, &[u8])],
        file: &mut DesignFile,
        pens: &[PenFile],
        sheet: DesignSheet,
    ) -> Result<Option<SizedDesign>, SceneError> {
        let wrap = |source| SceneError::Design {
            file: format!("{scene}: design {name}"),
            source,
        };
        let invalid = |problem: String| FileError::single(scene, problem);
        let source = match files {
            [(_, bytes)] => self.picture_source(bytes).map_err(wrap)?,
            _ => None,
        };
        let Some(source) = source else {
            check_unused(file).map_err(|fault| invalid(fault.to_string()))?;
            return Ok(None);
        };
        let frame = self.sized(file, source.frame.clone(), sheet);
        let own_mm = frame.design.page_mm.into_iter().fold(0.0, f64::max);
        let growth = self
            .copies()
            .map_or(1.0, |copies| copies.growth(frame.design.page_mm));
        let long_mm = file.size_mm.map_or(own_mm, |all_mm| all_mm.get() / growth);
        let options = line_options(file, pens, long_mm);
        let options = options.map_err(|fault| invalid(fault.to_string()))?;
        let bounds = self.is_of_caller.then(|| PictureBounds::of(file));
        let lines = self.lines(source, options, bounds).map_err(wrap)?;
        let mut design = Design::clone(&lines);
        design.notes.extend(style_note(file));
        design.notes.extend(frame.design.notes);
        Ok(Some(SizedDesign {
            design,
            box_mm: None,
            from: frame.from,
        }))
    }

    /// Returns a picture from its bytes, decoded unless it was the last one; `None` if they are none.
    fn picture_source<'b>(
        &self,
        bytes: &'b [u8],
    ) -> Result<Option<PictureSource<'b>>, DesignError> {
        let hash = blake3::hash(bytes);
        if let Some(last) = self.pictures.of(hash) {
            return Ok(Some(PictureSource {
                frame: last.frame.clone(),
                hash,
                bytes,
                decoded: None,
                last: Some(last),
            }));
        }
        let decoded = PixelPicture::read(bytes, &DesignCaps::default())?;
        Ok(decoded.map(|picture| PictureSource {
            frame: picture.frame(),
            hash,
            bytes,
            decoded: Some(picture),
            last: None,
        }))
    }

    /// Returns the lines of a picture, traced unless the last ones are the same.
    fn lines(
        &self,
        source: PictureSource<'_>,
        options: LineOptions,
        bounds: Option<PictureBounds>,
    ) -> Result<Arc<Design>, DesignError> {
        if let Some(last) = source.last.as_ref()
            && (last.options, last.bounds) == (options, bounds)
        {
            return Ok(Arc::clone(&last.lines));
        }
        let caps = DesignCaps::default();
        let picture = match source.decoded {
            Some(picture) => picture,
            None => PixelPicture::read(source.bytes, &caps)?.ok_or(DesignError::Empty {
                hint: "save the picture again",
            })?,
        };
        let lines = match bounds {
            Some(bounds) => thinned(&picture, options, bounds, &caps)?,
            None => picture.drawn(&options, &caps)?,
        };
        let lines = Arc::new(lines);
        self.pictures.keep(TracedPicture {
            hash: source.hash,
            frame: source.frame,
            options,
            bounds,
            lines: Arc::clone(&lines),
        });
        Ok(lines)
    }
}

/// A picture as it comes, and what is known of it.
struct PictureSource<'b> {
    hash: blake3::Hash,
    bytes: &'b [u8],
    frame: Design,
    decoded: Option<PixelPicture>,
    last: Option<TracedPicture>,
}

/// Draws a picture with as much of the ink that was asked for as the bounds of a canvas allow.
fn thinned(
    picture: &PixelPicture,
    mut options: LineOptions,
    bounds: PictureBounds,
    caps: &DesignCaps,
) -> Result<Design, DesignError> {
    let asked = options.ink;
    let least = *INK_PERCENT.start() / 100.0;
    let mut design = picture.drawn(&options, caps)?;
    for _ in 0..THINNINGS_MAX {
        let beyond = bounds.share(&design);
        if beyond <= 1.0 || !options.style.keeps_tones() || options.ink <= least {
            break;
        }
        options.ink = (options.ink * (0.95 / beyond).max(THINNING_MIN)).max(least);
        design = picture.drawn(&options, caps)?;
    }
    design.notes.extend((options.ink < asked).then(|| {
        let percent = 100.0 * options.ink;
        format!("drawn with {percent:.0} % of the ink, so that it stays within the canvas's limits")
    }));
    Ok(design)
}

/// Returns how a picture is drawn whose longer side is `long_mm` on the sheet: with the scene's first pen.
///
/// # Errors
/// A value out of range, with its key and the range.
fn line_options(
    file: &DesignFile,
    pens: &[PenFile],
    long_mm: f64,
) -> Result<LineOptions, OutOfRange> {
    let ink_percent = match file.ink_percent {
        Some(stated) => {
            OutOfRange::check(|| "design.ink_percent".to_owned(), stated, &INK_PERCENT)?
        }
        None => *INK_PERCENT.end(),
    };
    Ok(LineOptions {
        style: file.style.unwrap_or_default().line_style(),
        long_mm,
        pen_mm: pens.first().map_or(0.5, |pen| pen.width_mm.get()),
        ink: ink_percent / 100.0,
    })
}

/// Returns the note on a style that was not asked for.
fn style_note(file: &DesignFile) -> Option<String> {
    file.style.is_none().then(|| {
        let style = PictureStyle::default().word();
        format!("the picture is drawn as {style}; other styles: centreline, outline, squiggle, stipple, spiral")
    })
}

/// Refuses a style for designs that are no pictures.
///
/// # Errors
/// The key, and what it requires.
fn check_unused(file: &DesignFile) -> Result<(), SceneFault> {
    match file.style.is_some() || file.ink_percent.is_some() {
        true => Err(SceneFault::NoPicture),
        false => Ok(()),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::super::DesignReplacement;
    use super::*;
    use base::units::Finite;

    const SHADES: &[u8] = include_bytes!("../../tests/pictures/shades.png");

    fn lines_after(library: &SceneLibrary, change: impl Fn(&mut DesignReplacement)) -> Arc<Design> {
        let files = vec![("shades.png".to_owned(), SHADES.to_vec())];
        let mut drawing = DesignReplacement::from_files(files);
        change(&mut drawing);
        let scene = library.with_drawing(drawing).scene("default", None);
        assert!(!scene.unwrap().strokes.is_empty());
        Arc::clone(&library.pictures.0.locked().as_ref().unwrap().lines)
    }

    #[test]
    fn a_picture_is_traced_once_to_be_shown_and_drawn() {
        let library = SceneLibrary::new(None);
        let shown = lines_after(&library, |_| {});
        let drawn = lines_after(&library, |_| {});
        assert!(Arc::ptr_eq(&shown, &drawn));
        let turned = lines_after(&library, |drawing| {
            drawing.placement.at_mm = Some([Finite::literal(0.0), Finite::literal(0.0)]);
            drawing.placement.size_mm = Some(Finite::literal(30.0));
        });
        assert!(!Arc::ptr_eq(&shown, &turned));
        let spiral = lines_after(&library, |drawing| {
            drawing.style = Some(PictureStyle::Spiral);
        });
        assert!(!Arc::ptr_eq(&turned, &spiral));
    }
}
