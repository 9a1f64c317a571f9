//! Cameras in a node file: where their pictures come from, and what is known of their lenses.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ArmEntry, ConfigProblem, SIMULATOR_PORT};

/// Most cameras of one node.
const CAMERAS_MAX: usize = 8;

/// Time limit for a picture in ms: minimum, default and maximum.
const TIMEOUT_MS: [u32; 3] = [100, 2000, 10_000];

/// The longest side of a picture.
const SIDE_PX_MAX: u32 = 8192;

/// The most pixels of a picture; as many as are kept of one that comes.
const PIXELS_MAX: u64 = 12_582_912;

/// A camera.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CameraEntry {
    /// Name of the camera in results.
    pub name: String,
    /// A device such as `/dev/video0`, an address that answers with a JPEG or with MJPEG
    /// (`http://10.0.0.9/snapshot.jpg`), or `"simulator"`.
    pub source: String,
    /// The arm whose sheet it sees; absent: the node's only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
    /// Width and height of its pictures; its lens is known for this size alone.
    pub size_px: [u32; 2],
    /// Focal lengths across and down. Without them its pictures are shown and nothing is read off
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focal_px: Option<[f64; 2]>,
    /// Point at which the optical axis meets the picture, in pixels; absent: its middle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub centre_px: Option<[f64; 2]>,
    /// Distortion of the lens: `k1 k2 p1 p2 k3`.
    #[serde(default)]
    pub distortion: [f64; 5],
    /// Time limit for one picture, in ms.
    #[serde(default = "timeout_ms")]
    pub timeout_ms: u32,
    /// Pose of a simulated camera; only with `source = "simulator"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<SimulatedCameraEntry>,
}

/// A simulated camera: where it really stands, which the node does not know.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimulatedCameraEntry {
    /// Its place in the arm's base frame.
    pub stands_m: [f64; 3],
    /// The point in the middle of its pictures.
    pub looks_at_m: [f64; 3],
    /// The light; 1 shows white paper as nearly white.
    #[serde(default = "light")]
    pub light: f64,
    /// One sigma of the noise of each pixel, in grey levels.
    #[serde(default = "noise_grey")]
    pub noise_grey: f64,
}

/// Source of a camera's pictures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CameraSource {
    /// Rendered.
    Simulator,
    /// A device.
    Device(PathBuf),
    /// An address.
    Http(String),
}

fn timeout_ms() -> u32 {
    TIMEOUT_MS[1]
}

fn light() -> f64 {
    0.9
}

fn noise_grey() -> f64 {
    2.0
}

impl CameraEntry {
    /// Returns the source of its pictures.
    #[must_use]
    pub fn source(&self) -> CameraSource {
        match self.source.as_str() {
            SIMULATOR_PORT => CameraSource::Simulator,
            address if address.contains("://") => CameraSource::Http(address.to_owned()),
            path => CameraSource::Device(PathBuf::from(path)),
        }
    }

    /// Returns whether it sees the sheet of an arm of this name.
    #[must_use]
    pub fn sees(&self, arm: &str) -> bool {
        self.arm.as_deref().is_none_or(|own| own == arm)
    }

    fn wrong(&self, arms: &[ArmEntry]) -> Option<(&'static str, String)> {
        let name = &self.name;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if name.is_empty() || name.len() > 40 || !name.chars().all(is_plain) {
            let what = format!("camera `{name}`: a name is 1 to 40 letters, digits, - and _");
            return Some(("name", what));
        }
        match (self.source(), &self.simulated) {
            (CameraSource::Simulator, None) => {
                let what = format!(
                    "camera `{name}` is simulated: say where it stands in [cameras.simulated], stands_m and looks_at_m"
                );
                return Some(("source", what));
            }
            (CameraSource::Simulator, Some(_)) | (_, None) => {}
            (_, Some(_)) => {
                let what = format!(
                    "camera `{name}` is at {}: take [cameras.simulated] away, or say source = \"simulator\"",
                    self.source
                );
                return Some(("simulated", what));
            }
        }
        self.wrong_source()
            .or_else(|| self.wrong_arm(arms))
            .or_else(|| self.wrong_lens())
    }

    fn wrong_source(&self) -> Option<(&'static str, String)> {
        let name = &self.name;
        let what = match self.source() {
            CameraSource::Http(address)
                if !address.starts_with("http://") || address.contains('@') =>
            {
                format!(
                    "camera `{name}`: source must be a device, \"simulator\" or an address that begins with http:// and names no user"
                )
            }
            CameraSource::Device(path) if !path.is_absolute() => format!(
                "camera `{name}`: source is `{}`; a device is a whole path such as /dev/video0",
                path.display()
            ),
            _ => return None,
        };
        Some(("source", what))
    }

    fn wrong_arm(&self, arms: &[ArmEntry]) -> Option<(&'static str, String)> {
        let name = &self.name;
        let what = match &self.arm {
            None if arms.len() > 1 => {
                format!(
                    "camera `{name}`: say whose sheet it sees with `arm`, for there are several"
                )
            }
            Some(arm) if arms.iter().all(|entry| entry.name != *arm) => {
                let known: Vec<&str> = arms.iter().map(|entry| entry.name.as_str()).collect();
                format!(
                    "camera `{name}`: there is no arm `{arm}`; valid: {}",
                    known.join(", ")
                )
            }
            _ => return None,
        };
        Some(("arm", what))
    }

    fn wrong_lens(&self) -> Option<(&'static str, String)> {
        let name = &self.name;
        let sides = self
            .size_px
            .iter()
            .all(|side| (16..=SIDE_PX_MAX).contains(side));
        if !sides || u64::from(self.size_px[0]) * u64::from(self.size_px[1]) > PIXELS_MAX {
            let what = format!(
                "camera `{name}`: size_px is {:?}; sides of 16 to {SIDE_PX_MAX} and at most {PIXELS_MAX} pixels are possible",
                self.size_px
            );
            return Some(("size_px", what));
        }
        let is_length = |f: &f64| (10.0..=1e5).contains(f);
        if self
            .focal_px
            .is_some_and(|focal| !focal.iter().all(is_length))
        {
            return Some((
                "focal_px",
                format!("camera `{name}`: focal_px must be 10 to 100000"),
            ));
        }
        let centre = self.centre_px.unwrap_or_default();
        if !centre.iter().all(|v| v.abs() <= f64::from(SIDE_PX_MAX)) {
            return Some((
                "centre_px",
                format!("camera `{name}`: centre_px is beyond any picture"),
            ));
        }
        if !self.distortion.iter().all(|k| k.abs() <= 10.0) {
            let what = format!("camera `{name}`: distortion must be numbers between -10 and 10");
            return Some(("distortion", what));
        }
        let [least, _, most] = TIMEOUT_MS;
        if !(least..=most).contains(&self.timeout_ms) {
            let what = format!(
                "camera `{name}`: timeout_ms is {}; {least} to {most} are possible",
                self.timeout_ms
            );
            return Some(("timeout_ms", what));
        }
        self.simulated.and_then(|simulated| simulated.wrong(name))
    }
}

impl SimulatedCameraEntry {
    fn wrong(&self, name: &str) -> Option<(&'static str, String)> {
        let places = self.stands_m.iter().chain(&self.looks_at_m);
        let is_near = places.clone().all(|v| v.abs() <= 10.0);
        let far: f64 = self
            .stands_m
            .iter()
            .zip(&self.looks_at_m)
            .map(|(a, b)| (a - b).powi(2))
            .sum();
        let is_lit = (0.0..=2.0).contains(&self.light) && (0.0..=50.0).contains(&self.noise_grey);
        (!is_near || far < 1e-6 || !is_lit).then(|| {
            let what = format!(
                "camera `{name}`: it must stand within 10 m, look at another point than it stands at, with a light of 0 to 2 and noise of 0 to 50"
            );
            ("simulated", what)
        })
    }
}

/// Returns the problems of a node's cameras.
pub(super) fn problems(cameras: &[CameraEntry], arms: &[ArmEntry]) -> Vec<ConfigProblem> {
    let mut problems = Vec::new();
    if cameras.len() > CAMERAS_MAX {
        let what = format!(
            "{} cameras; at most {CAMERAS_MAX} are possible",
            cameras.len()
        );
        problems.push(ConfigProblem::at("cameras", what));
    }
    for (index, camera) in cameras.iter().enumerate() {
        if let Some((key, what)) = camera.wrong(arms) {
            problems.push(ConfigProblem::at(format!("cameras[{index}].{key}"), what));
        }
        let mut before = cameras.iter().take(index);
        if before.any(|other| other.name == camera.name) {
            let what = format!(
                "two cameras are called `{}`; each needs its own name",
                camera.name
            );
            problems.push(ConfigProblem::at(format!("cameras[{index}].name"), what));
        }
    }
    problems
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::super::NodeFile;
    use super::{PIXELS_MAX, SIDE_PX_MAX};

    const GOOD: &str =
        "[[cameras]]\nname = \"top\"\nsource = \"/dev/video0\"\nsize_px = [1280, 960]\n";

    fn wrong(text: &str) -> String {
        NodeFile::read("node.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn a_camera_needs_little_and_every_mistake_is_said() {
        let read = NodeFile::read("node.toml", GOOD).unwrap();
        assert_eq!(read.cameras.len(), 1);
        assert!(
            read.cameras
                .iter()
                .all(|camera| camera.timeout_ms == 2000 && camera.sees("arm"))
        );
        let with = |old: &str, new: &str| wrong(&GOOD.replace(old, new));
        for (old, new, said) in [
            ("/dev/video0", "video0", "a device is a whole path"),
            (
                "/dev/video0",
                "https://10.0.0.9/a.jpg",
                "begins with http://",
            ),
            ("/dev/video0", "http://me:word@10.0.0.9/", "names no user"),
            ("/dev/video0", "simulator", "say where it stands"),
            ("[1280, 960]", "[1280, 9600]", "size_px is"),
            ("\"top\"", "\"a/b\"", "a name is 1 to 40"),
            (
                "size_px",
                "timeout_ms = 1\nsize_px",
                "timeout_ms is 1; 100 to 10000",
            ),
            (
                "size_px",
                "arm = \"left\"\nsize_px",
                "there is no arm `left`; valid: arm",
            ),
            (
                "size_px",
                "focal_px = [0.0, 1.0]\nsize_px",
                "focal_px must be",
            ),
            ("size_px", "distorsion = [0.0]\nsize_px", "distortion"),
        ] {
            let told = with(old, new);
            assert!(told.contains(said), "{new}: {told}");
        }
        assert!(wrong(&format!("{GOOD}{GOOD}")).contains("two cameras are called `top`"));
        let both = format!(
            "{GOOD}[cameras.simulated]\nstands_m = [0.0, 0.0, 0.4]\nlooks_at_m = [0.0, 0.0, 0.0]\n"
        );
        assert!(wrong(&both).contains("take [cameras.simulated] away"));
        assert!(NodeFile::read("node.toml", &both.replace("/dev/video0", "simulator")).is_ok());
    }

    #[test]
    fn what_may_be_asked_for_can_be_kept() {
        assert_eq!(u64::try_from(vision::PIXELS_MAX), Ok(PIXELS_MAX));
        assert_eq!(vision::SIDE_PX_MAX, SIDE_PX_MAX);
    }

    #[test]
    fn the_page_about_cameras_shows_what_can_be_read() {
        let page = include_str!("../../docs/cameras.md");
        let block = page.split("```toml").nth(1).unwrap();
        let block = block.split("```").next().unwrap();
        let read = NodeFile::read("node.toml", block).unwrap();
        assert_eq!(read.cameras.len(), 2);
        for key in [
            "name",
            "source",
            "arm",
            "size_px",
            "focal_px",
            "centre_px",
            "distortion",
            "timeout_ms",
        ] {
            assert!(page.contains(&format!("| `{key}` |")), "{key}");
        }
    }
}
