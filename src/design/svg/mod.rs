//! Reads SVG as strokes: usvg resolves styles, units and references, and shapes become polylines
//! here.
//!
//! The file is not trusted, so its size with every reference followed and its depth are checked
//! first. Only a document within the limits is given to usvg, with no way to open files.

mod bare_elements;
mod cascade;
mod clip_paths;
mod css;
mod css_limits;
mod cut_edges;
mod edge_rows;
mod embedded;
mod expansion_limits;
mod grammar;
mod hidden_lines;
mod html_entities;
mod layers;
mod machine_fonts;
mod normalize_units;
mod paint;
mod repair_form;
mod text_to_paths;
mod unquoted_values;
mod unsupported;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use usvg::roxmltree::{Document, Node, ParsingOptions};

use super::collect_strokes::LONG_SIDE_MIN_MM;
use super::design_error::quoted;
use super::text_encoding::{self, DeclaredEncoding};
use super::{Design, DesignCaps, DesignError, ReadOptions};
use machine_fonts::MachineFonts;

/// Millimetres in a CSS pixel, the unit of usvg.
const MM_PER_PX: f64 = 25.4 / 96.0;

/// Browsers' value of `font-size: medium`.
const FONT_SIZE_PX: f32 = 16.0;

const NOTHING_VISIBLE: &str =
    "shapes need a stroke or a fill that is not white, and must not be hidden";

/// How a person saves an SVG as UTF-8.
const SETTING: &str = "save it as UTF-8 (CorelDRAW, SVG export: Encoding, Unicode UTF-8; Illustrator, SVG options: Encoding, Unicode UTF-8)";

pub(super) fn read(
    bytes: &[u8],
    caps: &DesignCaps,
    options: ReadOptions,
) -> Result<Design, DesignError> {
    let head = text_encoding::head(bytes);
    let declared = DeclaredEncoding {
        label: declared_encoding(&head),
        setting: SETTING,
    };
    let decoded = text_encoding::decode(bytes, declared)?;
    let taken_out = embedded::taken_out(&decoded.text, options.words)?;
    let (element, taken_out_note) = taken_out.unzip();
    let text = element.as_deref().unwrap_or(&decoded.text);
    let (repaired, notes) = repair_form::repaired(text);
    let text = repaired.as_deref().unwrap_or(text);
    let mut design = read_text(text, caps, options, MachineFonts::load)?;
    let guessed = decoded
        .is_guessed
        .then(|| text_encoding::GUESSED.to_owned());
    design.notes.extend(taken_out_note);
    design.notes.extend(notes);
    design.notes.extend(guessed);
    Ok(design)
}

/// Returns the encoding that an XML declaration states.
fn declared_encoding(head: &str) -> Option<&str> {
    let (declaration, _) = head.trim_start().strip_prefix("<?xml")?.split_once("?>")?;
    let (_, after) = declaration.split_once("encoding")?;
    let value = after.trim_start().strip_prefix('=')?.trim();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    Some(value.get(1..)?.split(quote).next()?.trim())
}

fn read_text(
    text: &str,
    caps: &DesignCaps,
    options: ReadOptions,
    load_fonts: fn() -> Result<MachineFonts, DesignError>,
) -> Result<Design, DesignError> {
    let original = parse_checked(text, caps)?;
    // Each step rewrites the file if it changes anything. First inline the styles.
    let inlined = cascade::inline_styles(text, &original, caps)?;
    let text = inlined.as_deref().unwrap_or(text);
    let styled = (inlined.as_deref().map(|text| parse_checked(text, caps))).transpose()?;
    let document = styled.as_ref().unwrap_or(&original);
    let (notes, places) = unsupported::inspect(document, &original, options.outlines_text)?;
    let states_lengths = states_lengths(document.root_element());
    // Then express what usvg does not support in terms that it does.
    let normalized = normalize_units::normalize(text, document);
    let text = normalized.as_deref().unwrap_or(text);
    let supported = (normalized.as_deref().map(|text| parse(text, caps))).transpose()?;
    let document = supported.as_ref().unwrap_or(document);
    // Last, convert text to paths, unless usvg does.
    let has_outlines = options.outlines_text && text_to_paths::is_for_fonts(document)?;
    let fonts = has_outlines.then(load_fonts).transpose()?;
    let with_paths = match fonts {
        None => text_to_paths::as_paths(text, document, options.font)?,
        Some(_) => None,
    };
    let of_text = with_paths.as_ref();
    let drawable = of_text
        .map(|text| parse_checked(&text.source, caps))
        .transpose()?;
    let document = drawable.as_ref().unwrap_or(document);
    let design = draw(document, caps, options, &places, fonts.as_ref());
    let of_fonts = fonts.as_ref().map(MachineFonts::notes).transpose()?;
    let design = design?;
    let mut notes = notes.into_texts();
    notes.extend(design.notes);
    notes.extend(with_paths.into_iter().flat_map(|text| text.notes));
    notes.extend(of_fonts.into_iter().flatten());
    Ok(Design {
        states_lengths,
        notes,
        ..design
    })
}

/// Longest side of a page without lengths: one of a million pixels counts as this long.
const PAGE_MAX_MM: f64 = 1000.0;

/// Returns the length of a pixel on a page whose longer side has so many.
fn mm_per_px(long_px: f64, states_lengths: bool) -> f64 {
    match states_lengths {
        true => MM_PER_PX,
        false => MM_PER_PX
            .max(LONG_SIDE_MIN_MM / long_px)
            .min(PAGE_MAX_MM / long_px),
    }
}

/// Parses a document, and checks that it is within the limits.
fn parse_checked<'t>(text: &'t str, caps: &DesignCaps) -> Result<Document<'t>, DesignError> {
    let document = parse(text, caps)?;
    expansion_limits::check(&document, caps)?;
    Ok(document)
}

/// Returns whether the page has a size on paper. Pixels and bare numbers have none.
fn states_lengths(root: Node<'_, '_>) -> bool {
    let on_paper = |name: &str| {
        let (_, unit) = grammar::length(root.attribute(name)?)?;
        Some(matches!(unit, "mm" | "cm" | "in" | "pt" | "pc" | "Q" | "q"))
    };
    match (on_paper("width"), on_paper("height")) {
        (Some(width), Some(height)) => width && height,
        // The other side follows from the view box.
        (Some(side), None) | (None, Some(side)) => side && root.has_attribute("viewBox"),
        (None, None) => false,
    }
}

fn parse<'t>(text: &'t str, caps: &DesignCaps) -> Result<Document<'t>, DesignError> {
    let limit = caps.elements_max.saturating_mul(4);
    let options = ParsingOptions {
        allow_dtd: true,
        nodes_limit: u32::try_from(limit).unwrap_or(u32::MAX),
        ..ParsingOptions::default()
    };
    Document::parse_with_options(text, options).map_err(|error| {
        let pos = error.pos();
        DesignError::syntax(
            format!("line {} column {}", pos.row, pos.col),
            format!("broken XML ({error})"),
            "well-formed SVG, such as <path d='M5 5H45' stroke='black'/>",
        )
    })
}

fn draw(
    document: &Document<'_>,
    caps: &DesignCaps,
    options: ReadOptions,
    places: &unsupported::FlaggedElements,
    fonts: Option<&MachineFonts>,
) -> Result<Design, DesignError> {
    let (tree, has_image) = resolve(document, fonts)?;
    if has_image && !options.skip_images {
        return Err(places.refuse_images(options.words));
    }
    let page_px = [tree.size().width(), tree.size().height()];
    let long_px = f64::from(page_px[0].max(page_px[1]));
    let mm_per_px = mm_per_px(long_px, states_lengths(document.root_element()));
    let page_mm = page_px.map(|px| f64::from(px) * mm_per_px);
    let scale = PageScale { page_mm, mm_per_px };
    let mut painter = paint::SvgPainter::new(document, places, scale, caps, options);
    painter.draw_group(tree.root())?;
    let mut notes = painter.losses.notes(options.words);
    notes.extend(painter.hide_lines()?);
    let mut design = painter.strokes.on_page(page_mm, NOTHING_VISIBLE)?;
    design.notes.extend(notes);
    design.notes.extend(has_image.then(|| places.images_note()));
    Ok(design)
}

/// Size of a page, and of a pixel on it.
#[derive(Clone, Copy)]
struct PageScale {
    page_mm: [f64; 2],
    mm_per_px: f64,
}

/// Returns usvg's tree, and whether it shows a picture.
fn resolve(
    document: &Document<'_>,
    fonts: Option<&MachineFonts>,
) -> Result<(usvg::Tree, bool), DesignError> {
    let has_image = AtomicBool::new(false);
    let mut options = options(&has_image);
    if let Some(fonts) = fonts {
        fonts.give_to(&mut options);
    }
    // No panic of usvg is known, but if there is one, a drawing must not take the node down.
    let tree = catch_unwind(AssertUnwindSafe(|| {
        usvg::Tree::from_xmltree(document, &options)
    }))
    .map_err(|_| DesignError::Reader)?
    .map_err(|error| tree_error(document, &error))?;
    drop(options);
    Ok((tree, has_image.load(Ordering::Relaxed)))
}

fn options(has_image: &AtomicBool) -> usvg::Options<'_> {
    let note_image = |flag: &AtomicBool| {
        flag.store(true, Ordering::Relaxed);
        None
    };
    usvg::Options {
        font_size: FONT_SIZE_PX,
        image_href_resolver: usvg::ImageHrefResolver {
            resolve_data: Box::new(move |_, _, _| note_image(has_image)),
            resolve_string: Box::new(move |_, _| note_image(has_image)),
        },
        ..usvg::Options::default()
    }
}

fn tree_error(document: &Document<'_>, error: &usvg::Error) -> DesignError {
    let root = document.root_element();
    if root.tag_name().name() != "svg" {
        return DesignError::syntax(
            "the root element",
            quoted(root.tag_name().name()),
            "`svg` in the namespace http://www.w3.org/2000/svg",
        );
    }
    match error {
        usvg::Error::InvalidSize => DesignError::syntax(
            "the root element",
            "no usable size",
            "a width and a height above 0, such as 60mm, or a viewBox",
        ),
        other => DesignError::syntax("the file", quoted(&other.to_string()), "an SVG drawing"),
    }
}

#[cfg(all(test, feature = "fonts"))]
#[allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod font_tests;
#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a failing test may panic"
)]
mod hidden_tests;
#[cfg(test)]
mod style_tests;
#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failing test may panic"
)]
mod symbol_tests;
#[cfg(test)]
mod tests;
