//! A design that replaces a scene's own.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::SceneError;
use super::area_fill;
use super::file::{DesignFile, FillKind, LineAlign, Order, PictureStyle, SceneFile};
use super::library::hash_part;
use super::paper_format::PaperFormat;
use super::pause_every::PauseEvery;
use super::placement::DesignPlacement;
use base::terminal::harmless;
use base::units::Finite;
use config::toml::FileError;
use design::PixelPicture;

/// A design that replaces a scene's own, and how it is drawn.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DesignReplacement {
    /// The drawing itself.
    pub source: DesignSource,
    /// Its place on the sheet.
    #[serde(default)]
    pub placement: DesignPlacement,
    /// Fill of an SVG's coloured areas; absent keeps the scene's.
    #[serde(default)]
    pub fill: Option<FillKind>,
    /// If true, all of it is drawn with the scene's first pen, whatever colours and pens it names.
    #[serde(default)]
    pub one_pen: bool,
    /// Pens, by number from 1 or name, whose strokes are drawn; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pens: Vec<String>,
    /// Layers, by name or number, whose strokes are drawn; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<String>,
    /// The first and the last stroke that is drawn, counted from 1 in the author's order; absent draws all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strokes: Option<[usize; 2]>,
    /// Paper in place of the scene's sheet; absent keeps that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<PaperFormat>,
    /// Columns and rows of copies; absent is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<[u16; 2]>,
    /// How much is drawn between two pauses; absent pauses only where the design says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_every: Option<PauseEvery>,
    /// If true, lines behind filled areas of an SVG are not drawn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hide: bool,
    /// If true, the text of an SVG is drawn in the outlines of the machine's fonts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outlines_text: bool,
    /// If true, pictures made of pixels are left out of an SVG, as with `skip_images` of a scene.
    #[serde(default)]
    pub skip_images: bool,
    /// Lines that a picture made of pixels is drawn with; absent hatches it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub style: Option<PictureStyle>,
    /// As `ink_percent` of a scene's design.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ink_percent: Option<Finite>,
    /// As `font` of a scene's design.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub font: Option<String>,
    /// Place of a text's lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub align: Option<LineAlign>,
    /// As `line_spacing` of a scene's design.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_spacing: Option<Finite>,
    /// As `wrap_mm` of a scene's design.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrap_mm: Option<Finite>,
    /// If true, closed lines begin at points that follow no pattern.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub random_starts: bool,
    /// Order of its strokes; absent keeps the scene's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// As `simplify_mm` of a scene's design.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simplify_mm: Option<Finite>,
    /// As `join_mm` of a scene's design; absent keeps the scene's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join_mm: Option<Finite>,
}

/// The strokes' source.
#[derive(Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum DesignSource {
    /// One file, or the files of a set with the same [`design::set_of`]: each with its name, whose
    /// extension gives its format, and its bytes.
    Files(#[serde(with = "design_texts")] Vec<(String, Vec<u8>)>),
    /// Text in single-line letters.
    Text {
        /// The text.
        text: String,
        /// Height of a capital letter on the sheet; absent uses the default of scenes.
        #[serde(default)]
        letter_height_mm: Option<Finite>,
    },
}

impl fmt::Debug for DesignSource {
    /// Shows sizes instead of bytes, because logs contain it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(files) => {
                let sizes = files.iter().map(|(name, bytes)| (name, bytes.len()));
                f.debug_map().entries(sizes).finish()
            }
            Self::Text { text, .. } => write!(f, "{text:?}"),
        }
    }
}

/// Returns a file's name with what would break a line or steer a terminal written out.
fn in_one_line(name: &str) -> String {
    harmless(name).replace('\n', "\\n").replace('\t', "\\t")
}

/// Most characters of a text that its label shows.
const LABEL_CHARS_MAX: usize = 24;

impl DesignReplacement {
    /// Creates a replacement from files, centred on the sheet.
    #[must_use]
    pub fn from_files(files: Vec<(String, Vec<u8>)>) -> Self {
        Self {
            source: DesignSource::Files(files),
            placement: DesignPlacement::default(),
            fill: None,
            one_pen: false,
            pens: Vec::new(),
            layers: Vec::new(),
            strokes: None,
            paper: None,
            copies: None,
            pause_every: None,
            hide: false,
            outlines_text: false,
            skip_images: false,
            style: None,
            ink_percent: None,
            font: None,
            align: None,
            line_spacing: None,
            wrap_mm: None,
            random_starts: false,
            order: None,
            simplify_mm: None,
            join_mm: None,
        }
    }

    /// Creates a replacement from text in single-line letters, centred on the sheet.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        Self {
            source: DesignSource::Text {
                text: text.to_owned(),
                letter_height_mm: None,
            },
            ..Self::from_files(Vec::new())
        }
    }

    /// Returns the drawing's name for people: its first file, or the beginning of its text.
    #[must_use]
    pub fn label(&self) -> String {
        match &self.source {
            DesignSource::Files(files) => match files.as_slice() {
                [] => "nothing".to_owned(),
                [(name, _)] => in_one_line(name),
                [(name, _), more @ ..] => format!("{} and {} more", in_one_line(name), more.len()),
            },
            DesignSource::Text { text, .. } => {
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let shown: String = text.chars().take(LABEL_CHARS_MAX).collect();
                let more = if shown == text { "" } else { "…" };
                format!("“{shown}{more}”")
            }
        }
    }

    /// Returns whether it is a PNG or a JPEG.
    #[must_use]
    pub fn is_picture(&self) -> bool {
        match &self.source {
            DesignSource::Files(files) => {
                matches!(files.as_slice(), [(_, bytes)] if PixelPicture::is_one(bytes))
            }
            DesignSource::Text { .. } => false,
        }
    }

    /// Returns the bytes that a revision covers: all of the replacement.
    pub(super) fn bytes_to_hash(&self) -> Vec<u8> {
        // Texts and numbers always serialize.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Lays its paper in place of a scene's sheet. What is enabled for that sheet is not enabled for a larger one.
    pub(super) fn lay_paper(
        &self,
        file: &str,
        scene: &mut SceneFile,
        setting_hash: &mut blake3::Hasher,
    ) -> Result<(), SceneError> {
        let Some(paper) = self.paper else {
            return Ok(());
        };
        hash_part(setting_hash, paper.name().as_bytes());
        paper.lay_in(file, scene)
    }

    /// Returns it as TOML, as jobs store it.
    ///
    /// # Errors
    /// It cannot be written as TOML.
    pub fn to_toml(&self) -> Result<String, SceneError> {
        let text = toml::to_string(self);
        text.map_err(|error| FileError::single(&self.label(), error.to_string()).into())
    }

    /// Reads the output of [`Self::to_toml`].
    ///
    /// # Errors
    /// Anything else; unknown keys are refused.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, SceneError> {
        let read = toml::from_str::<toml::Table>(text).and_then(toml::Table::try_into);
        read.map_err(|error| FileError::single(file, error.to_string()).into())
    }

    /// Replaces a scene's design. The scene's order and joining stay unless stated here; its place,
    /// size and fill belong to its own design.
    pub(super) fn apply_to(&self, design: &mut DesignFile) {
        (design.file, design.text, design.polylines) = (None, None, None);
        design.skip_images |= self.skip_images;
        (design.style, design.ink_percent) = (self.style, self.ink_percent);
        (design.font, design.align) = (self.font.clone(), self.align);
        (design.line_spacing, design.wrap_mm) = (self.line_spacing, self.wrap_mm);
        design.order = self.order.unwrap_or(design.order);
        design.simplify_mm = self.simplify_mm;
        design.join_mm = self.join_mm.or(design.join_mm);
        let mut is_svg = false;
        match &self.source {
            DesignSource::Files(files) => {
                design.file = files.first().map(|(name, _)| name.clone());
                is_svg = design.file.as_deref().is_some_and(area_fill::is_svg);
            }
            DesignSource::Text {
                text,
                letter_height_mm,
            } => {
                design.text = Some(text.clone());
                design.letter_height_mm = *letter_height_mm;
            }
        }
        self.placement.apply_to(design);
        match self.fill {
            Some(fill) => design.fill = fill,
            // Only areas can be filled: a design without areas is drawn as it is.
            None if !is_svg => design.fill = FillKind::Outline,
            None => {}
        }
        if design.fill == FillKind::Outline {
            (design.fill_spacing_mm, design.fill_angle_deg) = (None, None);
        }
    }
}

/// Files of a design as JSON: all formats are text.
mod design_texts {
    use serde::de::{Deserializer, Error as _};
    use serde::ser::{SerializeSeq as _, Serializer};
    use serde::{Deserialize as _, Serialize};

    /// A file as `text`, or, if it is not UTF-8 (labels of HP-GL need not be), as `bytes`: one
    /// Latin-1 character for each.
    #[derive(Serialize, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct DesignText {
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes: Option<String>,
    }

    impl DesignText {
        fn of(name: &str, bytes: &[u8]) -> Self {
            let text = std::str::from_utf8(bytes).ok().map(str::to_owned);
            let latin1 = || bytes.iter().copied().map(char::from).collect();
            Self {
                name: name.to_owned(),
                bytes: text.is_none().then(latin1),
                text,
            }
        }

        fn into_bytes(self) -> Option<Vec<u8>> {
            match (self.text, self.bytes) {
                (Some(text), None) => Some(text.into_bytes()),
                (None, Some(latin1)) => {
                    let bytes = latin1.chars().map(|c| u8::try_from(c).ok());
                    bytes.collect()
                }
                _ => None,
            }
        }
    }

    pub(super) fn serialize<S: Serializer>(
        files: &[(String, Vec<u8>)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(Some(files.len()))?;
        for (name, bytes) in files {
            sequence.serialize_element(&DesignText::of(name, bytes))?;
        }
        sequence.end()
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(String, Vec<u8>)>, D::Error> {
        let files = Vec::<DesignText>::deserialize(deserializer)?.into_iter();
        let file = |text: DesignText| {
            let name = text.name.clone();
            let bytes = text.into_bytes();
            let error =
                || D::Error::custom("a file needs `text`, or `bytes` as Latin-1 characters");
            Ok((name, bytes.ok_or_else(error)?))
        };
        files.map(file).collect()
    }
}
