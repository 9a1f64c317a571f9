//! Measures how accurately simulated arms draw before and after they are calibrated, by the commands that a person gives, and
//! prints the tables of docs/accuracy.md.
//!
//! `cargo build --release && cargo run --release --example accuracy [-- SEED…]`
#![expect(clippy::print_stdout, reason = "the tables are what it is for")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

/// The five designs, each on the sheet that was calibrated: name, and the scene file's `[design]`.
const DESIGNS: [(&str, &str); 5] = [
    ("practice", "file = \"practice.svg\"\nsize_mm = 50.0"),
    ("fish", "file = \"fish.svg\"\nsize_mm = 44.0"),
    ("leaf", "file = \"leaf.svg\"\nsize_mm = 44.0"),
    ("letters", "text = \"Steady\"\nsize_mm = 60.0"),
    ("crosses", "file = \"crosses.gcode\"\nsize_mm = 44.0"),
];

/// Scene with the tags by which the camera finds the sheet.
const SCENE: &str = include_str!("../scenes/tagged.toml");

const WORN: &str = include_str!("../scenes/arms/so101-worn.toml");

const CAMERA: &str = r#"
[[cameras]]
name = "top"
size_px = [1920, 1440]
focal_px = [2600.0, 2600.0]
distortion = [-0.08, 0.02, 0.0005, -0.0005, 0.0]
source = "simulator"
[cameras.simulated]
stands_m = [0.03, -0.40, 0.385]
looks_at_m = [0.02, -0.223, 0.005]
"#;

/// Most rounds of `align` with ink.
const ROUNDS_MAX: usize = 4;

fn main() -> anyhow::Result<()> {
    let seeds: Result<Vec<u32>, _> = std::env::args().skip(1).map(|seed| seed.parse()).collect();
    let mut seeds = seeds.context("seeds are whole numbers")?;
    if seeds.is_empty() {
        seeds = (1..=6).collect();
    }
    println!(
        "| seed | design | before: 95 %, largest | play and sag | and the sheet, 95 %, largest |"
    );
    println!("|---|---|---|---|---|");
    for seed in seeds {
        WornArm::new(seed)?.measure()?;
    }
    Ok(())
}

/// A worn arm of one seed, with its files in a folder of their own.
struct WornArm {
    seed: u32,
    folder: tempfile::TempDir,
}

impl WornArm {
    fn new(seed: u32) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        for name in ["scenes/arms", "truth/arms"] {
            std::fs::create_dir_all(folder.path().join(name))?;
        }
        let arm = Self { seed, folder };
        let worn = WORN.replace("seed = 1\n", &format!("seed = {seed}\n"));
        for scenes in ["scenes", "truth"] {
            std::fs::write(arm.path(scenes).join("arms/so101-worn.toml"), &worn)?;
            std::fs::write(arm.path(scenes).join("tagged.toml"), SCENE)?;
            arm.lay_designs(scenes, SCENE)?;
        }
        let node = format!(
            "name = \"worn\"\n[[arms]]\nname = \"arm\"\nmodel = \"so101-worn\"\nport = \"simulator\"\ntruth = {:?}\n{CAMERA}",
            arm.path("truth")
        );
        std::fs::write(arm.path("node.toml"), node)?;
        Ok(arm)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes the scene of each design, with all else as `scene` has it.
    fn lay_designs(&self, scenes: &str, scene: &str) -> anyhow::Result<()> {
        let (before, behind) = scene.split_once("[design]").context("no [design]")?;
        let (_, behind) = behind
            .split_once("\n[")
            .context("nothing behind [design]")?;
        for (name, design) in DESIGNS {
            let before = before.replace("name = \"tagged\"", &format!("name = \"{name}\""));
            let text = format!("{before}[design]\n{design}\n\n[{behind}");
            std::fs::write(self.path(scenes).join(format!("{name}.toml")), text)?;
        }
        Ok(())
    }

    fn measure(&self) -> anyhow::Result<()> {
        let before = self.draw_all()?;
        self.align("touch")?;
        self.accept()?;
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS_MAX {
            if !self.align("ink")? {
                break;
            }
            self.accept()?;
            let accepted = std::fs::read_to_string(self.path("scenes/tagged.toml"))?;
            self.lay_designs("scenes", &accepted)?;
            rounds.push(self.draw_all()?);
        }
        ensure!(
            !rounds.is_empty(),
            "seed {}: nothing was proposed",
            self.seed
        );
        for (design, (name, _)) in DESIGNS.iter().enumerate() {
            let of = |drawn: &[String]| drawn.get(design).cloned().unwrap_or_default();
            let first = rounds.first().map_or_else(String::new, |drawn| of(drawn));
            let last = rounds.last().map_or_else(String::new, |drawn| of(drawn));
            println!(
                "| {} | {name} | {} | {first} | {last} |",
                self.seed,
                of(&before)
            );
        }
        Ok(())
    }

    /// Draws every design and returns its deviation, 95 % and largest, in words.
    fn draw_all(&self) -> anyhow::Result<Vec<String>> {
        let drawn = DESIGNS.iter().map(|(name, _)| {
            let drawn = self.call(
                "stroke",
                &format!("{{\"scene\":\"{name}\",\"again\":true}}"),
            )?;
            let figure = |key: &str| drawn.get(key).and_then(Value::as_f64).context("no figure");
            Ok(format!(
                "{:.2}, {:.2} mm",
                figure("deviation_mm_p95")?,
                figure("deviation_mm_max")?
            ))
        });
        drawn.collect()
    }

    /// Aligns by touch or by ink, and returns whether something is proposed.
    fn align(&self, by: &str) -> anyhow::Result<bool> {
        let told = self.call("align", &format!("{{\"scene\":\"tagged\",\"{by}\":true}}"))?;
        let next = told.get("next").and_then(Value::as_str).unwrap_or_default();
        Ok(next.contains("calibrate accept"))
    }

    fn accept(&self) -> anyhow::Result<()> {
        self.run(&["calibrate", "accept", "--override"])?;
        Ok(())
    }

    fn call(&self, tool: &str, arguments: &str) -> anyhow::Result<Value> {
        let text = self.run(&["call", "--json", tool, arguments])?;
        let end = text.rfind('}').map_or(0, |end| end + 1);
        let told: Value = serde_json::from_str(text.get(..end).unwrap_or_default())?;
        ensure!(
            told.get("success") == Some(&Value::Bool(true)),
            "{tool} {arguments}: {told:#}"
        );
        Ok(told)
    }

    fn run(&self, args: &[&str]) -> anyhow::Result<String> {
        let output = Command::new(program()?)
            .arg("--config")
            .arg(self.path("node.toml"))
            .arg("--state")
            .arg(self.path("state"))
            .arg("--scenes")
            .arg(self.path("scenes"))
            .args(args)
            .stdin(Stdio::null())
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            bail!("{args:?}: {text}{errors}");
        }
        Ok(text)
    }
}

/// The program beside this one.
fn program() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().and_then(Path::parent).context("no folder")?;
    let program = folder.join("steadyhand");
    ensure!(
        program.exists(),
        "{} is missing: build it first, as `cargo build` with the same profile",
        program.display()
    );
    Ok(program)
}
