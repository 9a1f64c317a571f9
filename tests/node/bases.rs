//! Where the bases of two arms stand to each other, as the arms feel it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failing test may panic"
)]

use crate::support;
use serde_json::Value;
use support::Bench;

const SHIPPED: &str = include_str!("../../scenes/two_arms.toml");

/// The right arm's base in the shipped scene.
const BASE: &str = "base_m = [0.187, 0.0, 0.0]\nbase_yaw_deg = -90.0";

/// Where it really stands: lower, and leaning about the line between both arms and across it.
const DOWN_MM: f64 = 1.8;
const LEAN_DEG: [f64; 2] = [0.25, -0.3];

/// Two simulated arms, of which the right one does not stand where the scene says.
struct LeaningPair(Bench);

impl LeaningPair {
    /// `stated` is what the scene says of each arm's uncertainty.
    fn new(stated: &str) -> Self {
        let bench = Bench::new().with_file("");
        std::fs::create_dir_all(bench.path("truth")).unwrap();
        std::fs::create_dir_all(bench.path("scenes")).unwrap();
        let truth = SHIPPED.replace(
            BASE,
            &format!(
                "base_m = [0.187, 0.0, {}]\nbase_yaw_deg = -90.0\nbase_tilt_deg = {LEAN_DEG:?}",
                -DOWN_MM / 1e3
            ),
        );
        assert_ne!(truth, SHIPPED);
        std::fs::write(bench.path("truth/two_arms.toml"), truth).unwrap();
        let scene = SHIPPED.replace(
            "model = \"so101\"\n",
            &format!("model = \"so101\"\n{stated}\n"),
        );
        std::fs::write(bench.path("scenes/two_arms.toml"), scene).unwrap();
        let arm = |name: &str| {
            format!(
                "[[arms]]\nname = \"{name}\"\nmodel = \"so101\"\nport = \"simulator\"\ntruth = {:?}\n",
                bench.path("truth")
            )
        };
        bench.file(&format!("name = \"pair\"\n{}{}", arm("left"), arm("right")));
        Self(bench)
    }

    fn touch(&self, arm: &str) -> Value {
        let arguments = format!(r#"{{"scene": "two_arms", "arm": "{arm}", "bases": true}}"#);
        let result = self.0.call(&["align", &arguments]).1;
        assert_eq!(result["success"], true, "{result:#}");
        result
    }

    /// Returns what the scene's file says of the right arm.
    fn right(&self) -> toml::Table {
        let text = std::fs::read_to_string(self.0.path("scenes/two_arms.toml")).unwrap();
        let file: toml::Table = text.parse().unwrap();
        file["arms"][1].as_table().unwrap().clone()
    }
}

#[test]
fn arms_that_touch_the_same_places_find_the_height_and_the_lean_of_a_base() {
    let pair = LeaningPair::new("uncertainty_mm = 1.0");
    let left = pair.touch("left");
    let next = left["next"].as_str().unwrap();
    assert!(next.contains(r#""arm": "right""#), "{left:#}");
    let right = pair.touch("right");
    assert_eq!(right["verdict"], "usable", "{right:#}");
    let (code, shown) = pair.0.said(&["calibrate", "show", "--json"]);
    assert_eq!(code, 0, "{shown}");
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let figures = shown["figures"].as_array().unwrap();
    let figure = |name: &str| {
        let found = figures.iter().find(|figure| figure[0] == name);
        found.unwrap_or_else(|| panic!("{shown:#}"))[1]
            .as_f64()
            .unwrap()
    };
    let uncertainty_mm = figure("right_uncertainty_mm");
    let off_mm = figure("right_off_mm");
    assert!(off_mm > 2.0, "{shown:#}");
    let refused = pair.0.call(&["stroke", r#"{"scene": "two_arms"}"#]).1;
    assert_eq!(refused["code"], "bases_differ", "{refused:#}");
    let (code, output) = pair.0.said(&["calibrate", "accept"]);
    assert_eq!(code, 0, "{output}");
    let right = pair.right();
    let numbers = |key: &str| -> Vec<f64> {
        let list = right[key].as_array().unwrap();
        list.iter()
            .map(|number| number.as_float().unwrap())
            .collect()
    };
    // Over the sheet's four corners and its middle the base puts the arm where it really is.
    let (at_m, tilt_deg) = (numbers("base_m"), numbers("base_tilt_deg"));
    let height_mm = |z_m: f64, tilt_deg: &[f64], [x, y]: [f64; 2]| {
        let [about_x, about_y] = [tilt_deg[0].to_radians(), tilt_deg[1].to_radians()];
        z_m * 1e3 + about_x * (y - 0.0) - about_y * (x - 187.0)
    };
    for corner in [
        [-105.0, -148.5],
        [105.0, -148.5],
        [-105.0, 148.5],
        [105.0, 148.5],
        [0.0, 0.0],
    ] {
        let found = height_mm(at_m[2], &tilt_deg, corner);
        let truth = height_mm(-DOWN_MM / 1e3, &LEAN_DEG, corner);
        assert!(
            (found - truth).abs() < uncertainty_mm,
            "{corner:?}: {found} {truth} {uncertainty_mm}"
        );
    }
    // Touches of a flat sheet tell nothing along it.
    assert!(
        (at_m[0] - 0.187).abs() < 1e-3 && at_m[1].abs() < 1e-3,
        "{at_m:?}"
    );
    assert!(
        right["uncertainty_mm"].as_float().unwrap() >= 1.0,
        "{right:?}"
    );
    let (_, history) = pair.0.said(&["calibrate", "history"]);
    assert!(history.contains("bases  scene two_arms"), "{history}");
}

/// Joints of one arm must never count as another's.
#[test]
fn a_touch_by_hand_is_of_the_arm_whose_part_of_the_scene_is_named() {
    let pair = LeaningPair::new("");
    let touch = |scene: &str, more: &[&str]| {
        let joints = ["--joints", "1.85,-1.5,1.2,0.8,0.0487"];
        let args = [
            "calibrate",
            "touch",
            "bases",
            "--number",
            "1",
            "--scene",
            scene,
        ];
        pair.0.said(&[&args, &joints[..], more].concat())
    };
    let (code, output) = touch("two_arms:left", &[]);
    assert!(
        code == 0 && output.contains("two_arms, 1 touch"),
        "{output}"
    );
    let (code, output) = touch("two_arms:right", &["--arm", "left"]);
    assert!(code != 0 && output.contains("`right`"), "{output}");
    let (code, output) = touch("two_arms:right", &[]);
    assert!(
        code == 0 && output.contains("two_arms, 2 touches"),
        "{output}"
    );
    let (_, shown) = pair.0.said(&["calibrate", "accept"]);
    assert!(shown.contains("4 are needed"), "{shown}");
    let (code, output) = touch("short", &[]);
    assert!(code != 0, "{output}");
}
