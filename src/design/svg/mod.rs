//! SVG → strokes: usvg resolves styles, units and references; shapes become polylines here.
//!
//! The file is not trusted, so a census of the document comes first: its size with every reference followed, and its
//! depth. Only a document within the limits is given to usvg, with no way to open files.

mod cascade;
mod clip_paths;
mod css;
mod css_limits;
mod expansion_limits;
mod grammar;
mod layers;
mod normalize_units;
mod paint;
mod text_to_paths;
mod unsupported;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use usvg::roxmltree::{Document, Node, ParsingOptions};

use super::design_error::quoted;
use super::{Design, DesignCaps, DesignError, ReadOptions};

/// Of CSS pixels, the unit that usvg counts in.
const MM_PER_PX: f64 = 25.4 / 96.0;

/// Browsers' value of `font-size: medium`.
const FONT_SIZE_PX: f32 = 16.0;

const NOTHING_SEEN: &str =
    "shapes need a stroke or a fill that is not white, and must not be hidden";

pub(super) fn read(
    text: &str,
    caps: &DesignCaps,
    options: ReadOptions,
) -> Result<Design, DesignError> {
    let original = checked(text, caps)?;
    // Each step writes the file anew where it has something to say otherwise: first its styles where they belong.
    let inlined = cascade::inlined(text, &original, caps)?;
    let text = inlined.as_deref().unwrap_or(text);
    let styled = inlined.as_deref().map(|text| checked(text, caps));
    let styled = styled.transpose()?;
    let document = styled.as_ref().unwrap_or(&original);
    let (notes, places) = unsupported::inspect(document, &original)?;
    let states_size = states_size(document.root_element());
    // Then what usvg does not know in words that it knows.
    let mended = normalize_units::mended(text, document);
    let text = mended.as_deref().unwrap_or(text);
    let known = mended.as_deref().map(|text| parse(text, caps));
    let known = known.transpose()?;
    let document = known.as_ref().unwrap_or(document);
    // At last its words as paths.
    let redrawn = text_to_paths::as_paths(text, document)?;
    let worded = redrawn.as_deref().map(|text| checked(text, caps));
    let worded = worded.transpose()?;
    let design = draw(worded.as_ref().unwrap_or(document), caps, options, &places)?;
    let mut notes = notes.all();
    notes.extend(design.notes);
    Ok(Design {
        states_size,
        notes,
        ..design
    })
}

/// Parses a document that is within the limits.
fn checked<'t>(text: &'t str, caps: &DesignCaps) -> Result<Document<'t>, DesignError> {
    let document = parse(text, caps)?;
    expansion_limits::check(&document, caps)?;
    Ok(document)
}

/// Returns whether the page has a size on paper. Pixels and bare numbers have none.
fn states_size(root: Node<'_, '_>) -> bool {
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
            "a well-formed SVG file",
        )
    })
}

fn draw(
    document: &Document<'_>,
    caps: &DesignCaps,
    options: ReadOptions,
    places: &unsupported::FlaggedElements,
) -> Result<Design, DesignError> {
    let (tree, has_image) = resolve(document)?;
    if has_image && !options.skip_images {
        return Err(places.refuse_images());
    }
    let page_px = [tree.size().width(), tree.size().height()];
    let page_mm = page_px.map(|px| f64::from(px) * MM_PER_PX);
    let mut painter = paint::SvgPainter::new(document, places, page_mm, caps, options.fill);
    painter.group(tree.root())?;
    let mut design = painter.all.on_page(page_mm, NOTHING_SEEN)?;
    design.notes.extend(has_image.then(|| places.images_note()));
    Ok(design)
}

/// usvg's tree, and whether a picture would be seen in it.
fn resolve(document: &Document<'_>) -> Result<(usvg::Tree, bool), DesignError> {
    let has_image = AtomicBool::new(false);
    let options = options(&has_image);
    // usvg has no panic that we know of, but a drawing must not take the node down when it has.
    let tree = catch_unwind(AssertUnwindSafe(|| {
        usvg::Tree::from_xmltree(document, &options)
    }))
    .map_err(|_| DesignError::Reader)?
    .map_err(|error| refusal(document, &error))?;
    drop(options);
    Ok((tree, has_image.load(Ordering::Relaxed)))
}

fn options(has_image: &AtomicBool) -> usvg::Options<'_> {
    let seen = |flag: &AtomicBool| {
        flag.store(true, Ordering::Relaxed);
        None
    };
    usvg::Options {
        font_size: FONT_SIZE_PX,
        image_href_resolver: usvg::ImageHrefResolver {
            resolve_data: Box::new(move |_, _, _| seen(has_image)),
            resolve_string: Box::new(move |_, _| seen(has_image)),
        },
        ..usvg::Options::default()
    }
}

fn refusal(document: &Document<'_>, error: &usvg::Error) -> DesignError {
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

#[cfg(test)]
mod style_tests;
#[cfg(test)]
mod tests;
