//! The node file as data; unknown keys are refused with the nearest known one.

mod before_drawing;
mod cameras;
mod config_problem;
pub mod edit_node_file;
mod exam;
mod notices;
mod peers;
mod record;
mod refused_value;
pub mod toml;
mod tools;
pub mod value_lines;
mod value_reader;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use config_problem::ProblemList;
use peers::ZenohEntry;

pub use before_drawing::{BeforeDrawing, BeforeDrawingEntry};
pub use cameras::{CameraEntry, CameraSource, SimulatedCameraEntry};
pub use config_problem::ConfigProblem;
pub use exam::{ExamEntry, HelperEntry, OptionalToolset};
pub use notices::{NoticeKind, NoticesEntry};
pub use peers::{FleetEntry, PeerEntry, SecretText};
pub use record::{RecordDetailsEntry, RecordEntry};
pub use tools::{
    ArgumentEntry, ArgumentType, EffectEntry, ServerEntry, StepEntry, TIMEOUT_S, ToolEntry,
};

/// A node as its file describes it. Everything may be left out: the node is then called `local`
/// and has an embedded simulated SO-101.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NodeFile {
    /// The node's name.
    pub name: String,
    /// Its arms, by name; one of them is `default` or the only one.
    pub arms: Vec<ArmEntry>,
    /// Cameras that look at their sheets.
    pub cameras: Vec<CameraEntry>,
    /// Handling of a call that was not fully understood; absent: `lenient` if every port is `simulator`, else `guarded`.
    pub forgiveness: Option<ForgivenessSetting>,
    /// Names of the built-in tools that are listed. Every name can be called.
    pub names: NamesEntry,
    /// Descriptions of built-in tools, by their names.
    pub descriptions: BTreeMap<String, DescriptionEntry>,
    /// A folder of scenes that come before the shipped ones.
    pub scenes: Option<PathBuf>,
    /// Folder for pictures; absent: a temporary one.
    pub output: Option<PathBuf>,
    /// Folder for stops, jobs and keys; absent: the user's state folder.
    pub state: Option<PathBuf>,
    /// Number of ended jobs that are kept.
    pub keep_jobs: usize,
    /// Maximum size of the kept jobs, in megabytes.
    pub keep_jobs_mb: u64,
    /// Maximum age of a kept job, in days.
    pub keep_jobs_days: u64,
    /// Recording of each job: `true` for its motion, `{ cameras = ["NAME"], fps = 1 }` for pictures as well.
    pub record: RecordEntry,
    /// Receivers of notices.
    pub notices: NoticesEntry,
    /// Condition of a planner's drawing, for every scene or by scene. As shipped `nothing`, and `person` for a caller's design on a real arm.
    pub before_drawing: BeforeDrawingEntry,
    /// Keys that a client adds to every call, to be ignored.
    pub ignore_keys: Vec<String>,
    /// True if results carry pictures; false names their files only.
    pub images: bool,
    /// A longer motion is answered with its job while it continues.
    pub answer_within_s: u32,
    /// True to use arms on ports on a system other than Linux, where nobody has yet reported trying one.
    pub untried_system: bool,
    /// Time at rest after which another caller may move an arm.
    pub lease_idle_s: u32,
    /// True if callers over HTTP need a token on this machine too.
    pub require_tokens: bool,
    /// The level that a planner must have reached in an exam before tools move an arm for it; absent: none.
    pub qualified: Option<RequiredQualification>,
    /// Certificate chain for HTTPS as PEM, the node's own first; absent: no encryption.
    pub tls_cert: Option<PathBuf>,
    /// The certificate's key as PEM, which others may not read.
    pub tls_key: Option<PathBuf>,
    /// True if all motion is refused. A stop is always carried out.
    pub read_only: bool,
    /// The only tools that are offered besides `stop`; absent: all.
    pub only_tools: Option<Vec<String>>,
    /// The other nodes.
    pub peers: Vec<PeerEntry>,
    /// Time limits and retries of calls to other nodes.
    pub fleet: FleetEntry,
    /// Declared tools, beside the six built-in ones.
    pub tools: Vec<ToolEntry>,
    /// Optional sets of tools that are listed as well.
    pub toolsets: Vec<OptionalToolset>,
    /// Limits for the helpers of the exam.
    pub exam: ExamEntry,
    /// The file it was read from.
    #[serde(skip)]
    pub source: NodeFileSource,
}

/// The text from which a node was read, so that later problems are reported with their line.
#[derive(Clone, Default)]
pub struct NodeFileSource {
    file: String,
    text: Arc<str>,
    relative_state: Option<PathBuf>,
}

impl NodeFileSource {
    /// Returns the path of the file; `None` if the node was not read from a file.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        (!self.file.is_empty()).then(|| Path::new(&self.file))
    }

    /// Returns the file's `state` as it is written there, if it is relative.
    #[must_use]
    pub fn relative_state(&self) -> Option<&Path> {
        self.relative_state.as_deref()
    }
}

impl fmt::Debug for NodeFileSource {
    /// The text may hold tokens of other nodes.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.file)
    }
}

/// One arm of a node.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArmEntry {
    /// Name of the arm for callers.
    pub name: String,
    /// Model of the arm: the name of an arm file.
    pub model: String,
    /// `"simulator"` or a serial port's path, which several arms may share. A port that is missing is an error, never a
    /// simulator.
    pub port: String,
    /// Lowest id of its servos where they have other ones than in the arm's file, such as 7 for the second SO-101 on a port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_id: Option<u8>,
    /// For practice: a folder of scenes and arms as they really are. The simulated arm uses those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truth: Option<PathBuf>,
    /// How an arm on a port was measured; absent: by calibrations of this node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibrated: Option<CalibrationSource>,
    /// Position of its base in a frame that all arms of this node share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_m: Option<[f64; 3]>,
    /// Direction of its base in that frame; a multiple of 90 for an arm with a zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_yaw_deg: Option<f64>,
    /// Box in that frame that no moving part of the arm leaves. Arms whose zones are 0.1 m apart move at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<ArmZone>,
    /// True if this arm and the others cannot reach each other: your word for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
    /// As the node's key, for this arm; the stricter holds.
    #[serde(default, skip_serializing_if = "BeforeDrawing::is_nothing")]
    pub before_drawing: BeforeDrawing,
}

/// A box in the frame that all arms of a node share.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArmZone {
    /// Its corner with the lowest coordinates.
    pub min_m: [f64; 3],
    /// Its corner with the highest.
    pub max_m: [f64; 3],
}

/// Source of an arm's calibration if it is not this node's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CalibrationSource {
    /// By other means, and you answer for it.
    Elsewhere,
}

/// The names by which built-in tools are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NamesEntry {
    /// `stroke` and `robot_stroke`.
    Both,
    /// `stroke`.
    Plain,
    /// `robot_stroke`.
    Robot,
}

/// Description of a built-in tool. It changes what models read; effect, schema and arguments stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DescriptionEntry {
    /// What it does, then when to use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Descriptions of arguments, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, String>,
}

/// What becomes of a call that was not fully understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ForgivenessSetting {
    /// The rest is ignored, with a warning.
    Lenient,
    /// It is shown first, and nothing moves.
    Guarded,
}

/// Level that a planner can be examined for; each includes the one before.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RequiredQualification {
    /// Look.
    Observe,
    /// Bring the arm to rest.
    Home,
    /// Move to the sheet's marks.
    Align,
    /// Draw.
    Stroke,
}

impl RequiredQualification {
    /// Every level, the lowest first.
    pub const ALL: [Self; 4] = [Self::Observe, Self::Home, Self::Align, Self::Stroke];

    /// Returns its name in files.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Home => "home",
            Self::Align => "align",
            Self::Stroke => "stroke",
        }
    }
}

impl std::str::FromStr for RequiredQualification {
    type Err = UnknownQualification;

    fn from_str(word: &str) -> Result<Self, UnknownQualification> {
        let found = Self::ALL.into_iter().find(|level| level.word() == word);
        found.ok_or_else(|| UnknownQualification(word.to_owned()))
    }
}

/// A text that names no level of qualification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a level. Valid: observe, home, align, stroke")]
pub struct UnknownQualification(String);

/// The longest that a call may be kept waiting.
pub const ANSWER_WITHIN_S_MAX: u32 = 3600;

/// Largest distance of a base from the shared frame's origin, in metres; a larger number is probably in another unit.
const BASE_MAX_M: f64 = 100.0;

/// The port's name that means the embedded simulator.
pub const SIMULATOR_PORT: &str = "simulator";

impl Default for NodeFile {
    fn default() -> Self {
        Self {
            name: "local".to_owned(),
            arms: vec![ArmEntry {
                name: "arm".to_owned(),
                model: "so101".to_owned(),
                port: SIMULATOR_PORT.to_owned(),
                first_id: None,
                truth: None,
                calibrated: None,
                base_m: None,
                base_yaw_deg: None,
                zone: None,
                apart: false,
                before_drawing: BeforeDrawing::Nothing,
            }],
            cameras: Vec::new(),
            forgiveness: None,
            names: NamesEntry::Both,
            descriptions: BTreeMap::new(),
            scenes: None,
            output: None,
            state: None,
            keep_jobs: 200,
            keep_jobs_mb: 256,
            keep_jobs_days: 90,
            record: RecordEntry::default(),
            notices: NoticesEntry::default(),
            before_drawing: BeforeDrawingEntry::default(),
            ignore_keys: Vec::new(),
            images: true,
            answer_within_s: 45,
            untried_system: false,
            lease_idle_s: 120,
            require_tokens: false,
            qualified: None,
            tls_cert: None,
            tls_key: None,
            read_only: false,
            only_tools: None,
            peers: Vec::new(),
            fleet: FleetEntry::default(),
            tools: Vec::new(),
            toolsets: Vec::new(),
            exam: ExamEntry::default(),
            source: NodeFileSource::default(),
        }
    }
}

impl ArmEntry {
    /// Returns whether it is the embedded simulator.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.port == SIMULATOR_PORT
    }

    /// Returns whether its servos are on the same bus as another arm's.
    #[must_use]
    pub fn shares_port_with(&self, other: &Self) -> bool {
        !self.is_simulated() && self.name != other.name && self.port == other.port
    }

    /// Finds its problems, also in relation to the arms before it.
    fn check(&self, before: &[Self], problems: &mut ProblemList) {
        let name = &self.name;
        let is_name = !name.trim().is_empty() && !name.chars().any(char::is_control);
        problems.check(is_name, "name", || {
            let shown = name.escape_debug();
            format!(
                "`{shown}` cannot be an arm's name: it is empty or contains a control character"
            )
        });
        let mut others = before.iter();
        if let Some(other) = others.find(|other| other.file_name_part() == self.file_name_part()) {
            let other = &other.name;
            let what = if other == name {
                format!("two arms have the name `{name}`; each needs its own")
            } else {
                format!(
                    "the arms `{other}` and `{name}` would share one emergency-stop file, because only letters, digits and `-` of a name count. Rename one"
                )
            };
            problems.add("name", what);
        }
        let mut on_port = before.iter().filter(|other| other.shares_port_with(self));
        if let Some(other) = on_port.find(|other| other.first_id == self.first_id) {
            let (port, other) = (&self.port, &other.name);
            problems.add("port", format!(
                "the arms `{other}` and `{name}` share the port `{port}`, and nothing says that their servos have different ids. Next: write the lowest id of one of them, such as `first_id = 7`"
            ));
        }
        self.check_zone(problems);
        let Some([x, y, z]) = self.base_m else { return };
        if [x, y, z].into_iter().all(|m| m.abs() <= BASE_MAX_M) {
            problems.check(!self.apart, "base_m", || {
                format!(
                    "arm `{name}` has both `base_m` and `apart = true`. Keep `base_m` if you measured the bases, or `apart` if no other arm is within its reach"
                )
            });
        } else {
            let what = format!(
                "`base_m` of arm `{name}` is [{x}, {y}, {z}]; each must be from -{BASE_MAX_M} to {BASE_MAX_M}: lengths are in metres"
            );
            problems.add("base_m", what);
        }
    }

    /// Refuses a zone that cannot be kept: no box, or one that its base stands outside of or across.
    fn check_zone(&self, problems: &mut ProblemList) {
        let name = &self.name;
        let yaw_deg = self.base_yaw_deg.unwrap_or_default();
        problems.check(yaw_deg.abs() <= 360.0, "base_yaw_deg", || {
            format!("`base_yaw_deg` of arm `{name}` is {yaw_deg}; it must be from -360 to 360")
        });
        let Some(ArmZone { min_m, max_m }) = self.zone else {
            return;
        };
        let Some(base_m) = self.base_m else {
            let what = format!(
                "arm `{name}` has a `zone` but no `base_m`. Add `base_m` in the frame of the zone"
            );
            return problems.add("zone", what);
        };
        problems.check(yaw_deg % 90.0 == 0.0, "base_yaw_deg", || {
            format!(
                "`base_yaw_deg` of arm `{name}` is {yaw_deg}; with a `zone` it must be a multiple of 90"
            )
        });
        let mut axes = min_m.iter().zip(&max_m).zip(base_m).take(2);
        problems.check(
            axes.all(|((min, max), base)| *min < base && base < *max) && min_m[2] < max_m[2],
            "zone",
            || format!("the `zone` of arm `{name}`, from {min_m:?} to {max_m:?}, must contain its base, at {base_m:?}"),
        );
    }

    /// Returns its name as part of a file name: letters, digits and `-`.
    #[must_use]
    pub fn file_name_part(&self) -> String {
        let chars = self.name.chars();
        chars
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect()
    }
}

impl NodeFile {
    /// Reads a node file; `file` is its name in messages.
    ///
    /// # Errors
    /// All of its problems: unknown keys, invalid values, and values that contradict each other.
    pub fn read(file: &str, text: &str) -> Result<Self, toml::FileError> {
        let toml::PartialRead { read, problems } = toml::read_partially::<Self>(text);
        let problems = problems
            .into_iter()
            .map(before_drawing::with_replacement)
            .collect();
        let mut error = toml::FileError {
            file: file.to_owned(),
            problems,
        };
        let Some(mut node) = read else {
            return Err(error);
        };
        node.source = NodeFileSource {
            file: file.to_owned(),
            text: text.into(),
            relative_state: node.state.clone().filter(|state| state.is_relative()),
        };
        node.resolve_paths(file);
        let found = node.file_error(&node.problems());
        error.problems.extend(found.problems);
        match error.problems.is_empty() {
            true => Ok(node),
            false => Err(error),
        }
    }

    /// Resolves every relative path against the folder of the node file, so that it leads to the same place wherever the program is
    /// started. A program without a folder in its name is left to be found by `PATH`.
    fn resolve_paths(&mut self, file: &str) {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.into());
        let Some(folder) = file.parent() else { return };
        let mut paths = vec![
            &mut self.scenes,
            &mut self.output,
            &mut self.state,
            &mut self.tls_cert,
            &mut self.tls_key,
        ];
        paths.extend(self.arms.iter_mut().map(|arm| &mut arm.truth));
        paths.extend(self.peers.iter_mut().map(|peer| &mut peer.token_file));
        let cameras = self.cameras.iter_mut();
        paths.extend(cameras.map(|camera| &mut camera.login_file));
        if let Some(ZenohEntry { ca, cert, key, .. }) = &mut self.fleet.zenoh {
            paths.extend([ca, cert, key]);
        }
        // An empty path names no folder, and stays a mistake.
        let paths = paths.into_iter().flatten();
        for path in paths.filter(|path| !path.as_os_str().is_empty()) {
            *path = folder.join(&path);
        }
        let servers = self
            .tools
            .iter_mut()
            .filter_map(|tool| tool.server.as_mut());
        let notices = self.notices.command.iter_mut();
        let programs = servers
            .filter_map(|server| server.command.as_mut())
            .chain(notices.filter_map(|command| command.first_mut()));
        for program in programs.filter(|program| Path::new(program).components().count() > 1) {
            if let Some(path) = folder.join(&program).to_str() {
                *program = path.to_owned();
            }
        }
    }

    /// Returns these problems as an error, each with its line.
    #[must_use]
    pub fn file_error(&self, problems: &[ConfigProblem]) -> toml::FileError {
        let NodeFileSource { file, text, .. } = &self.source;
        let message =
            |problem: &ConfigProblem| value_lines::prefix(text, &problem.path) + &problem.what;
        toml::FileError {
            file: file.clone(),
            problems: problems.iter().map(message).collect(),
        }
    }

    /// Returns the effective profile.
    #[must_use]
    pub fn forgiveness(&self) -> ForgivenessSetting {
        self.forgiveness.unwrap_or_else(|| {
            if self.arms.iter().all(ArmEntry::is_simulated) {
                ForgivenessSetting::Lenient
            } else {
                ForgivenessSetting::Guarded
            }
        })
    }

    fn problems(&self) -> Vec<ConfigProblem> {
        let mut problems = ProblemList::default();
        self.check_arms(&mut problems);
        cameras::check(&self.cameras, &self.arms, &mut problems);
        for (key, value, most) in [
            ("keep_jobs", self.keep_jobs as u64, 100_000),
            ("keep_jobs_mb", self.keep_jobs_mb, 1 << 20),
            ("keep_jobs_days", self.keep_jobs_days, 36_500),
            (
                "answer_within_s",
                u64::from(self.answer_within_s),
                u64::from(ANSWER_WITHIN_S_MAX),
            ),
        ] {
            problems.range(key, key, value, [1, most]);
        }
        let unpaired = match (&self.tls_cert, &self.tls_key) {
            (Some(_), None) => Some(("tls_cert", "tls_key")),
            (None, Some(_)) => Some(("tls_key", "tls_cert")),
            _ => None,
        };
        if let Some((given, missing)) = unpaired {
            let what = format!("`{given}` is given without `{missing}`; encryption needs both");
            problems.add(given, what);
        }
        if let Some(problem) = peers::bad_name(&self.name) {
            problems.add("name", problem);
        }
        peers::check(&self.name, &self.peers, &mut problems);
        problems.within("fleet", |problems| self.fleet.check(problems));
        tools::check(&self.tools, &mut problems);
        self.exam.check(&mut problems);
        self.record.check(&self.cameras, &mut problems);
        self.notices.check(&mut problems);
        problems.found
    }

    fn check_arms(&self, problems: &mut ProblemList) {
        problems.check(
            !self.arms.is_empty(),
            "arms",
            || "`arms` is empty; a node needs at least one arm",
        );
        for (index, arm) in self.arms.iter().enumerate() {
            let before = self.arms.get(..index).unwrap_or_default();
            problems.within(&format!("arms[{index}]"), |problems| {
                arm.check(before, problems);
            });
        }
    }
}

/// Returns the line of the node file with which these keys of a call mean nothing.
#[must_use]
pub fn ignore_line(keys: &[&str]) -> String {
    let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
    format!("`ignore_keys = [{}]`", keys.join(", "))
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;

    #[test]
    fn refuses_arms_with_like_names_or_names_that_a_terminal_obeys() {
        let arm = |name: &str| {
            format!("[[arms]]\nname = \"{name}\"\nmodel = \"so101\"\nport = \"simulator\"\n")
        };
        let read = |first: &str, second: &str| {
            let text = arm(first) + &arm(second);
            NodeFile::read("node.toml", &text).map_err(|error| error.to_string())
        };
        read("left", "right").unwrap();
        let same = read("left", "left").unwrap_err();
        assert!(same.contains("two arms have the name `left`"), "{same}");
        for (written, shown) in [(r"\u001b[2J", r"\u{1b}[2J"), (r"a\nb", r"a\nb"), (" ", " ")] {
            let error = read("left", written).unwrap_err();
            let expected = format!("`{shown}` cannot be an arm's name");
            assert!(error.contains(&expected), "{error}");
        }
        let alike = read("a.b", "a-b").unwrap_err();
        assert!(alike.contains("the arms `a.b` and `a-b`"), "{alike}");
    }

    #[test]
    fn arms_share_a_port_only_with_ids_of_their_own() {
        let arm = |name: &str, port: &str, key: &str| {
            format!("[[arms]]\nname = \"{name}\"\nmodel = \"so101\"\nport = \"{port}\"\n{key}\n")
        };
        let read = |port: &str, keys: [&str; 2]| {
            let text = arm("left", port, keys[0]) + &arm("right", port, keys[1]);
            NodeFile::read("node.toml", &text).map_err(|error| error.to_string())
        };
        let node = read("/dev/ttyACM0", ["", "first_id = 7"]).unwrap();
        assert_eq!(node.arms[1].first_id, Some(7));
        assert!(node.arms[0].shares_port_with(&node.arms[1]));
        let alone = read("simulator", ["", ""]).unwrap();
        assert!(!alone.arms[0].shares_port_with(&alone.arms[1]));
        for keys in [["", ""], ["first_id = 7", "first_id = 7"]] {
            let error = read("/dev/ttyACM0", keys).unwrap_err();
            assert!(
                error.contains("`left` and `right` share the port"),
                "{error}"
            );
        }
    }

    #[test]
    fn refuses_a_base_that_stands_nowhere_and_two_statements_about_one_arm() {
        let with = |keys: &str| {
            let arm = "[[arms]]\nname = \"left\"\nmodel = \"so101\"\nport = \"simulator\"\n";
            NodeFile::read("node.toml", &format!("{arm}{keys}\n"))
                .map_err(|error| error.to_string())
        };
        let placed = with("base_m = [0, -0.25, 0.1]").unwrap();
        assert_eq!(placed.arms[0].base_m, Some([0.0, -0.25, 0.1]));
        assert!(with("apart = true").unwrap().arms[0].apart);
        for (keys, expected) in [
            ("base_m = [0.0, 250.0, 0.0]", "lengths are in metres"),
            ("base_m = [0.0, nan, 0.0]", "lengths are in metres"),
            ("base_m = [0.0, inf, 0.0]", "lengths are in metres"),
            ("base_m = [0.0, 0.25]", "an array of length 3"),
            (
                "base_m = [0.0, 0.2, 0.0]\napart = true",
                "both `base_m` and `apart",
            ),
            (
                "zone = { min_m = [-1, -1, -1], max_m = [1, 1, 1] }",
                "no `base_m`",
            ),
            (
                "base_m = [0, 2, 0]\nzone = { min_m = [-1, -1, -1], max_m = [1, 1, 1] }",
                "must contain its base",
            ),
            (
                "base_m = [0, 0, 0]\nzone = { min_m = [-1, -1, -1], max_m = [1, 1, nan] }",
                "must contain its base",
            ),
            (
                "base_m = [0, 0, 0]\nbase_yaw_deg = 30\nzone = { min_m = [-1, -1, -1], max_m = [1, 1, 1] }",
                "multiple of 90",
            ),
            ("base_yaw_deg = inf", "from -360 to 360"),
        ] {
            let error = with(keys).unwrap_err();
            assert!(error.contains(expected), "{keys}: {error}");
        }
    }

    #[test]
    fn a_relative_path_starts_at_the_folder_of_the_node_file() {
        let text = r#"
scenes = "scenes"
output = "/out"
tls_cert = "a.pem"
tls_key = "../b.key"
notices = { command = ["./tell-me", "./here"] }

[[arms]]
name = "arm"
model = "so101"
port = "simulator"
truth = "truth"

[[peers]]
name = "left"
address = "a:1"
token_file = "left.token"

[[tools]]
name = "weigh"
description = "Weighs"
effect = "reads"
tool = "weigh"
server = { command = "python3", args = ["./weigh.py"] }
"#;
        let node = NodeFile::read("/lab/bench/node.toml", text).unwrap();
        let is = |path: &Option<PathBuf>, expected: &str| {
            assert_eq!(path.as_deref(), Some(Path::new(expected)));
        };
        is(&node.scenes, "/lab/bench/scenes");
        is(&node.output, "/out");
        is(&node.tls_cert, "/lab/bench/a.pem");
        is(&node.tls_key, "/lab/bench/../b.key");
        is(&node.arms[0].truth, "/lab/bench/truth");
        is(&node.peers[0].token_file, "/lab/bench/left.token");
        assert_eq!(
            node.notices.command.unwrap(),
            ["/lab/bench/./tell-me", "./here"]
        );
        let server = node.tools[0].server.as_ref().unwrap();
        assert_eq!(server.command.as_deref(), Some("python3"));
        let here = std::env::current_dir().unwrap();
        let node = NodeFile::read("node.toml", "state = \"state\"\n").unwrap();
        assert_eq!(node.state, Some(here.join("state")));
        let text = "scenes = \"\"\noutput = \"\"\nstate = \"\"\n";
        let node = NodeFile::read("/lab/node.toml", text).unwrap();
        for path in [&node.scenes, &node.output, &node.state] {
            is(path, "");
        }
    }

    #[test]
    fn a_record_of_another_type_is_told_what_is_expected() {
        for record in ["5", "\"motion\"", "[true]"] {
            let error = NodeFile::read("node.toml", &format!("record = {record}\n"));
            let error = error.map_err(|error| error.to_string()).unwrap_err();
            assert!(
                error.contains("`record` must be true, false or a table"),
                "{error}"
            );
        }
        assert!(
            NodeFile::read("node.toml", "record = true\n")
                .unwrap()
                .record
                .is_on()
        );
    }
}
