//! Calibrations by an operator's verb: touches by hand, and the proposal shown, accepted or discarded.

use serde::{Deserialize, Serialize};

use super::jog;
use super::operator_verb::VerbReply;
use arm::ArmFile;
use base::wording::count;
use calib::{
    AcceptConsent, CalibrationDesk, CalibrationDeskError, CalibrationKind, CalibrationOrigin,
    CalibrationSession, CalibrationStore, FitVerdict, HandTouch, TagObservation, TouchAssessment,
    TouchResidual, TouchRole, report,
};
use tools::Node;

/// Work of an operator on touches and proposals.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case", tag = "action")]
pub enum CalibrateAction {
    /// Show the proposal.
    Show,
    /// Take the arm's present joints as a touch.
    Touch {
        /// In which scene.
        scene: String,
        /// Of what.
        what: CalibrationKind,
        /// Touched point; without one, the usual.
        of: Option<TouchRole>,
        /// Of x and y: how far from the origin, as a ruler says.
        mm: Option<f64>,
        /// Number of the point, of several unknown ones.
        #[serde(default)]
        number: usize,
    },
    /// Take a picture of a scene's tags, and propose where the camera stands.
    Camera {
        /// Of which scene's sheet.
        scene: String,
        /// The camera, where there are several.
        camera: Option<String>,
    },
    /// Take back every touch of the place of this one, counted from 1.
    TakeBack {
        /// Key of the proposal that was shown.
        shown: String,
        /// The touch.
        touch: usize,
    },
    /// Write the proposal into its file.
    Accept {
        /// Key of the proposal that was shown.
        shown: String,
        /// Accept a large change.
        #[serde(default)]
        overridden: bool,
    },
    /// Throw the proposal away.
    Discard {
        /// Key of the proposal that was shown.
        shown: String,
    },
}

/// A proposal as a person judges it.
#[derive(Serialize)]
struct ShownProposal<'a> {
    key: String,
    kind: CalibrationKind,
    scene: &'a str,
    arm: &'a str,
    words: String,
    verdict: FitVerdict,
    /// Reason why it cannot be accepted, whatever a person says.
    refused: Option<String>,
    /// Reason why it is accepted only where a person says so of the change as well.
    large: Option<String>,
    touches: Vec<ShownTouch>,
}

#[derive(Serialize)]
struct ShownTouch {
    role: TouchRole,
    /// From the fit; none while there is no fit.
    off_mm: Option<f64>,
}

pub(super) async fn run(node: &Node, action: &CalibrateAction) -> VerbReply {
    let told = match action {
        CalibrateAction::Show => with_desk(node, show),
        CalibrateAction::Touch {
            scene,
            what,
            of,
            mm,
            number,
        } => {
            let wanted = HandTouch {
                of: *of,
                mm: *mm,
                number: *number,
                place: 0,
            };
            with_desk(node, |desk| touch(node, desk, scene, *what, &wanted))
        }
        CalibrateAction::Camera { scene, camera } => {
            match node.camera_pose(scene, camera.as_deref()).await {
                Ok(seen) => with_desk(node, |desk| propose_seen(desk, scene, seen)),
                Err(why) => Ok(VerbReply::failed(why)),
            }
        }
        CalibrateAction::TakeBack { shown, touch } => {
            let dropped = with_desk(node, |desk| desk.drop_place_of(*touch, Some(shown)));
            dropped
                .map(|dropped| VerbReply::done(format!("{} taken back", count(dropped, "touch"))))
        }
        CalibrateAction::Accept { shown, overridden } => {
            with_desk(node, |desk| accept(desk, shown, *overridden))
        }
        CalibrateAction::Discard { shown } => with_desk(node, |desk| desk.discard(shown))
            .map(|()| VerbReply::done("the proposal is thrown away")),
    };
    told.unwrap_or_else(|error| VerbReply::failed(error.to_string()))
}

/// Works with the calibrations of a node.
fn with_desk<T>(node: &Node, work: impl FnOnce(&CalibrationDesk<'_>) -> T) -> T {
    work(&CalibrationDesk {
        store: &CalibrationStore::of_state(&node.state),
        library: &node.scenes,
        at_ms: base::clock::calendar_ms(),
        origin: &|arm| origin(node, arm),
    })
}

fn propose_seen(
    desk: &CalibrationDesk<'_>,
    scene: &str,
    seen: TagObservation,
) -> Result<VerbReply, CalibrationDeskError> {
    let scene = desk.library.scene(scene, None)?;
    let (session, assessed) = desk.propose_seen(&scene, seen)?;
    Ok(shown(&session, &assessed))
}

/// Returns the arm of this file that is attached.
fn origin(node: &Node, arm: &ArmFile) -> CalibrationOrigin {
    let mut seats = node.arms.iter();
    let seat = seats.find(|seat| seat.motion.arm().file.name == arm.name);
    seat.map_or_else(CalibrationOrigin::default, |seat| tools::origin(node, seat))
}

fn show(desk: &CalibrationDesk<'_>) -> Result<VerbReply, CalibrationDeskError> {
    match desk.proposal() {
        Ok(session) => {
            let assessed = desk.assess(&session)?;
            Ok(shown(&session, &assessed))
        }
        Err(CalibrationDeskError::Nothing) => Ok(VerbReply::done("nothing is proposed")),
        Err(error) => Err(error),
    }
}

fn shown(session: &CalibrationSession, assessed: &TouchAssessment) -> VerbReply {
    let refused = calib::check(&assessed.finding, &assessed.change, true).err();
    let touches = session.touches.iter().enumerate();
    let touches = touches.map(|(index, touch)| ShownTouch {
        role: touch.role,
        off_mm: assessed.points.get(index).map(TouchResidual::mm),
    });
    let words = report::assessment_text(session, assessed);
    let proposal = ShownProposal {
        key: calib::proposal_key(session, assessed),
        kind: session.kind,
        scene: &session.scene,
        arm: &session.arm,
        words: words.clone(),
        verdict: assessed.finding.verdict,
        large: assessed.change.large(),
        refused,
        touches: touches.collect(),
    };
    VerbReply::with_data(words, &proposal)
}

fn touch(
    node: &Node,
    desk: &CalibrationDesk<'_>,
    scene: &str,
    kind: CalibrationKind,
    wanted: &HandTouch,
) -> Result<VerbReply, CalibrationDeskError> {
    let refused = |why: String| Ok(VerbReply::failed(format!("{why}; nothing was recorded")));
    if wanted.mm.is_some_and(|mm| !(mm.is_finite() && mm > 0.0)) {
        return refused("write millimetres above 0, such as 100 or 62.5".to_owned());
    }
    let scene = desk.library.scene(scene, None)?;
    let seat = match jog::seat(node, &scene) {
        Ok(seat) => seat,
        Err(why) => return refused(why.into()),
    };
    if let Err(why) = tools::check_same_zeros(seat, &scene) {
        return refused(why.into());
    }
    let seen = seat.motion.snapshot();
    if seen.state.is_under_way() {
        return refused("the arm is at work: a touch is taken where it stands".to_owned());
    }
    let Some(measured) = seen.measured.filter(|_| seen.fault.is_none()) else {
        return refused("the arm is not read now".to_owned());
    };
    let fresh = calib::begin_session(kind, &scene, None, tools::origin(node, seat))?;
    let joints_rad = measured.position_rad.to_vec();
    let (session, assessed) = desk.add_touch(fresh, wanted, joints_rad)?;
    Ok(shown(&session, &assessed))
}

fn accept(
    desk: &CalibrationDesk<'_>,
    shown: &str,
    overridden: bool,
) -> Result<VerbReply, CalibrationDeskError> {
    let kind = desk.proposal()?.kind;
    let accepted = desk.accept(AcceptConsent { shown, overridden })?;
    let path = accepted.path.display();
    let mut words = format!("accepted as calibration {}: {path}", accepted.number);
    let restart = (kind == CalibrationKind::Zeros).then_some(calib::ZEROS_NEED_RESTART);
    let stale = accepted.stale.iter().map(String::as_str);
    for more in restart.into_iter().chain(stale) {
        words = format!("{words}\n{more}");
    }
    Ok(VerbReply::done(words))
}
