//! A proposal in words, and as one HTML file with a picture of its residuals.

use std::fmt::Write as _;

use super::assessment::{TouchAssessment, next_step};
use super::calibration_record::{
    CalibrationKind, CalibrationRecord, CalibrationSession, FileValues,
};
use super::stats::ratio;
use super::{FitVerdict, InkObservation};
use base::wording::count;

/// The picture's sides.
const SIDE: f64 = 480.0;
const MARGIN: f64 = 40.0;

/// The longest residual is drawn so long.
const ARROW: f64 = 60.0;

/// A proposal for a terminal: measured, old and new, verdict, next step.
#[must_use]
pub fn assessment_text(session: &CalibrationSession, assessed: &TouchAssessment) -> String {
    let findings = findings_text(session, assessed);
    format!("{findings}\nnext: {}", next_step(assessed))
}

/// A proposal for a terminal without its next step: measured, old and new, verdict.
#[must_use]
pub fn findings_text(session: &CalibrationSession, assessed: &TouchAssessment) -> String {
    let mut text = format!("{}\n", title(session));
    for (index, (touch, point)) in session.touches.iter().zip(&assessed.points).enumerate() {
        let [x, y, z] = point.at_mm;
        let _ = writeln!(
            text,
            "  touch {:>2}  {:<10} {x:8.2} {y:8.2} {z:8.2} mm  off {:5.2} mm",
            index + 1,
            format!("{:?}", touch.role).to_lowercase(),
            point.mm()
        );
    }
    for (name, value) in &assessed.figures {
        let _ = match name.as_str() {
            "condition" => writeln!(text, "  {name:<20} {:>10}", ratio(*value)),
            _ => writeln!(text, "  {name:<20} {value:10.3}"),
        };
    }
    text.push_str(&compared(&assessed.old, &assessed.new));
    if !assessed.new.is_empty() {
        let _ = writeln!(
            text,
            "  change: {:.2} mm, {:.2} degrees",
            assessed.change.mm, assessed.change.deg
        );
    }
    let _ = writeln!(text, "verdict: {}", verdict(assessed.finding.verdict));
    for reason in &assessed.finding.reasons {
        let _ = writeln!(text, "  - {reason}");
    }
    text.trim_end().to_owned()
}

/// Old, new and difference, a line a value.
#[must_use]
pub fn compared(old: &FileValues, new: &FileValues) -> String {
    let mut text = String::new();
    for (key, now) in new {
        let before = old.get(key).map_or(&[][..], Vec::as_slice);
        let difference = before.iter().zip(now).map(|(old, new)| new - old);
        let list = |values: &mut dyn Iterator<Item = f64>| {
            let all: Vec<String> = values.map(|value| format!("{value:.6}")).collect();
            all.join(", ")
        };
        let _ = writeln!(
            text,
            "  {key}: old [{}] new [{}] difference [{}]",
            list(&mut before.iter().copied()),
            list(&mut now.iter().copied()),
            list(&mut difference.into_iter())
        );
    }
    text
}

/// A record for a terminal.
#[must_use]
pub fn record(record: &CalibrationRecord) -> String {
    let mut text = format!("{}\n", record.line());
    text.push_str(&compared(&record.old, &record.new));
    for reason in &record.reasons {
        let _ = writeln!(text, "  - {reason}");
    }
    text.trim_end().to_owned()
}

fn title(session: &CalibrationSession) -> String {
    let touches = count(session.touches.len(), "touch");
    match session.kind {
        CalibrationKind::Tool => format!(
            "tool: pen {} of scene {}, {touches}",
            session.pen, session.scene
        ),
        CalibrationKind::Sheet if session.read_mm.is_some() => {
            format!("sheet of scene {}, by the drawn cross", session.scene)
        }
        CalibrationKind::Sheet if session.seen.is_some() => {
            format!("sheet of scene {}, by a camera's picture", session.scene)
        }
        CalibrationKind::Sheet if session.ink.is_some() => {
            format!("sheet of scene {}, by drawn ink", session.scene)
        }
        CalibrationKind::Play if session.ink.as_ref().is_some_and(InkObservation::is_at_rest) => {
            format!("sag of arm {}, by joints at rest", session.arm)
        }
        CalibrationKind::Play => format!("play and sag of arm {}, by drawn ink", session.arm),
        CalibrationKind::Sheet => format!(
            "sheet of scene {}, {}",
            session.scene,
            count(
                session.touches.len(),
                if session.probed { "probe" } else { "touch" }
            )
        ),
        CalibrationKind::Zeros => format!("zeros of arm {}, {touches}", session.arm),
        CalibrationKind::Pose
        | CalibrationKind::Cap
        | CalibrationKind::Calibrator
        | CalibrationKind::Camera => {
            format!(
                "{} {} of scene {}",
                session.kind.word(),
                session.name,
                session.scene
            )
        }
    }
}

pub(super) const fn verdict(verdict: FitVerdict) -> &'static str {
    match verdict {
        FitVerdict::Good => "good",
        FitVerdict::Usable => "usable",
        FitVerdict::Redo => "redo",
    }
}

/// One file, without anything from elsewhere: words, picture, and the numbers in a table.
#[must_use]
pub fn html(session: &CalibrationSession, assessed: &TouchAssessment) -> String {
    let mut rows = String::new();
    let arrows: Vec<ResidualArrow> = assessed
        .points
        .iter()
        .map(|p| (p.at_mm, p.off_mm))
        .collect();
    for (index, point) in assessed.points.iter().enumerate() {
        let [x, y, z] = point.at_mm;
        let [dx, dy, dz] = point.off_mm;
        let role = format!("{:?}", point.role).to_lowercase();
        let _ = writeln!(
            rows,
            "<tr><td>{}<td>{role}<td>{x:.2}<td>{y:.2}<td>{z:.2}<td>{dx:.3}<td>{dy:.3}<td>{dz:.3}<td>{:.3}</tr>",
            index + 1,
            point.mm()
        );
    }
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\n\
         <style>body{{font:15px sans-serif;margin:2em}}td,th{{padding:0 .8em;text-align:right}}pre{{background:#f4f4f4;padding:1em;white-space:pre-wrap}}</style>\n\
         <h1>{title}: {verdict}</h1>\n{picture}\n\
         <table><tr><th>touch<th>of<th>x mm<th>y mm<th>z mm<th>off x<th>off y<th>off z<th>off mm</tr>\n{rows}</table>\n\
         <pre>{assessment_text}</pre></html>\n",
        title = escaped(&title(session)),
        verdict = verdict(assessed.finding.verdict),
        picture = picture(&arrows),
        assessment_text = escaped(&assessment_text(session, assessed)),
    )
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Place of a measurement, and its offset from the expected place; in mm.
pub(super) type ResidualArrow = ([f64; 3], [f64; 3]);

/// Points from above, each with its residual as an arrow; what points up or down is a ring.
pub(super) fn picture(points: &[ResidualArrow]) -> String {
    let least = |axis: usize| fold(points, axis, f64::INFINITY, f64::min);
    let most = |axis: usize| fold(points, axis, f64::NEG_INFINITY, f64::max);
    let span = (most(0) - least(0)).max(most(1) - least(1)).max(1.0);
    let scale = (SIDE - 2.0 * MARGIN) / span;
    let longest = points.iter().map(|(_, off)| length(*off));
    let longest = longest.fold(1e-6, f64::max);
    let arrow = ARROW / longest;
    let mut svg = format!(
        "<svg width=\"{SIDE}\" height=\"{SIDE}\" viewBox=\"0 0 {SIDE} {SIDE}\" role=\"img\"><rect width=\"100%\" height=\"100%\" fill=\"#fafafa\"/>"
    );
    for (index, ([x, y, _], [dx, dy, dz])) in points.iter().enumerate() {
        let px = MARGIN + (x - least(0)) * scale;
        let py = SIDE - MARGIN - (y - least(1)) * scale;
        let (tx, ty) = (px + dx * arrow, py - dy * arrow);
        let (ring, colour) = (
            dz.abs() * arrow / 2.0,
            if *dz < 0.0 { "#c33" } else { "#36c" },
        );
        let _ = write!(
            svg,
            "<circle cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"3\"/><circle cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"{ring:.1}\" fill=\"none\" stroke=\"{colour}\"/>\
             <line x1=\"{px:.1}\" y1=\"{py:.1}\" x2=\"{tx:.1}\" y2=\"{ty:.1}\" stroke=\"#c33\" stroke-width=\"2\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" font-size=\"12\">{}</text>",
            px + 5.0,
            py - 5.0,
            index + 1
        );
    }
    let _ = write!(
        svg,
        "<text x=\"8\" y=\"{}\" font-size=\"12\">from above; the longest residual is {longest:.2} mm; rings: up (blue) and down (red)</text></svg>",
        SIDE - 8.0
    );
    svg
}

fn length([x, y, z]: [f64; 3]) -> f64 {
    x.hypot(y).hypot(z)
}

fn fold(points: &[ResidualArrow], axis: usize, from: f64, with: fn(f64, f64) -> f64) -> f64 {
    let values = points.iter().filter_map(|(at, _)| at.get(axis).copied());
    values.fold(from, with)
}
