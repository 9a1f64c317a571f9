//! Judges the design and the scene that the arguments of a drawing name, by names alone: for a call and for its explanation.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::caller_design::{not_drawn, with_correction};
use super::reply::Reply;
use base::units::Finite;
use scene::{CallerDesignKind, DesignPlacement, DesignReplacement, PictureStyle};

/// Parameters that carry a design.
pub(super) const DESIGN_KEYS: [&str; 3] = ["text", "svg", IMAGE_KEY];

/// Parameter that carries a picture, and the one that says how it is drawn.
pub(super) const IMAGE_KEY: &str = "image";
pub(super) const STYLE_KEY: &str = "image_style";

/// Parameter that names the font of a text or of an SVG's texts.
pub(super) const FONT_KEY: &str = "font";

/// Parameters of a design's look, each for some kinds of designs.
const LOOK_KEYS: [&str; 2] = [STYLE_KEY, FONT_KEY];

/// Parameters of a design's placement.
pub(super) const PLACE_KEYS: [&str; 2] = ["size_mm", "at_mm"];

/// File names under which an SVG and a picture are read.
const SVG_NAME: &str = "design.svg";
const IMAGE_NAME: &str = "the image";

/// The arguments of a drawing.
pub(super) struct DesignArguments<'a> {
    /// Only what was sent.
    pub(super) given: &'a Map<String, Value>,
    /// The scenes of this node that take a caller's design.
    pub(super) canvases: &'a [String],
}

impl DesignArguments<'_> {
    /// Returns the canvas that the call's design is drawn on; `None` if it draws a scene's own design or what was left of a
    /// drawing.
    ///
    /// # Errors
    /// The design, its place and the scene do not fit together.
    pub(super) fn canvas(&self) -> Result<Option<String>, Box<Reply>> {
        if self.given.get("resume") == Some(&Value::Bool(true)) {
            self.check_resume_without_design()?;
            return Ok(None);
        }
        if let Some((kind, _)) = self.design()? {
            return self.canvas_name(kind).map(Some);
        }
        self.check_no_place()?;
        // An overlay may bring a design, which is known once the scene is built.
        let bare = self.text("scene").filter(|_| self.text("meta").is_none());
        match bare.filter(|scene| self.canvases.iter().any(|canvas| canvas == scene)) {
            Some(scene) => Err(no_design_on(scene)),
            None => Ok(None),
        }
    }

    /// Refuses a design in a call that resumes another drawing.
    fn check_resume_without_design(&self) -> Result<(), Box<Reply>> {
        let keys = DESIGN_KEYS.into_iter().chain(PLACE_KEYS).chain(LOOK_KEYS);
        let sent: Vec<&str> = keys.filter(|key| self.given.contains_key(*key)).collect();
        if sent.is_empty() {
            return Ok(());
        }
        let reason = format!(
            "`resume` finishes the unfinished drawing, but {} begins a new one. Next: send only one of them",
            sent.join(" and ")
        );
        Err(not_drawn("resume_differs", reason))
    }

    /// Refuses the place of a design in a call that brings none. No corrected call is offered: the scene's own design would be
    /// drawn in another size or place than was asked for.
    fn check_no_place(&self) -> Result<(), Box<Reply>> {
        let mut keys = PLACE_KEYS.into_iter().chain(LOOK_KEYS);
        let Some(key) = keys.find(|key| self.given.contains_key(*key)) else {
            return Ok(());
        };
        let reason = format!(
            "`{key}` needs a `text`, an `svg` or an `image`, but this call has none. A scene's own design keeps its size and place"
        );
        Err(not_drawn("no_design", reason))
    }

    /// Returns the name of the intended canvas.
    pub(super) fn canvas_name(&self, kind: CallerDesignKind) -> Result<String, Box<Reply>> {
        let named = self.text("scene");
        match (named, self.canvases) {
            (Some(named), all) if all.iter().any(|one| one == named) => Ok(named.to_owned()),
            (None, [only]) => Ok(only.clone()),
            (Some(named), all) => {
                let reason = format!(
                    "scene `{named}` draws its own design; `{}` needs a canvas. Canvases: {}",
                    kind.word(),
                    all.join(", ")
                );
                let refusal = not_drawn("no_canvas", reason);
                let [only] = all else {
                    return Err(refusal);
                };
                let mut call = self.given.clone();
                call.insert("scene".to_owned(), only.as_str().into());
                Err(with_correction(*refusal, call))
            }
            (None, all) => {
                let reason = format!(
                    "this call needs a canvas as `scene`. Next: send one of: {}",
                    all.join(", ")
                );
                Err(not_drawn("no_canvas", reason))
            }
        }
    }

    /// Reads the design that the call brings.
    pub(super) fn design(
        &self,
    ) -> Result<Option<(CallerDesignKind, DesignReplacement)>, Box<Reply>> {
        let sent: Vec<(&str, &str)> = DESIGN_KEYS
            .into_iter()
            .filter_map(|key| Some((key, self.text(key)?)))
            .collect();
        let (kind, design) = match sent.as_slice() {
            [] => return Ok(None),
            [("text", text)] => (CallerDesignKind::Text, DesignReplacement::from_text(text)),
            [("svg", svg)] => {
                let file = (SVG_NAME.to_owned(), svg.as_bytes().to_vec());
                let design = DesignReplacement::from_files(vec![file]);
                (CallerDesignKind::Svg, design)
            }
            [(_, image)] => (CallerDesignKind::Image, picture(image)?),
            [(first, _), (second, _), ..] => {
                let reason = format!(
                    "`{first}` and `{second}` are two designs. Next: send only one of them"
                );
                return Err(not_drawn("arguments_refused", reason));
            }
        };
        let style = self.style()?;
        let (key, whose) = match kind {
            CallerDesignKind::Image => (FONT_KEY, "a `text` or an `svg`"),
            CallerDesignKind::Text | CallerDesignKind::Svg => (STYLE_KEY, "an `image`"),
        };
        if self.given.contains_key(key) {
            let reason = format!(
                "`{key}` is only for {whose}, but this call draws its `{}`. Next: leave `{key}` out",
                kind.word()
            );
            return Err(not_drawn("arguments_refused", reason));
        }
        let design = DesignReplacement {
            placement: self.placement(),
            style,
            font: self.text(FONT_KEY).map(str::to_owned),
            ..design
        };
        Ok(Some((kind, design)))
    }

    /// Reads the lines that a picture is drawn with.
    fn style(&self) -> Result<Option<PictureStyle>, Box<Reply>> {
        let Some(style) = self.given.get(STYLE_KEY) else {
            return Ok(None);
        };
        let style = PictureStyle::deserialize(style);
        style
            .map(Some)
            .map_err(|error| not_drawn("arguments_refused", error))
    }

    /// Returns a text argument exactly as it was sent.
    fn text(&self, name: &str) -> Option<&str> {
        self.given.get(name).and_then(Value::as_str)
    }

    fn placement(&self) -> DesignPlacement {
        let given = self.given;
        let length = |value: &Value| value.as_f64().and_then(|mm| Finite::new(mm).ok());
        let point = given.get("at_mm").and_then(Value::as_array);
        let at_mm = point.and_then(|point| match point.as_slice() {
            [x, y] => Some([length(x)?, length(y)?]),
            _ => None,
        });
        DesignPlacement {
            size_mm: given.get("size_mm").and_then(length),
            at_mm,
            ..DesignPlacement::default()
        }
    }
}

/// Reads a picture in base64, also as a data URL; blanks and missing padding are form.
fn picture(image: &str) -> Result<DesignReplacement, Box<Reply>> {
    let text = match image.trim_start().split_once(',') {
        Some((head, data)) if head.starts_with("data:") => data,
        _ => image,
    };
    let text: String = text.split_whitespace().collect();
    let bytes = BASE64.decode(text.trim_end_matches('=')).map_err(|error| {
        let reason = format!(
            "`image` is not base64 ({error}). Next: send the whole file as base64, or as a data URL"
        );
        not_drawn("design_refused", reason)
    })?;
    Ok(DesignReplacement::from_files(vec![(
        IMAGE_NAME.to_owned(),
        bytes,
    )]))
}

/// Base64 whose padding is left out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

/// Refuses a canvas in a call that brings no design.
pub(super) fn no_design_on(scene: &str) -> Box<Reply> {
    let reason = format!(
        "scene `{scene}` is a canvas: it has no design of its own. Next: send your design as `text`, `svg` or `image`"
    );
    not_drawn("no_design", reason)
}
