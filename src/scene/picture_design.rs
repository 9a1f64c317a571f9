//! Draws a picture made of pixels as the lines that a scene asks for.

use super::SceneError;
use super::file::{DesignFile, PenFile, PictureStyle};
use super::library::{DesignSheet, SceneLibrary, SizedDesign};
use super::scene_fault::SceneFault;
use base::units::{Finite, OutOfRange};
use config::toml::FileError;
use design::{DesignCaps, LineOptions, LineStyle, PixelPicture};

/// Share of the ink that a style can put down, in percent.
const INK_PERCENT: std::ops::RangeInclusive<f64> = 5.0..=100.0;

impl PictureStyle {
    /// Returns the style's name in files and options.
    const fn word(self) -> &'static str {
        match self {
            Self::Centreline => "centreline",
            Self::Outline => "outline",
            Self::Hatch => "hatch",
            Self::Squiggle => "squiggle",
            Self::Stipple => "stipple",
            Self::Spiral => "spiral",
        }
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
        let caps = DesignCaps::default();
        let wrap = |source| SceneError::Design {
            file: format!("{scene}: design {name}"),
            source,
        };
        let invalid = |problem: String| FileError::single(scene, problem);
        let picture = match files {
            [(_, bytes)] => PixelPicture::read(bytes, &caps).map_err(wrap)?,
            _ => None,
        };
        let Some(picture) = picture else {
            check_unused(file).map_err(|fault| invalid(fault.to_string()))?;
            return Ok(None);
        };
        let frame = self.sized(file, picture.frame(), sheet);
        let own_mm = frame.design.page_mm.into_iter().fold(0.0, f64::max);
        let long_mm = file.size_mm.map_or(own_mm, Finite::get);
        let options = line_options(file, pens, long_mm);
        let options = options.map_err(|fault| invalid(fault.to_string()))?;
        let mut design = picture.drawn(&options, &caps).map_err(wrap)?;
        design.notes.extend(style_note(file));
        design.notes.extend(frame.design.notes);
        Ok(Some(SizedDesign {
            design,
            box_mm: None,
            from: frame.from,
        }))
    }
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
