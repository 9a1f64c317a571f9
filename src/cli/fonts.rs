//! `fonts`: lists the single-line fonts, and writes a sheet with a sample of each.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use super::{ExitStatus, terminal_output};
use base::disk;
use design::StrokeFont;
use design::letters::specimen;

#[derive(Debug, Args)]
pub(super) struct FontsArgs {
    /// Write a sheet with a sample of each font to this SVG file, which can be drawn
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the fonts as JSON
    #[arg(long)]
    json: bool,
}

/// A letter of each script, with the script's name.
const SCRIPTS: [(&str, char); 3] = [("Latin", 'a'), ("Greek", 'ω'), ("Cyrillic", 'ж')];

/// Returns the scripts that a font has.
fn scripts(font: StrokeFont) -> Vec<&'static str> {
    let has = |(_, letter): &(&str, char)| font.has(*letter);
    let scripts = SCRIPTS.into_iter().filter(has);
    scripts.map(|(script, _)| script).collect()
}

pub(super) fn run(args: &FontsArgs) -> anyhow::Result<ExitStatus> {
    match args.json {
        true => print_json()?,
        false => print_table(),
    }
    if let Some(path) = &args.out {
        let name = path.display();
        disk::put(path, &specimen()).with_context(|| format!("cannot write {name}"))?;
        terminal_output::note(&format!(
            "{name} shows a sample of each font. Next: look at it"
        ));
    }
    Ok(ExitStatus::Done)
}

fn print_table() {
    for font in StrokeFont::all() {
        let about = format!("{} ({})", font.about(), scripts(font).join(", "));
        terminal_output::line(&format!("{:<12} {about}", font.name()));
    }
}

fn print_json() -> anyhow::Result<()> {
    let fonts = StrokeFont::all().map(|font| {
        serde_json::json!({
            "name": font.name(),
            "family": font.family(),
            "about": font.about(),
            "scripts": scripts(font),
            "credit": font.credit(),
        })
    });
    terminal_output::json(&fonts.collect::<Vec<_>>())
}
