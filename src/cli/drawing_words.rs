//! Describes a drawing for the person who is asked whether to draw it.

use super::retyped_command;
use base::wording::{count, line_length, seconds};
use scene::SizeSource;
use tools::DrawingOffer;

/// Width of the labels.
const LABEL_WIDTH: usize = 14;

fn row(label: &str, text: impl AsRef<str>) -> String {
    format!("  {label:<LABEL_WIDTH$}{}", text.as_ref())
}

/// Describes what would be drawn, one fact per line.
pub(super) fn describe(offer: &DrawingOffer, picture: Option<&str>) -> Vec<String> {
    let mut lines = vec![offer.title.clone()];
    if let Some(resumes) = &offer.resumes {
        lines.push(row("resumes", resumes));
    }
    if let Some([low, high]) = offer.box_mm {
        let [width, height] = offer.sheet_mm;
        let ([left, low], [right, high]) = (low, high);
        let text = format!(
            "x {left:.1} to {right:.1} mm, y {low:.1} to {high:.1} mm, of {width} by {height} mm"
        );
        lines.push(row("on the sheet", text));
    }
    if let Some(from) = offer.size_from {
        let size = size_text(offer.size_mm, offer.drawn_mm, from);
        lines.push(row("size", size));
    }
    if offer.plan.is_some() {
        lines.extend(plan_lines(offer));
        let changed = offer.strokes_changed.as_ref();
        lines.extend(changed.map(|changed| row("drawn", changed)));
    }
    lines.extend(offer.notes.iter().map(|note| row("note", note)));
    if !offer.arm.is_empty() {
        let text = format!("{} of node {}, at {}", offer.arm, offer.node, offer.port);
        lines.push(row("arm", text));
    }
    lines.extend(picture.map(|path| row("picture", path)));
    lines
}

fn plan_lines(offer: &DrawingOffer) -> [String; 3] {
    let dips = match offer.dips {
        0 => String::new(),
        dips => format!(", {}", count(dips, "dip")),
    };
    let line = format!(
        "{}, {}, {}: {}{dips}",
        count(offer.strokes, "stroke"),
        line_length(offer.pen_down_mm),
        count(offer.pens.len(), "pen"),
        offer.pens.join(", ")
    );
    let (joint, deg) = (&offer.margin_least_joint, offer.margin_least_deg);
    let margin = format!("{joint} comes within {deg:.1}° of its limit");
    [
        row("line", line),
        row("time", seconds(offer.duration_s)),
        row("margin", margin),
    ]
}

/// Describes a design's size, its source, and how much of it is drawn where lines are left out.
pub(super) fn size_text(size_mm: f64, drawn_mm: Option<f64>, from: SizeSource) -> String {
    let source = match from {
        SizeSource::Asked => "as in --size",
        SizeSource::Fitted => "the largest size that fits there",
        SizeSource::Scene => "as in the scene",
        SizeSource::File => "as in its file",
    };
    let drawn = drawn_mm.map(|mm| format!("; the drawn lines alone: {mm:.1} mm"));
    let drawn = drawn.unwrap_or_default();
    format!("{size_mm:.1} mm on its longer side, {source}{drawn}")
}

/// Returns the refusals of a drawing, each rule once, and the command that would not be refused.
pub(super) fn refusals(offer: &DrawingOffer) -> Vec<String> {
    let mut lines: Vec<String> = offer
        .refusals
        .iter()
        .map(|group| format!("refused: {}", group.words()))
        .collect();
    let is_outside = offer.refusals.iter().any(|group| group.rule == "outside");
    lines.extend(retyped_command::fitting(
        offer.moves_to_mm,
        offer.fits_mm,
        offer.fits_centred,
        is_outside,
    ));
    lines
}

/// Returns the question to the person at the terminal.
pub(super) fn question(offer: &DrawingOffer, is_frame: bool) -> String {
    let place = offer.box_mm.map(|[[left, low], [right, high]]| {
        format!(", x {left:.0} to {right:.0} mm and y {low:.0} to {high:.0} mm")
    });
    let place = place.unwrap_or_default();
    let (title, time) = (&offer.title, seconds(offer.duration_s));
    let (node, arm, port) = (&offer.node, &offer.arm, &offer.port);
    let ends = match offer.orders.as_str() {
        "" => String::new(),
        orders => format!(" (this ends {orders})"),
    };
    if is_frame {
        return format!(
            "move the raised pen around {title}{place}, on node {node}, arm {arm} at {port}{ends}? [y/N]"
        );
    }
    format!("draw {title}{place}, in {time}, on node {node}, arm {arm} at {port}{ends}? [y/N]")
}
