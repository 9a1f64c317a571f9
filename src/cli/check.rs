//! `check`: finds everything that is wrong with a node before it is started, each with its fix.

use anyhow::{anyhow, bail, ensure};
use std::path::Path;
use std::sync::Arc;

use base::{disk, file_access};

use super::scenes::CANVAS;
use super::{ExitStatus, NodeOptions, terminal_output};
use base::clock::NodeClock;
use base::wording::{millimetres, next_apart};
use calib::CalibrationStore;
use caller::TokenStore;
use config::{ArmEntry, ForgivenessSetting, NodeFile, SIMULATOR_PORT};
use job::JobStoreError;
use link::serial::SerialLink;
use node::bus_places::arm_on_its_bus;
use node::{open, peers, state_folder, tls_identity};
use plan::{self, SilentObserver};
use scene::{Scene, SceneLibrary, SharedScene};
use servo::diagnose::{DiagnosisCause, DiagnosisFinding};

/// Results of the checks, good and wrong.
#[derive(Default)]
struct CheckFindings {
    good: Vec<String>,
    wrong: Vec<String>,
}

impl CheckFindings {
    fn note(&mut self, subject: &str, result: anyhow::Result<String>) {
        match result {
            Ok(good) => self.good.push(format!("{subject}: {good}")),
            Err(wrong) => self.wrong.push(format!("{subject}: {wrong:#}")),
        }
    }
}

/// Checks everything about a node without moving anything.
pub(super) fn run(args: &NodeOptions) -> anyhow::Result<ExitStatus> {
    let mut findings = CheckFindings::default();
    // Without the node file nothing else can be checked.
    let file = match open::file(args) {
        Ok(file) => file,
        Err(error) => {
            return terminal_output::refused(&format!("wrong  the node file: {error:#}"));
        }
    };
    let reader = reader_words(file.forgiveness());
    findings.note("node", Ok(format!("{}, {reader}", file.name)));
    if let Some(library) = check_files(args, &file, &mut findings) {
        check_arms(args, &file, &library, &mut findings);
        check_scenes(&file, &library, &mut findings);
    }
    let good = findings.good.iter().map(|good| format!("good   {good}"));
    let wrong = findings.wrong.iter().map(|wrong| format!("wrong  {wrong}"));
    terminal_output::lines(good.chain(wrong));
    Ok(ExitStatus::of(findings.wrong.is_empty()))
}

/// Returns what is wrong with a node beside its ports: its folders, keys, tokens, scenes and tools.
pub(super) fn wrong_files(args: &NodeOptions, file: &NodeFile) -> Vec<DiagnosisFinding> {
    let mut findings = CheckFindings::default();
    if let Some(library) = check_files(args, file, &mut findings) {
        check_scenes(file, &library, &mut findings);
    }
    let wrong = findings.wrong.iter().map(|wrong| {
        let (what, next) = next_apart(wrong);
        DiagnosisFinding {
            cause: DiagnosisCause::NodeFiles,
            what: what.to_owned(),
            fix: next
                .unwrap_or("correct it, then run `steadyhand check` again")
                .to_owned(),
        }
    });
    wrong.collect()
}

/// Checks folders, keys, tokens and declared tools; returns the scenes, if they can be read.
fn check_files(
    args: &NodeOptions,
    file: &NodeFile,
    findings: &mut CheckFindings,
) -> Option<SceneLibrary> {
    check_folders(args, file, findings);
    if let Some(certificates) = &file.tls_cert {
        let found = tls_identity::acceptor(file);
        findings.note("tls", found.map(|_| certificates.display().to_string()));
    }
    check_tokens(args, file, findings);
    let library = open::library(args, file).or_else(|error| {
        findings.note("scenes", Err(error));
        // The shipped scenes still allow a check of the arms.
        let mut args = args.clone();
        args.scenes = None;
        let file = NodeFile {
            scenes: None,
            ..file.clone()
        };
        open::library(&args, &file)
    });
    let library = match library {
        Ok(library) => library,
        Err(error) => {
            findings.note("scenes", Err(error));
            return None;
        }
    };
    let declared = open::declared(file, &library);
    let summary = declared.map(|declared| {
        let hint = declared.long_names().map(|hint| format!("; {hint}"));
        let hint = hint.unwrap_or_default();
        format!("{} declared{hint}", declared.tools().len())
    });
    findings.note("tools", summary);
    Some(library)
}

/// Describes how a node reads what callers write.
const fn reader_words(forgiveness: ForgivenessSetting) -> &'static str {
    match forgiveness {
        ForgivenessSetting::Lenient => "lenient: what is not understood in a call is ignored",
        ForgivenessSetting::Guarded => {
            "guarded: a call that is not fully understood is shown first and moves nothing"
        }
    }
}

/// Checks the tokens for other nodes: each must exist, and no other user may read it.
fn check_tokens(args: &NodeOptions, file: &NodeFile, findings: &mut CheckFindings) {
    for peer in &file.peers {
        let result = match (&peer.token, &peer.token_file) {
            (Some(_), _) => args.config.as_deref().map(check_private),
            (None, Some(path)) => {
                let token = peers::read_token(path).map_err(anyhow::Error::msg);
                Some(token.and_then(|_| check_private(path)))
            }
            (None, None) => None,
        };
        if let Some(result) = result {
            let what = format!("token for {}", peer.name);
            findings.note(&what, result);
        }
    }
}

/// Checks that other users may not read a file.
fn check_private(path: &Path) -> anyhow::Result<String> {
    let metadata = std::fs::metadata(path)?;
    let mode = file_access::mode(&metadata);
    ensure!(
        mode & 0o007 == 0,
        "every user can read {} (mode {mode:o}). Next: `chmod 640` it",
        path.display()
    );
    Ok(format!("in {}", path.display()))
}

fn check_folders(args: &NodeOptions, file: &NodeFile, findings: &mut CheckFindings) {
    match state_folder::place(args, file) {
        Ok(folder) if folder.exists() => check_state(&folder, findings),
        Ok(folder) => findings.note("state", check_can_be_made(&folder)),
        Err(error) => findings.note("state", Err(error)),
    }
    if let Some(output) = args.output.as_ref().or(file.output.as_ref()) {
        let made = std::fs::create_dir_all(output)
            .map_err(|error| anyhow!("cannot make {}: {error}", output.display()));
        findings.note("output", made.and_then(|()| check_writable(output)));
    }
}

fn check_writable(folder: &Path) -> anyhow::Result<String> {
    file_access::check_writable(folder)
        .map(|()| folder.display().to_string())
        .map_err(|error| {
            anyhow!(
                "{} cannot be written to ({error}): {}",
                folder.display(),
                disk::write_advice(&error)
            )
        })
}

/// Checks that the node can make its state folder at its start.
fn check_can_be_made(folder: &Path) -> anyhow::Result<String> {
    let parent = folder.ancestors().find(|parent| parent.exists());
    let parent = parent.unwrap_or(folder);
    ensure!(
        parent.is_dir(),
        "cannot make the state folder {}: {} is not a folder",
        folder.display(),
        parent.display()
    );
    check_writable(parent)?;
    Ok(format!(
        "{}, which the first start creates",
        folder.display()
    ))
}

/// Reads everything in a state folder that a node opens when it is started on it, and changes nothing.
fn check_state(folder: &Path, findings: &mut CheckFindings) {
    let own = check_own(folder);
    let is_own = own.is_ok();
    findings.note("state", own);
    let is_anothers =
        std::fs::metadata(folder).is_ok_and(|it| file_access::is_of_another_user(&it));
    if !is_own || is_anothers {
        // What this user may read there, the node may not.
        return;
    }
    let key = job::check_key(folder);
    match job::check_journals(folder) {
        Ok(damaged) => {
            for damaged in damaged {
                findings.note("jobs", Err(anyhow!("{damaged}")));
            }
            // Without its key nothing can be said of the log, and a node that runs is writing it.
            if let (true, Err(error)) = (key.is_ok(), job::check_audit(folder)) {
                findings.note("audit log", Err(error.into()));
            }
        }
        Err(JobStoreError::Held { holder, .. }) => {
            findings.note("jobs", Ok(format!("in use by {holder}, a running node")));
        }
        Err(error) => findings.note("jobs", Err(anyhow!("{error}"))),
    }
    if let Err(error) = key {
        findings.note("key", Err(error.into()));
    }
    if let Err(error) = TokenStore::at(folder).list() {
        findings.note("tokens", Err(error.into()));
    }
    if let Err(error) = CalibrationStore::of_state(folder, &SceneLibrary::default()).history() {
        findings.note("calibrations", Err(error.into()));
    }
}

/// Checks that only the node can read its state folder, which holds stops, journal and keys.
fn check_own(folder: &Path) -> anyhow::Result<String> {
    check_writable(folder)?;
    let metadata = std::fs::metadata(folder)?;
    ensure!(metadata.is_dir(), "{} is not a folder", folder.display());
    state_folder::check_unshared(folder)?;
    let mode = file_access::mode(&metadata);
    ensure!(
        mode & 0o077 == 0,
        "other users can read {} (mode {mode:o}). Next: `chmod 700` it",
        folder.display()
    );
    Ok(folder.display().to_string())
}

/// Checks that each arm of the node file has a file of its own and a port that can be opened.
fn check_arms(
    args: &NodeOptions,
    file: &NodeFile,
    library: &SceneLibrary,
    findings: &mut CheckFindings,
) {
    for entry in &file.arms {
        let what = format!("arm {}", entry.name);
        let found = arm_on_its_bus(file, entry, library).and_then(|arm| {
            driver::check_ranges(&arm)?;
            check_port(args, entry, arm.file.baud)
        });
        findings.note(&what, found);
    }
    for separation in tools::separations(file, library) {
        findings.note("arms", Ok(separation.to_string()));
    }
}

/// Checks that each scene of the node's arms can be drawn.
fn check_scenes(file: &NodeFile, library: &SceneLibrary, findings: &mut CheckFindings) {
    let models: Vec<&str> = file.arms.iter().map(|arm| arm.model.as_str()).collect();
    let default = library.default_scene(&models);
    let none = || "there is no default scene: a call without `scene` is refused".to_owned();
    findings.note("default scene", Ok(default.unwrap_or_else(none)));
    for name in library.scenes() {
        let what = format!("scene {name}");
        match library.scene(&name, None) {
            Ok(scene) if scene.canvas.is_some() => {
                findings.note(&what, check_poses(&[&scene]).map(|()| CANVAS.to_owned()));
            }
            Ok(scene) if models.contains(&scene.arm.file.name.as_str()) => {
                findings.note(&what, plan_scene(&scene));
            }
            // The scene is for an arm that this node does not have.
            Ok(_) => {}
            Err(error) => findings.note(&what, Err(anyhow::Error::msg(error))),
        }
    }
    for name in library.shared_scenes() {
        let what = format!("scene {name}");
        match library.shared(&name, None) {
            Ok(shared) if has_arms_of(&models, &shared) => {
                let arms = shared.arm_names().join(" and ");
                let scenes: Vec<_> = shared.parts.iter().map(|part| &part.scene).collect();
                let checked = check_poses(&scenes);
                findings.note(&what, checked.map(|()| format!("shared by {arms}")));
            }
            Ok(_) => {}
            Err(error) => findings.note(&what, Err(anyhow::Error::msg(error))),
        }
    }
    let scenes = library.scenes_for(&models);
    for overlay in library.overlays() {
        let found = scene_of_overlay(library, &scenes, &overlay);
        findings.note(&format!("overlay {overlay}"), found);
    }
}

/// Returns whether a node has as many arms of each model as a scene.
fn has_arms_of(models: &[&str], shared: &SharedScene) -> bool {
    let needed = || shared.parts.iter().map(|part| &*part.scene.arm.file.name);
    let count = |model: &str| models.iter().filter(|one| **one == model).count();
    needed().all(|model| needed().filter(|one| *one == model).count() <= count(model))
}

/// Finds a scene that an overlay goes with; if there is none, returns why it does not go with the first that is good without it.
fn scene_of_overlay(
    library: &SceneLibrary,
    scenes: &[String],
    overlay: &str,
) -> anyhow::Result<String> {
    let mut first_error = None;
    for scene in scenes
        .iter()
        .filter(|scene| library.scene(scene, None).is_ok())
    {
        match library.scene(scene, Some(overlay)) {
            Ok(_) => return Ok(format!("on {scene}")),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    match first_error {
        Some(error) => Err(anyhow::Error::msg(error)),
        None => bail!("there is no scene to check this arm with"),
    }
}

fn plan_scene(scene: &Arc<Scene>) -> anyhow::Result<String> {
    let plan = plan::draw(scene, &scene.rest_rad, &SilentObserver).map_err(anyhow::Error::msg)?;
    gate::preview(scene, &plan.trajectory).map_err(anyhow::Error::msg)?;
    check_poses(&[scene])?;
    let line = millimetres(plan.report.pen_down_mm, 0);
    Ok(format!("{line} of line"))
}

/// Checks that each arm of a scene can come to rest.
fn check_poses(scenes: &[&Arc<Scene>]) -> anyhow::Result<()> {
    let worst = tools::worst_pose(scenes);
    worst.map_or(Ok(()), |worst| Err(anyhow!(worst.words())))
}

/// Checks that there is a serial port of a name.
#[cfg(unix)]
fn check_is_port(path: &str) -> anyhow::Result<()> {
    use std::os::unix::fs::FileTypeExt as _;
    let metadata = std::fs::metadata(path).map_err(|error| {
        anyhow!("there is no port {path} ({error}). Next: plug the arm in; `ls /dev/serial/by-id` lists the ports")
    })?;
    if !metadata.file_type().is_char_device() {
        bail!("{path} is not a serial port. Next: name one of `/dev/serial/by-id`");
    }
    Ok(())
}

/// Checks that there is a serial port of a name.
#[cfg(not(unix))]
fn check_is_port(path: &str) -> anyhow::Result<()> {
    let ports = servo::host::HostSystem::default().ports();
    if !ports.iter().any(|port| port.as_os_str() == path) {
        let ports: Vec<_> = ports
            .iter()
            .map(|port| port.display().to_string())
            .collect();
        bail!(
            "there is no port {path}. Next: plug the arm in, or name one of: {}",
            ports.join(", ")
        );
    }
    Ok(())
}

fn check_port(args: &NodeOptions, entry: &ArmEntry, baud: u32) -> anyhow::Result<String> {
    if entry.is_simulated() {
        return Ok(format!("{}, simulated in the node", entry.model));
    }
    let path = &entry.port;
    if cfg!(unix) && !path.contains('/') {
        bail!(
            "`{path}` is not a serial port. Next: name a device, such as one of `/dev/serial/by-id`, or `port = \"{SIMULATOR_PORT}\"` for a simulated arm"
        );
    }
    check_is_port(path)?;
    let is_pseudo_terminal = path.starts_with("/dev/pts/");
    if file_access::is_root() && !is_pseudo_terminal && !args.allow_root {
        bail!(
            "root ignores the lock on {path}, so two programs could drive the arm. Next: run check and serve as another user, or add --allow-root"
        );
    }
    // Opening the port shows whether it is in use, and whether this user may open it.
    SerialLink::open(path, baud, &NodeClock::real()).map_err(anyhow::Error::msg)?;
    let model = &entry.model;
    Ok(format!(
        "{model} at {path}, {baud} baud; the servos themselves were not checked"
    ))
}
