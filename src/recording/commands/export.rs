//! `recording export`: writes recordings in other formats. The same recordings give the same files.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{ExportForm, read_recording};
use crate::lerobot;
use crate::recorded_job::RecordedJob;
use anyhow::{Context, bail};
use base::disk;
use base::plain_file;
use base::terminal as show;
use base::wording::count;
use node::{ExitStatus, NodeOptions};

/// Height of the pen over the paper between lines, in exported G-code.
const TRAVEL_MM: f64 = 5.0;

/// Speed of lines in exported G-code, in mm per minute.
const FEED_MM_MIN: u32 = 1_200;

pub(super) fn run(
    node: &NodeOptions,
    form: ExportForm,
    recordings: &[String],
    out: &Path,
    fps: u32,
) -> anyhow::Result<ExitStatus> {
    let jobs: Vec<RecordedJob> = recordings
        .iter()
        .map(|recording| read_recording(node, recording))
        .collect::<anyhow::Result<_>>()?;
    for job in &jobs {
        let path = job.path.display();
        if job.is_torn {
            show::note(&format!(
                "{path} is damaged: only the part before the damage is exported"
            ));
        }
        for warning in job.warnings() {
            show::note(&format!("{path}: {warning}"));
        }
    }
    std::fs::create_dir_all(out)
        .with_context(|| format!("cannot make the folder {}", out.display()))?;
    let text: fn(&RecordedJob) -> String = match form {
        ExportForm::Lerobot => {
            let lines = lerobot::export(&jobs, out, fps)?;
            lines.iter().for_each(|line| show::line(line));
            return Ok(ExitStatus::Done);
        }
        ExportForm::Csv => csv,
        ExportForm::Svg => svg,
        ExportForm::Gcode => gcode,
    };
    let mut files = Vec::new();
    for job in &jobs {
        let file = output_path(out, job, form, &files);
        files.push(file.clone());
        let content = text(job);
        refuse_other_content(&file, &content)?;
        disk::put(&file, &content).with_context(|| format!("cannot write {}", file.display()))?;
        let lines = count(job.ink().len(), "line");
        show::line(&format!(
            "{} ({lines}, {} ticks)",
            file.display(),
            job.ticks.len()
        ));
    }
    Ok(ExitStatus::Done)
}

/// Refuses to write over a file that holds anything else than what is exported: every node has a `job-1`.
fn refuse_other_content(file: &Path, content: &str) -> anyhow::Result<()> {
    match plain_file::read(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Ok(stored) if stored == content.as_bytes() => Ok(()),
        _ => bail!(
            "{} holds a different recording. Next: name another folder with --out",
            file.display()
        ),
    }
}

/// Returns the file for a job: none of those of other jobs of this export, for every node has a `job-1`.
fn output_path(out: &Path, job: &RecordedJob, form: ExportForm, taken: &[PathBuf]) -> PathBuf {
    let extension = match form {
        ExportForm::Svg => "svg",
        ExportForm::Gcode => "gcode",
        ExportForm::Csv | ExportForm::Lerobot => "csv",
    };
    let name = job.name();
    let plain = out.join(format!("{name}.{extension}"));
    let numbered = (2..).map(|number| out.join(format!("{name}_{number}.{extension}")));
    let mut places = std::iter::once(plain).chain(numbered);
    places
        .find(|place| !taken.contains(place))
        .unwrap_or_default()
}

/// Formats one row for each tick: time, setpoints and readings. A cell without a reading is empty.
fn csv(job: &RecordedJob) -> String {
    let names = job.plans.first().map(|plan| plan.joints.clone());
    let names = names.unwrap_or_default();
    let servos = job.ticks.iter().map(|tick| tick.load_ratio.len()).max();
    let servos = servos.unwrap_or(0);
    let mut headers: Vec<String> = [
        "time_s", "motion", "sample", "doing", "stroke", "pen", "state",
    ]
    .map(str::to_owned)
    .to_vec();
    headers.extend(names.iter().map(|name| format!("{name}_sent_rad")));
    headers.extend(names.iter().map(|name| format!("{name}_read_rad")));
    headers.extend(
        ["tip", "target"]
            .iter()
            .flat_map(|point| ["x", "y", "height"].map(|axis| format!("{point}_{axis}_mm"))),
    );
    headers.extend((1..=servos).map(|servo| format!("servo_{servo}_load_ratio")));
    headers.extend((1..=servos).map(|servo| format!("servo_{servo}_temperature_c")));
    let mut text = headers.join(",") + "\n";
    for tick in &job.ticks {
        let mut cells = vec![
            format!("{:.6}", job.time_s(tick)),
            tick.motion.to_string(),
            tick.sample.to_string(),
            tick.doing.clone(),
            tick.stroke
                .map_or_else(String::new, |stroke| (stroke + 1).to_string()),
            (tick.pen + 1).to_string(),
            tick.state.clone(),
        ];
        let padded = |values: &[f64], count: usize| -> Vec<String> {
            (0..count)
                .map(|at| values.get(at).map_or_else(String::new, ToString::to_string))
                .collect()
        };
        cells.extend(padded(&tick.setpoint_rad, names.len()));
        cells.extend(padded(&tick.position_rad, names.len()));
        for output_path in [tick.tip_mm, tick.target_mm] {
            cells.extend(padded(
                output_path
                    .as_ref()
                    .map_or(&[], |output_path| output_path.as_slice()),
                3,
            ));
        }
        for values in [&tick.load_ratio, &tick.temperature_c] {
            let reading = |servo: usize| values.get(servo).copied().flatten();
            cells.extend(
                (0..servos).map(|servo| reading(servo).map_or_else(String::new, |v| v.to_string())),
            );
        }
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    text
}

/// Formats the ink on its sheet as SVG in millimetres, whose y points down.
fn svg(job: &RecordedJob) -> String {
    let [width, height] = job.sheet_mm();
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}mm\" height=\"{height}mm\" viewBox=\"0 0 {width} {height}\">\n"
    );
    for ink in job.ink() {
        let ([r, g, b], width_mm) = job.look(&ink);
        let points = ink
            .points_mm
            .iter()
            .map(|[x, y]| format!("{x:.3},{:.3}", height - y));
        let points: Vec<String> = points.collect();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  <polyline fill=\"none\" stroke=\"#{r:02x}{g:02x}{b:02x}\" stroke-width=\"{width_mm}\" stroke-linecap=\"round\" stroke-linejoin=\"round\" points=\"{}\"/>",
            points.join(" ")
        );
    }
    text.push_str("</svg>\n");
    text
}

/// Formats the ink as moves in millimetres; z 0 is on the paper.
fn gcode(job: &RecordedJob) -> String {
    let mut text = format!("; measured ink of {}\nG21\nG90\n", job.name());
    let mut pen = None;
    for ink in job.ink() {
        if pen != Some(ink.pen) {
            pen = Some(ink.pen);
            // Pens count from 1 for people.
            let _ = writeln!(text, "T{}", ink.pen + 1);
        }
        let mut points = ink.points_mm.iter();
        if let Some([x, y]) = points.next() {
            let _ = writeln!(
                text,
                "G0 Z{TRAVEL_MM}\nG0 X{x:.3} Y{y:.3}\nG1 Z0 F{FEED_MM_MIN}"
            );
        }
        for [x, y] in points {
            let _ = writeln!(text, "G1 X{x:.3} Y{y:.3}");
        }
    }
    let _ = writeln!(text, "G0 Z{TRAVEL_MM}\nM2");
    text
}
