//! Measures how accurately simulated arms draw before and after calibration, using the commands of a person, and prints the
//! tables of docs/internals/measurements.md.
//!
//! `cargo build --release && cargo run --release --example accuracy [-- SEED…]`
#![expect(clippy::print_stdout, reason = "the tables are its output")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use steadyhand::scene::{Scene, SceneLibrary};
use steadyhand::sim::ArmSimulator;
use toml::Table;

/// The five designs on the calibrated sheet: name, and `[design]` of the scene file.
const DESIGNS: [(&str, &str); 5] = [
    ("practice", "file = \"practice.svg\"\nsize_mm = 50.0"),
    ("fish", "file = \"fish.svg\"\nsize_mm = 44.0"),
    ("leaf", "file = \"leaf.svg\"\nsize_mm = 44.0"),
    ("letters", "text = \"Steady\"\nsize_mm = 60.0"),
    ("crosses", "file = \"crosses.gcode\"\nsize_mm = 44.0"),
];

/// Scene with the tags that the camera uses to find the sheet.
const TAGGED: &str = include_str!("../scenes/tagged.toml");

const WORN: &str = include_str!("../scenes/arms/so101-worn.toml");

/// Camera above the sheet of [`TAGGED`].
const CAMERA: &str = include_str!("../tests/support/top_camera.toml");

macro_rules! shipped {
    ($arm:literal, $scene:literal) => {
        ShippedArm {
            name: $arm,
            file: include_str!(concat!("../scenes/arms/", $arm, ".toml")),
            scene: include_str!(concat!("../scenes/", $scene, ".toml")),
            wear: &[],
            press_mm: None,
            closer_mm: 0.0,
        }
    };
}

/// A shipped arm, and the scene that it draws.
struct ShippedArm {
    name: &'static str,
    file: &'static str,
    scene: &'static str,
    /// Wear quantities that differ from those of the worn arm.
    wear: &'static [(&'static str, f64)],
    /// Depth to which the pen is pressed, if it is not the scene's.
    press_mm: Option<f64>,
    /// Distance by which the enlarged sheet lies closer to the arm's base than in the scene.
    closer_mm: f64,
}

/// Wear of DYNAMIXEL servos with metal gears, whose maker states 0.25° of play (15 arc minutes) and at least 4.1 N m of stall
/// torque: twice the play of new ones, and the so101's sag scaled by the ratio of stall torques.
const METAL_WEAR: &[(&str, f64)] = &[("play_deg", 0.5), ("sag_deg_per_n_m", 0.15)];

/// Depth for arms whose servos move the tip by 0.6 mm or more per count: the full compliance of a pen.
const COARSE_PRESS_MM: Option<f64> = Some(2.0);

const SHIPPED: [ShippedArm; 6] = [
    shipped!("so101", "tagged"),
    shipped!("so100", "so100"),
    ShippedArm {
        // Farther out, its wrist cannot hold the pen upright.
        closer_mm: 25.0,
        ..shipped!("koch", "koch")
    },
    ShippedArm {
        wear: METAL_WEAR,
        ..shipped!("openmanipulator-x", "openmanipulator_x")
    },
    ShippedArm {
        wear: METAL_WEAR,
        press_mm: COARSE_PRESS_MM,
        ..shipped!("widowx250s", "widowx")
    },
    ShippedArm {
        wear: METAL_WEAR,
        press_mm: COARSE_PRESS_MM,
        ..shipped!("vx300", "vx300")
    },
];

/// Minimum width and height of a sheet with room for the pattern and four tags.
const SHEET_MM_MIN: f64 = 100.0;

/// Side of a tag, and the distance of its centre from the sheet's edge.
const TAG_MM: [f64; 2] = [14.0, 11.0];

/// Offset of the camera from the sheet's centre: along the sheet's y axis, and above it.
const CAMERA_OFFSET_MM: [f64; 2] = [177.0, 380.0];

/// Most rounds of `align` with ink.
const ROUNDS_MAX: usize = 4;

/// Rotation of a joint to either side over which its play is averaged.
const OVER_SHEET_DEG: i32 = 10;

fn main() -> anyhow::Result<()> {
    let seeds: Result<Vec<u32>, _> = std::env::args().skip(1).map(|seed| seed.parse()).collect();
    let mut seeds = seeds.context("seeds are whole numbers")?;
    if seeds.is_empty() {
        seeds = (1..=6).collect();
    }
    print_arms()?;
    print_designs(&seeds)
}

/// Prints the table of the shipped arms.
fn print_arms() -> anyhow::Result<()> {
    println!(
        "| arm | as shipped | worn, not calibrated | calibrated | play found | truly, over the sheet |"
    );
    println!("|---|---|---|---|---|---|");
    for shipped in &SHIPPED {
        let ShippedArm { name, file, .. } = *shipped;
        let scene = with_tags(shipped)?;
        let new = first_deviation(&SimulatedArm::new(name, file, &scene, &[])?)?;
        let worn = with_wear(&worn(file, 1)?, shipped.wear);
        let before = first_deviation(&SimulatedArm::new(name, &worn, &scene, &[])?)?;
        let arm = SimulatedArm::new(name, &worn, &scene, &[])?;
        let true_play = arm.true_play()?;
        let after = match calibrate_and_draw(&arm) {
            Ok(after) => after,
            Err(error) => format!("{} | –", first_line(&error)),
        };
        println!("| `{name}` | {new} | {before} | {after} | {true_play} |");
    }
    println!();
    Ok(())
}

/// Draws the scene's own design and returns its deviation, or the reason for having none.
fn first_deviation(arm: &SimulatedArm) -> anyhow::Result<String> {
    match arm.draw_all() {
        Ok(deviations) => deviations.first().cloned().context("nothing was drawn"),
        Err(error) => Ok(first_line(&error)),
    }
}

/// Returns two columns of the table of arms: the deviation after calibration, and the play found.
fn calibrate_and_draw(arm: &SimulatedArm) -> anyhow::Result<String> {
    let rounds = arm.calibrate()?;
    let after = arm.draw_all()?;
    Ok(format!(
        "{} ({rounds}) | {}",
        after.concat(),
        arm.found_play()?
    ))
}

/// Returns an error without the advice that follows it.
fn first_line(error: &anyhow::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    let reason = line.split("; ").next().unwrap_or_default();
    reason.replace('|', "/")
}

/// Prints the table of designs: for arms of these seeds, for one whose wear the model describes fully, and for one without wear.
fn print_designs(seeds: &[u32]) -> anyhow::Result<()> {
    let modelled = SimulatedArm::new("so101-worn", &as_modelled()?, TAGGED, &DESIGNS)?;
    modelled.calibrate()?;
    let floor = modelled.draw_all()?;
    let unworn = WORN.split_once("[simulation.wear]");
    let (unworn, _) = unworn.context("no [simulation.wear]")?;
    let unworn = SimulatedArm::new("so101-worn", unworn, TAGGED, &DESIGNS)?.draw_all()?;
    println!("| seed | design | not calibrated | calibrated | model's floor | without wear |");
    println!("|---|---|---|---|---|---|");
    for seed in seeds {
        let arm = SimulatedArm::new("so101-worn", &worn(WORN, *seed)?, TAGGED, &DESIGNS)?;
        let before = arm.draw_all()?;
        let rounds = arm.calibrate()?;
        let after = arm.draw_all()?;
        let columns = before.iter().zip(&after).zip(floor.iter().zip(&unworn));
        for ((design, _), ((before, after), (floor, unworn))) in DESIGNS.iter().zip(columns) {
            println!("| {seed} | {design} | {before} | {after} ({rounds}) | {floor} | {unworn} |");
        }
    }
    Ok(())
}

/// Returns an arm's file with the wear of the shipped worn arm, for this seed.
fn worn(arm: &str, seed: u32) -> anyhow::Result<String> {
    let (_, wear) = WORN
        .split_once("[simulation.wear]")
        .context("no [simulation.wear]")?;
    let (arm, _) = arm.split_once("[simulation.wear]").unwrap_or((arm, ""));
    let table: Table = arm.parse()?;
    let capsules = table.get("capsules").and_then(toml::Value::as_array);
    let names = capsules
        .into_iter()
        .flatten()
        .filter_map(|capsule| capsule.get("name")?.as_str());
    let worn_arm: Table = format!("[wear]{wear}").parse()?;
    let masses = worn_arm.get("wear").and_then(|wear| wear.get("masses_g"));
    let mut mass_entries = Vec::new();
    for name in names.filter(|name| *name != "base") {
        let mass = masses.and_then(|all| all.get(name)?.as_integer());
        mass_entries.push(format!("{name:?} = {}", mass.unwrap_or(100)));
    }
    let lines = wear.lines().map(|line| match line.split_once(" = ") {
        Some(("seed", _)) => format!("seed = {seed}"),
        Some(("masses_g", _)) => format!("masses_g = {{ {} }}", mass_entries.join(", ")),
        _ => line.to_owned(),
    });
    let lines: Vec<String> = lines.collect();
    Ok(format!("{arm}\n[simulation.wear]{}\n", lines.join("\n")))
}

/// Returns the worn arm's file with constant play along each rotation, and without servo friction and drift.
fn as_modelled() -> anyhow::Result<String> {
    const UNMODELLED: [&str; 4] = [
        "play_spread",
        "servo_friction_n_m",
        "servo_friction_per_load",
        "zero_drift_deg_per_k",
    ];
    let text = worn(WORN, 1)?;
    Ok(with_wear(&text, &UNMODELLED.map(|key| (key, 0.0))))
}

/// Returns a worn arm's file with these quantities replaced.
fn with_wear(arm: &str, wear: &[(&str, f64)]) -> String {
    let lines = arm.lines().map(|line| {
        let key = line.split_once(" = ").map(|(key, _)| key);
        let entry = wear.iter().find(|(entry, _)| key == Some(*entry));
        entry.map_or_else(
            || line.to_owned(),
            |(key, value)| format!("{key} = {value:?}"),
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn joint_names(arm: &Table) -> Vec<String> {
    let joints = arm.get("joints").and_then(toml::Value::as_array);
    joints
        .into_iter()
        .flatten()
        .filter_map(|joint| joint.get("name")?.as_str().map(str::to_owned))
        .collect()
}

/// Returns a scene's file as scene `tagged`: with a sheet large enough for the pattern, and a tag in each corner.
fn with_tags(shipped: &ShippedArm) -> anyhow::Result<String> {
    let mut table: Table = shipped.scene.parse()?;
    table.insert("name".to_owned(), "tagged".into());
    if table.contains_key("fiducials") {
        return Ok(toml::to_string(&table)?);
    }
    let surface = &load_scene(shipped.scene)?.surface;
    let [width_mm, height_mm] = surface.size_mm();
    let size_mm = [width_mm, height_mm].map(|mm| mm.max(SHEET_MM_MIN));
    let [right, top] = size_mm;
    let corner = surface.at([
        (width_mm - right) / 2.0,
        (height_mm - top) / 2.0 - shipped.closer_mm,
    ]);
    let origin = <[f64; 3]>::from(corner.point_m.coords);
    let sheet = table.get_mut("sheet").and_then(toml::Value::as_table_mut);
    let sheet = sheet.context("no [sheet]")?;
    sheet.insert("origin_m".to_owned(), numbers(&origin));
    sheet.insert("size_mm".to_owned(), numbers(&size_mm));
    if let Some(press_mm) = shipped.press_mm {
        let heights = Table::from_iter([("press_mm".to_owned(), press_mm.into())]);
        table.insert("heights".to_owned(), heights.into());
    }
    let mut text = toml::to_string(&table)?;
    text.push_str("\n[fiducials]\nfamily = \"36h11\"\nmoved_mm_max = 2.0\nmoved_deg_max = 1.0\n");
    let [side, edge] = TAG_MM;
    let [right, top] = size_mm.map(|mm| mm - edge);
    let corners = [[edge, edge], [right, edge], [right, top], [edge, top]];
    for (id, [x, y]) in corners.iter().enumerate() {
        write!(
            text,
            "\n[[fiducials.tags]]\nid = {id}\nat_mm = [{x:.1}, {y:.1}]\nsize_mm = {side:.1}\n"
        )?;
    }
    Ok(text)
}

fn numbers(values: &[f64]) -> toml::Value {
    values
        .iter()
        .copied()
        .map(toml::Value::from)
        .collect::<Vec<_>>()
        .into()
}

/// Loads a scene's file together with the shipped arms.
fn load_scene(scene: &str) -> anyhow::Result<Arc<Scene>> {
    let table: Table = scene.parse()?;
    let name = table.get("name").and_then(toml::Value::as_str);
    let name = name.context("no name")?;
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join(format!("{name}.toml")), scene)?;
    let library = SceneLibrary::new(Some(folder.path().to_owned()));
    Ok(library.scene(name, None)?)
}

/// Returns the node file's camera above the sheet of a scene.
fn camera(scene: &Scene) -> String {
    let [x, y] = scene.surface.size_mm().map(|mm| mm / 2.0);
    let [along_mm, above_mm] = CAMERA_OFFSET_MM;
    let point_m = |at_mm: [f64; 2], height_mm: f64| {
        let place = scene.surface.at(at_mm);
        <[f64; 3]>::from(place.point_m.coords + place.normal.scale(height_mm / 1e3))
    };
    let lines = CAMERA.lines().map(|line| match line.split_once(" = ") {
        Some(("stands_m", _)) => format!("stands_m = {:?}", point_m([x, y + along_mm], above_mm)),
        Some(("looks_at_m", _)) => format!("looks_at_m = {:?}", point_m([x, y], 0.0)),
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A simulated arm over a sheet that a camera sees, with its files in a temporary folder.
struct SimulatedArm {
    model: String,
    designs: Vec<(String, String)>,
    folder: tempfile::TempDir,
}

impl SimulatedArm {
    /// Writes the files of an arm, its scene and these designs; without designs, the scene's own is drawn.
    fn new(model: &str, file: &str, scene: &str, designs: &[(&str, &str)]) -> anyhow::Result<Self> {
        let designs = designs
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        let arm = Self {
            model: model.to_owned(),
            designs: designs.collect(),
            folder: tempfile::tempdir()?,
        };
        for scenes in ["scenes", "truth"] {
            std::fs::create_dir_all(arm.path(scenes).join("arms"))?;
            std::fs::write(arm.path(scenes).join(format!("arms/{model}.toml")), file)?;
            std::fs::write(arm.path(scenes).join("tagged.toml"), scene)?;
            arm.write_designs(scenes, scene)?;
        }
        let node = format!(
            "name = \"worn\"\n[[arms]]\nname = \"arm\"\nmodel = {model:?}\nport = \"simulator\"\ntruth = {:?}\n{}",
            arm.path("truth"),
            camera(&*load_scene(scene)?)
        );
        std::fs::write(arm.path("node.toml"), node)?;
        Ok(arm)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a scene for each design, otherwise equal to `scene`.
    fn write_designs(&self, scenes: &str, scene: &str) -> anyhow::Result<()> {
        for (name, design) in &self.designs {
            let mut table: Table = scene.parse()?;
            table.insert("name".to_owned(), name.as_str().into());
            table.insert("design".to_owned(), design.parse::<Table>()?.into());
            let file = self.path(scenes).join(format!("{name}.toml"));
            std::fs::write(file, toml::to_string(&table)?)?;
        }
        Ok(())
    }

    /// Calibrates like a person, by touch if the arm can and by ink, and describes what was done.
    fn calibrate(&self) -> anyhow::Result<String> {
        let mut touch = self.touch();
        let mut rounds = 0;
        while rounds < ROUNDS_MAX && self.ink()? {
            self.accept()?;
            rounds += 1;
            if touch.is_err() {
                // Once its sag is known, the arm may reach the sheet.
                touch = self.touch();
            }
        }
        let accepted = std::fs::read_to_string(self.path("scenes/tagged.toml"))?;
        self.write_designs("scenes", &accepted)?;
        ensure!(rounds > 0, "ink: nothing was proposed");
        Ok(match touch {
            Ok(()) => format!("{rounds} rounds"),
            Err(error) => format!("{rounds} rounds, no touch: {}", first_line(&error)),
        })
    }

    /// Has the arm feel the sheet, after it has measured its sag.
    fn touch(&self) -> anyhow::Result<()> {
        loop {
            let touched = match self.call("align", r#"{"scene":"tagged","touch":true}"#) {
                Ok(touched) => touched,
                Err(error) => {
                    self.call("reset", "{}")?;
                    return Err(error);
                }
            };
            self.accept()?;
            let points = touched.get("points").and_then(Value::as_array);
            if points.is_some_and(|points| !points.is_empty()) {
                return Ok(());
            }
        }
    }

    /// Returns the mean play of each joint over the sheet, as text.
    fn true_play(&self) -> anyhow::Result<String> {
        let library = SceneLibrary::new(Some(self.path("truth")));
        let scene = library.scene("tagged", None)?;
        let gears = ArmSimulator::new(&scene.arm, &scene.ready_rad);
        let range_deg = -OVER_SHEET_DEG..=OVER_SHEET_DEG;
        let plays = scene
            .ready_rad
            .iter()
            .enumerate()
            .map(|(joint, ready_rad)| {
                let angles = range_deg
                    .clone()
                    .map(|deg| ready_rad + f64::from(deg).to_radians());
                let sum_rad: f64 = angles.map(|at_rad| gears.play_rad(joint, at_rad)).sum();
                let mean_deg = sum_rad.to_degrees() / f64::from(2 * OVER_SHEET_DEG + 1);
                format!("{} {mean_deg:.2}°", scene.arm.joint_name(joint))
            });
        Ok(plays.collect::<Vec<_>>().join(", "))
    }

    /// Draws every design and returns its 95 % and largest deviation, as text.
    fn draw_all(&self) -> anyhow::Result<Vec<String>> {
        if self.designs.is_empty() {
            return Ok(vec![self.draw("tagged")?]);
        }
        self.designs
            .iter()
            .map(|(name, _)| self.draw(name))
            .collect()
    }

    /// A worn arm's drawing is no success where its ink lies too far off, and is judged all the same.
    fn draw(&self, scene: &str) -> anyhow::Result<String> {
        let arguments = format!("{{\"scene\":\"{scene}\",\"again\":true}}");
        let result = self.ask("stroke", &arguments)?;
        let figure = |key: &str| {
            let figure = result.get(key).and_then(Value::as_f64);
            figure.with_context(|| message(&result).to_owned())
        };
        Ok(format!(
            "{:.2}, {:.2} mm",
            figure("deviation_mm_p95")?,
            figure("deviation_mm_max")?
        ))
    }

    /// Returns the play in the arm's file, for the joints that have any.
    fn found_play(&self) -> anyhow::Result<String> {
        let file = self
            .path("scenes/arms")
            .join(format!("{}.toml", self.model));
        let file: Table = std::fs::read_to_string(file)?.parse()?;
        let plays_deg = file.get("compensation").and_then(|of| of.get("play_deg"));
        let plays = plays_deg
            .and_then(toml::Value::as_array)
            .into_iter()
            .flatten();
        let plays = plays.filter_map(toml::Value::as_float);
        let names = joint_names(&file);
        let with_play = names.iter().zip(plays).filter(|(_, deg)| *deg > 0.0);
        let texts: Vec<String> = with_play
            .map(|(name, deg)| format!("{name} {deg:.2}°"))
            .collect();
        Ok(if texts.is_empty() {
            "none".to_owned()
        } else {
            texts.join(", ")
        })
    }

    /// Draws and reads the pattern, and returns whether something is proposed.
    fn ink(&self) -> anyhow::Result<bool> {
        let result = self.call("align", r#"{"scene":"tagged","ink":true}"#)?;
        let next = result
            .get("next")
            .and_then(Value::as_str)
            .unwrap_or_default();
        Ok(next.contains("calibrate accept"))
    }

    fn accept(&self) -> anyhow::Result<()> {
        self.run(&["calibrate", "accept", "--override"])?;
        Ok(())
    }

    /// Calls a tool that must succeed.
    fn call(&self, tool: &str, arguments: &str) -> anyhow::Result<Value> {
        let result = self.ask(tool, arguments)?;
        let is_done = result.get("success") == Some(&Value::Bool(true));
        ensure!(is_done, "{tool}: {}", message(&result));
        Ok(result)
    }

    fn ask(&self, tool: &str, arguments: &str) -> anyhow::Result<Value> {
        let text = self.run(&["call", "--json", tool, arguments])?;
        let end = text.rfind('}').map_or(0, |end| end + 1);
        Ok(serde_json::from_str(text.get(..end).unwrap_or_default())?)
    }

    /// Runs the program, and returns its output; a refused call prints its reason as JSON, like an answered one.
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
        if !output.status.success() && !text.starts_with('{') {
            let errors = String::from_utf8_lossy(&output.stderr);
            bail!("{}: {text}{errors}", args.join(" "));
        }
        Ok(text)
    }
}

fn message(result: &Value) -> &str {
    let text = result.get("message").and_then(Value::as_str);
    text.unwrap_or_default()
}

/// Returns the path of the program next to this one.
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
