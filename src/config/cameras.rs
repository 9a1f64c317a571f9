//! Cameras in a node file: the sources of their pictures, and their lenses.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config_problem::ProblemList;
use super::peers::is_port_possible;
use super::{ArmEntry, SIMULATOR_PORT};

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
    /// A device such as `/dev/video0`, an address of a JPEG, of MJPEG or of RTSP, or `"simulator"`.
    pub source: String,
    /// A file that holds NAME:PASSWORD for an address, and nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login_file: Option<PathBuf>,
    /// The arm whose sheet it sees; absent: the node's only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
    /// Width and height of its pictures.
    pub size_px: [u32; 2],
    /// Focal lengths across and down; without them its pictures are not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focal_px: Option<[f64; 2]>,
    /// Where the optical axis meets the picture; absent: its middle.
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

/// A simulated camera: its true pose, which the node does not know.
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

/// Returns what follows the scheme of a camera's address, if it is one that is read.
fn address_part(address: &str) -> Option<&str> {
    let mut schemes = ["http://", "rtsp://"].into_iter();
    schemes.find_map(|scheme| address.strip_prefix(scheme))
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

    /// Returns the first problem: its key, and the rest of a sentence about the camera.
    fn problem(&self, arms: &[ArmEntry]) -> Option<(&'static str, String)> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if !(1..=40).contains(&self.name.len()) || !self.name.chars().all(is_plain) {
            let what = ": a name is 1 to 40 letters, digits, - and _";
            return Some(("name", what.to_owned()));
        }
        self.source_problem()
            .or_else(|| self.login_problem())
            .or_else(|| self.arm_problem(arms))
            .or_else(|| self.lens_problem())
    }

    fn source_problem(&self) -> Option<(&'static str, String)> {
        let source = &self.source;
        match (self.source(), &self.simulated) {
            (CameraSource::Simulator, Some(_)) => None,
            (CameraSource::Simulator, None) => Some((
                "source",
                " is simulated: give its place in `[cameras.simulated]` as `stands_m` and `looks_at_m`"
                    .to_owned(),
            )),
            (_, Some(_)) => Some((
                "simulated",
                format!(" is at {source}: remove `[cameras.simulated]`, or write `source = \"simulator\"`"),
            )),
            (CameraSource::Http(address), None)
                if address_part(&address).is_none() || address.contains('@') =>
            {
                Some((
                    "source",
                    ": `source` must be a device, \"simulator\" or an http:// or rtsp:// address without a user's name. Next: put NAME:PASSWORD into a file, and that file's path into `login_file`"
                        .to_owned(),
                ))
            }
            (CameraSource::Http(address), None)
                if !address_part(&address).is_some_and(is_port_possible) =>
            {
                Some((
                    "source",
                    format!(": `source` is `{source}`; its port must be a number up to 65535"),
                ))
            }
            (CameraSource::Device(path), None) if !path.is_absolute() => Some((
                "source",
                format!(": `source` is `{source}`; a device is a full path such as `/dev/video0`"),
            )),
            _ => None,
        }
    }

    fn login_problem(&self) -> Option<(&'static str, String)> {
        let asks = matches!(self.source(), CameraSource::Http(_));
        let source = &self.source;
        let what =
            || format!(": `source` is `{source}`, which needs no login; leave `login_file` out");
        (self.login_file.is_some() && !asks).then(|| ("login_file", what()))
    }

    fn arm_problem(&self, arms: &[ArmEntry]) -> Option<(&'static str, String)> {
        let what = match &self.arm {
            None if arms.len() > 1 => {
                ": this node has several arms; set `arm` to the one whose sheet this camera sees"
                    .to_owned()
            }
            Some(arm) if arms.iter().all(|entry| entry.name != *arm) => {
                let known: Vec<&str> = arms.iter().map(|entry| entry.name.as_str()).collect();
                format!(": there is no arm `{arm}`. Valid: {}", known.join(", "))
            }
            _ => return None,
        };
        Some(("arm", what))
    }

    fn lens_problem(&self) -> Option<(&'static str, String)> {
        let [width, height] = self.size_px;
        let is_side = |side: u32| (16..=SIDE_PX_MAX).contains(&side);
        let is_length = |f: &f64| (10.0..=1e5).contains(f);
        let is_in_picture = |at: &f64| at.abs() <= f64::from(SIDE_PX_MAX);
        let [least, _, most] = TIMEOUT_MS;
        if !is_side(width) || !is_side(height) || u64::from(width) * u64::from(height) > PIXELS_MAX
        {
            let what = format!(
                ": `size_px` is {:?}; sides of 16 to {SIDE_PX_MAX} and at most {PIXELS_MAX} pixels are possible",
                self.size_px
            );
            Some(("size_px", what))
        } else if !self.focal_px.iter().flatten().all(is_length) {
            Some(("focal_px", ": `focal_px` must be 10 to 100000".to_owned()))
        } else if !self.centre_px.iter().flatten().all(is_in_picture) {
            Some((
                "centre_px",
                ": `centre_px` is outside the picture".to_owned(),
            ))
        } else if !self.distortion.iter().all(|k| k.abs() <= 10.0) {
            let what = ": `distortion` must be numbers from -10 to 10";
            Some(("distortion", what.to_owned()))
        } else if !(least..=most).contains(&self.timeout_ms) {
            let value = self.timeout_ms;
            let what = format!(": `timeout_ms` is {value}; {least} to {most} are possible");
            Some(("timeout_ms", what))
        } else if !self
            .simulated
            .is_none_or(|simulated| simulated.is_possible())
        {
            let what = ": `stands_m` must be within 10 m and differ from `looks_at_m`; `light` is 0 to 2 and `noise` 0 to 50";
            Some(("simulated", what.to_owned()))
        } else {
            None
        }
    }
}

impl SimulatedCameraEntry {
    fn is_possible(&self) -> bool {
        let mut places = self.stands_m.iter().chain(&self.looks_at_m);
        let is_near = places.all(|v| v.abs() <= 10.0);
        let offsets = self.stands_m.iter().zip(&self.looks_at_m);
        let distance_squared: f64 = offsets.map(|(a, b)| (a - b).powi(2)).sum();
        let is_lit = (0.0..=2.0).contains(&self.light) && (0.0..=50.0).contains(&self.noise_grey);
        is_near && distance_squared >= 1e-6 && is_lit
    }
}

/// Finds the problems of a node's cameras.
pub(super) fn check(cameras: &[CameraEntry], arms: &[ArmEntry], problems: &mut ProblemList) {
    problems.check(cameras.len() <= CAMERAS_MAX, "cameras", || {
        let count = cameras.len();
        format!("{count} cameras; at most {CAMERAS_MAX} are possible")
    });
    for (index, camera) in cameras.iter().enumerate() {
        let name = &camera.name;
        let is_twin = cameras.iter().take(index).any(|other| other.name == *name);
        problems.within(&format!("cameras[{index}]"), |problems| {
            if let Some((key, what)) = camera.problem(arms) {
                problems.add(key, format!("camera `{name}`{what}"));
            }
            problems.check(!is_twin, "name", || {
                format!("two cameras have the name `{name}`; each needs its own")
            });
        });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::super::NodeFile;
    use super::{PIXELS_MAX, SIDE_PX_MAX};

    const GOOD: &str =
        "[[cameras]]\nname = \"top\"\nsource = \"/dev/video0\"\nsize_px = [1280, 960]\n";

    fn error(text: &str) -> String {
        NodeFile::read("node.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn a_camera_needs_little_and_every_mistake_is_reported() {
        let read = NodeFile::read("node.toml", GOOD).unwrap();
        assert_eq!(read.cameras.len(), 1);
        assert!(
            read.cameras
                .iter()
                .all(|camera| camera.timeout_ms == 2000 && camera.sees("arm"))
        );
        let with = |old: &str, new: &str| error(&GOOD.replace(old, new));
        for (old, new, expected) in [
            ("/dev/video0", "video0", "a device is a full path"),
            ("/dev/video0", "https://10.0.0.9/a.jpg", "rtsp:// address"),
            (
                "/dev/video0",
                "http://10.0.0.9:99999/",
                "a number up to 65535",
            ),
            (
                "/dev/video0",
                "http://me:word@10.0.0.9/",
                "without a user's name",
            ),
            ("/dev/video0", "simulator", "give its place"),
            ("[1280, 960]", "[1280, 9600]", "`size_px` is"),
            ("\"top\"", "\"a/b\"", "a name is 1 to 40"),
            (
                "size_px",
                "timeout_ms = 1\nsize_px",
                "`timeout_ms` is 1; 100 to 10000",
            ),
            (
                "size_px",
                "arm = \"left\"\nsize_px",
                "there is no arm `left`. Valid: arm",
            ),
            (
                "size_px",
                "focal_px = [0.0, 1.0]\nsize_px",
                "`focal_px` must be",
            ),
            ("size_px", "distorsion = [0.0]\nsize_px", "distortion"),
        ] {
            let error = with(old, new);
            assert!(error.contains(expected), "{new}: {error}");
        }
        let rtsp = GOOD.replace("/dev/video0", "rtsp://10.0.0.9/stream1");
        assert!(NodeFile::read("/lab/node.toml", &rtsp).is_ok());
        let named = rtsp.replace("10.0.0.9", "me:secret@10.0.0.9");
        assert!(error(&named).contains("login_file"));
        let login = format!("{GOOD}login_file = \"top.login\"\n");
        assert!(error(&login).contains("leave `login_file` out"));
        let http = login.replace("/dev/video0", "http://10.0.0.9/a.jpg");
        let read = NodeFile::read("/lab/node.toml", &http).unwrap();
        let file = read
            .cameras
            .first()
            .and_then(|camera| camera.login_file.clone());
        assert_eq!(file, Some("/lab/top.login".into()));
        assert!(error(&format!("{GOOD}{GOOD}")).contains("two cameras have the name `top`"));
        let both = format!(
            "{GOOD}[cameras.simulated]\nstands_m = [0.0, 0.0, 0.4]\nlooks_at_m = [0.0, 0.0, 0.0]\n"
        );
        assert!(error(&both).contains("remove `[cameras.simulated]`"));
        assert!(NodeFile::read("node.toml", &both.replace("/dev/video0", "simulator")).is_ok());
    }

    #[test]
    fn the_limits_are_those_of_the_vision_crate() {
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
    }
}
