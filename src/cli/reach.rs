//! `scene reach`: shows where the sheet may lie for an arm and its pen.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use serde_json::{Value, json};

use super::{ExitStatus, NodeOptions, files, scenes, terminal_output};
use node::open;
use plan::{self, ReachMap, SilentObserver};
use scene::Scene;

#[derive(Debug, Args)]
pub(super) struct ReachArgs {
    /// A scene's file, or its name [default: the node's default scene]
    scene: Option<String>,
    /// The overlay on it
    #[arg(long)]
    meta: Option<String>,
    /// Pen of the scene [default: the first]
    #[arg(long, value_name = "NAME")]
    pen: Option<String>,
    /// Folder for reach.png; without it no picture is written
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the result and the whole map as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(node: &NodeOptions, args: &ReachArgs) -> anyhow::Result<ExitStatus> {
    let file = open::file(node)?;
    let library = open::library(node, &file)?;
    let name = scenes::named_or_default(&library, &file, args.scene.as_deref())?;
    let scene = scenes::find(&library, &name, args.meta.as_deref())?;
    let pen = pen(&scene, args.pen.as_deref())?;
    let map = plan::reach(&scene, pen, &SilentObserver)?;
    let save = |out: &PathBuf| save(out, &scene, pen, &map);
    let picture = args.out.as_ref().map(save).transpose()?;
    if args.json {
        terminal_output::json(&as_json(&scene, pen, &map, picture.as_deref()))?;
    } else {
        terminal_output::lines(describe(&scene, &map));
        terminal_output::lines(&picture);
    }
    Ok(ExitStatus::Done)
}

fn pen(scene: &Scene, name: Option<&str>) -> anyhow::Result<usize> {
    let Some(name) = name else { return Ok(0) };
    let found = scene.pens.iter().position(|pen| pen.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = scene.pens.iter().map(|pen| pen.name.as_str()).collect();
        anyhow!("the scene has no pen `{name}`. Valid: {}", names.join(", "))
    })
}

fn save(out: &Path, scene: &Scene, pen: usize, map: &ReachMap) -> anyhow::Result<String> {
    let picture =
        tools::reach_picture(scene, pen, map).context("the map's picture cannot be drawn")?;
    let path = files::write_into(out, "reach.png", &picture)?;
    Ok(path.display().to_string())
}

fn percent(fraction: f64) -> String {
    format!("{:.0} %", fraction * 1e2)
}

fn describe(scene: &Scene, map: &ReachMap) -> [String; 2] {
    let shares = map.shares.iter();
    let shares = shares.map(|(tilt, share)| format!("{} within {tilt:.1}°", percent(*share)));
    let (title, shares) = (scene.title(), shares.collect::<Vec<_>>().join(", "));
    let present = format!("{title}: with the sheet where it is, the pen reaches {shares} of it");
    let better = match &map.suggestion {
        None => "no nearby place is clearly better".to_owned(),
        Some(better) => {
            let ([dx, dy], [x, y, z]) = (better.move_mm, better.origin_m);
            format!(
                "a better place: move the sheet by ({dx:.0}, {dy:.0}) mm along its own axes, to `origin_m = [{x:.4}, {y:.4}, {z:.4}]`. Then the pen reaches {} within its cone, leans by at most {:.1}°, and every joint stays {:.1}° from its limit",
                percent(better.share),
                better.tilt_max_deg,
                better.margin_least_deg
            )
        }
    };
    [present, better]
}

fn as_json(scene: &Scene, pen: usize, map: &ReachMap, picture: Option<&str>) -> Value {
    let rounded = |value: f64| (value * 1e2).round() / 1e2;
    let columns = map.size[0].max(1);
    let rows = |cell: &dyn Fn(&plan::ReachSpot) -> Value| -> Vec<Value> {
        let rows = map.spots.chunks(columns);
        rows.map(|row| row.iter().map(cell).collect()).collect()
    };
    let shares = map.shares.iter();
    let shares = shares.map(|(tilt, share)| json!({ "tilt_deg": rounded(*tilt), "share": share }));
    json!({
        "success": true,
        "scene": scene.title(),
        "arm": scene.arm.file.name,
        "pen": scene.pen(pen).map(|pen| pen.name.clone()),
        "sheet_mm": scene.surface.size_mm(),
        "shares": shares.collect::<Vec<Value>>(),
        "suggestion": map.suggestion,
        "map": {
            "step_mm": map.step_mm,
            "low_mm": map.low_mm,
            "size": map.size,
            "tilt_deg": rows(&|spot| spot.tilt_deg.map_or(Value::Null, |tilt| rounded(tilt).into())),
            "margin_deg": rows(&|spot| spot.tilt_deg.map_or(Value::Null, |_| rounded(spot.margin_deg).into())),
        },
        "files": picture.iter().collect::<Vec<_>>(),
    })
}
