//! Formats a proposal as text, and as one HTML file with a picture of its residuals.

use std::fmt::Write as _;

use super::assessment::{TouchAssessment, next_step};
use super::calibration_record::{
    CalibrationKind, CalibrationRecord, CalibrationSession, FileValues,
};
use super::fit_verdict::reason_lines;
use super::stats::ratio;
use super::{FitVerdict, InkObservation};
use base::wording::{count, html_escaped};

/// Side and margin of the picture, in pixels.
const SIDE: f64 = 480.0;
const MARGIN: f64 = 40.0;

/// Length of the longest residual's arrow, in pixels.
const ARROW: f64 = 60.0;

/// Formats a proposal for a terminal: measured, old and new, verdict, next step.
#[must_use]
pub fn assessment_text(session: &CalibrationSession, assessed: &TouchAssessment) -> String {
    let findings = findings_text(session, assessed);
    format!("{findings}\nnext: {}", next_step(assessed))
}

/// Formats a proposal for a terminal without its next step: measured, old and new, verdict.
#[must_use]
pub fn findings_text(session: &CalibrationSession, assessed: &TouchAssessment) -> String {
    let mut text = touches_text(session, assessed) + "\n";
    for (name, value) in &assessed.figures {
        let _ = match name.as_str() {
            "condition" => writeln!(text, "  {name:<20} {:>10}", ratio(*value)),
            _ => writeln!(text, "  {name:<20} {value:10.3}"),
        };
    }
    text.push_str(&comparison(&assessed.old, &assessed.new));
    if !assessed.new.is_empty() {
        let _ = writeln!(
            text,
            "  change: {:.2} mm, {:.2} degrees",
            assessed.change.mm, assessed.change.deg
        );
    }
    text.push_str(&assessed.finding.lines());
    text.trim_end().to_owned()
}

/// Formats what was measured for a terminal: a line for each touch.
#[must_use]
pub fn touches_text(session: &CalibrationSession, assessed: &TouchAssessment) -> String {
    let mut text = title(session);
    for (index, (touch, point)) in session.touches.iter().zip(&assessed.points).enumerate() {
        let [x, y, z] = point.at_mm;
        let _ = write!(
            text,
            "\n  touch {:>2}  {:<10} {x:8.2} {y:8.2} {z:8.2} mm  off {:5.2} mm",
            index + 1,
            format!("{:?}", touch.role).to_lowercase(),
            point.mm()
        );
    }
    text
}

/// Formats old, new and difference, one line for each value.
#[must_use]
pub fn comparison(old: &FileValues, new: &FileValues) -> String {
    let mut text = String::new();
    for (key, new) in new {
        let old = old.get(key).map_or(&[][..], Vec::as_slice);
        let difference: Vec<f64> = old.iter().zip(new).map(|(old, new)| new - old).collect();
        let [old, new, difference] = [old, new, &difference].map(|values| {
            let values: Vec<String> = values.iter().map(|value| format!("{value:.6}")).collect();
            values.join(", ")
        });
        let _ = writeln!(
            text,
            "  {key}: old [{old}] new [{new}] difference [{difference}]"
        );
    }
    text
}

/// Formats a record for a terminal.
#[must_use]
pub fn record(record: &CalibrationRecord) -> String {
    let mut text = format!("{}\n", record.line());
    text.push_str(&comparison(&record.old, &record.new));
    text.push_str(&reason_lines(&record.reasons));
    text.trim_end().to_owned()
}

fn title(session: &CalibrationSession) -> String {
    let title = kind_title(session);
    match session.origin.name_among_several() {
        // Bases are of all arms.
        Some(name) if session.kind != CalibrationKind::Bases => format!("{title} (arm `{name}`)"),
        _ => title,
    }
}

fn kind_title(session: &CalibrationSession) -> String {
    let touches = count(session.touches.len(), "touch");
    match session.kind {
        CalibrationKind::Tool => format!(
            "tool: pen {} of scene {}, {touches}",
            session.pen, session.scene
        ),
        CalibrationKind::Play if session.ink.as_ref().is_some_and(InkObservation::is_at_rest) => {
            format!("sag of arm {}, from joints at rest", session.arm)
        }
        CalibrationKind::Play => format!("play and sag of arm {}, from drawn ink", session.arm),
        CalibrationKind::Sheet => {
            let method = match session {
                CalibrationSession {
                    read_mm: Some(_), ..
                } => "from the drawn cross".to_owned(),
                CalibrationSession { seen: Some(_), .. } => "by a camera's picture".to_owned(),
                CalibrationSession { ink: Some(_), .. } => "from drawn ink".to_owned(),
                CalibrationSession { probed: true, .. } => count(session.touches.len(), "probe"),
                _ => touches,
            };
            format!("sheet of scene {}, {method}", session.scene)
        }
        CalibrationKind::Zeros => format!("zeros of arm {}, {touches}", session.arm),
        CalibrationKind::Bases => format!("bases of scene {}, {touches}", session.scene),
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

/// Returns a self-contained HTML page: text, picture, and the numbers in a table.
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
    let table = format!(
        "<table><tr><th>touch<th>of<th>x mm<th>y mm<th>z mm<th>off x<th>off y<th>off z<th>off mm</tr>\n{rows}</table>\n"
    );
    let style = "td,th{padding:0 .8em;text-align:right}pre{white-space:pre-wrap}";
    let text = assessment_text(session, assessed);
    let verdict = assessed.finding.verdict;
    page(&title(session), verdict, style, &arrows, &table, &text)
}

/// Returns an HTML page: its title with a verdict, the residuals as a picture, a table and a text.
pub(super) fn page(
    title: &str,
    verdict: FitVerdict,
    style: &str,
    arrows: &[ResidualArrow],
    table: &str,
    text: &str,
) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\n\
         <style>body{{font:15px sans-serif;margin:2em}}pre{{background:#f4f4f4;padding:1em}}{style}</style>\n\
         <h1>{title}: {verdict}</h1>\n{picture}\n{table}<pre>{text}</pre></html>\n",
        title = html_escaped(title),
        verdict = verdict.word(),
        picture = picture(arrows),
        text = html_escaped(text),
    )
}

/// Place of a measurement, and its offset from the expected place; in mm.
pub(super) type ResidualArrow = ([f64; 3], [f64; 3]);

/// Draws points from above, each with its residual: an arrow for its horizontal part, a ring for its vertical part.
fn picture(points: &[ResidualArrow]) -> String {
    let coordinates = |axis: usize| {
        points
            .iter()
            .filter_map(move |(at, _)| at.get(axis).copied())
    };
    let least = [0, 1].map(|axis| coordinates(axis).fold(f64::INFINITY, f64::min));
    let most = [0, 1].map(|axis| coordinates(axis).fold(f64::NEG_INFINITY, f64::max));
    let span = (most[0] - least[0]).max(most[1] - least[1]).max(1.0);
    let scale = (SIDE - 2.0 * MARGIN) / span;
    let lengths = points.iter().map(|(_, [x, y, z])| x.hypot(*y).hypot(*z));
    let longest = lengths.fold(1e-6, f64::max);
    let arrow = ARROW / longest;
    let mut svg = format!(
        "<svg width=\"{SIDE}\" height=\"{SIDE}\" viewBox=\"0 0 {SIDE} {SIDE}\" role=\"img\"><rect width=\"100%\" height=\"100%\" fill=\"#fafafa\"/>"
    );
    for (index, ([x, y, _], [dx, dy, dz])) in points.iter().enumerate() {
        let px = MARGIN + (x - least[0]) * scale;
        let py = SIDE - MARGIN - (y - least[1]) * scale;
        let (tx, ty) = (px + dx * arrow, py - dy * arrow);
        let ring = dz.abs() * arrow / 2.0;
        let colour = if *dz < 0.0 { "#c33" } else { "#36c" };
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
