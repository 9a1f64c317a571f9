//! Calibration verbs of operators: touches by hand, and showing, accepting or discarding the proposal.

use serde::{Deserialize, Serialize};

use super::measurements::{self, unread_reason};
use super::operator_verb::{VerbReply, without_keys};
use arm::ArmFile;
use base::wording::{count, with_statement};
use calib::{
    AcceptConsent, CalibrationDesk, CalibrationDeskError, CalibrationKind, CalibrationOrigin,
    CalibrationSession, CalibrationStore, FitVerdict, HandTouch, TagObservation, TouchAssessment,
    TouchResidual, TouchRole, report,
};
use tools::Node;

/// Action of an operator on touches and proposals.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case", tag = "action", deny_unknown_fields)]
pub enum CalibrateAction {
    /// Show the proposal.
    #[serde(deserialize_with = "without_keys")]
    Show,
    /// Take the arm's present joints as a touch.
    Touch {
        /// The scene.
        scene: String,
        /// Kind of calibration.
        what: CalibrationKind,
        /// Touched point; absent: the default one.
        of: Option<TouchRole>,
        /// For x and y: distance from the origin, measured with a ruler.
        mm: Option<f64>,
        /// Number of the point, if there are several unknown ones.
        #[serde(default)]
        number: usize,
        /// The arm, where several draw the scene.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arm: Option<String>,
    },
    /// Take a picture of a scene's tags, and propose the camera's pose.
    Camera {
        /// The scene whose sheet it sees.
        scene: String,
        /// The camera, where there are several.
        camera: Option<String>,
    },
    /// Remove every touch at the same place as this one, counted from 1.
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
    /// Discard the proposal.
    Discard {
        /// Key of the proposal that was shown.
        shown: String,
    },
}

/// A proposal as it is shown to a person.
#[derive(Serialize)]
struct ShownProposal<'a> {
    key: String,
    kind: CalibrationKind,
    scene: &'a str,
    arm: &'a str,
    words: String,
    verdict: FitVerdict,
    /// Reason why it cannot be accepted.
    refused: Option<String>,
    /// Reason why it is accepted only if a person confirms the size of the change as well.
    large: Option<String>,
    touches: Vec<ShownTouch>,
}

#[derive(Serialize)]
struct ShownTouch {
    role: TouchRole,
    /// Distance from the fit; absent while there is no fit.
    off_mm: Option<f64>,
}

pub(super) async fn run(node: &Node, action: &CalibrateAction) -> VerbReply {
    let reply = match action {
        CalibrateAction::Show => with_desk(node, show_proposal),
        CalibrateAction::Touch {
            scene,
            what,
            of,
            mm,
            number,
            arm,
        } => {
            let touch = HandTouch {
                of: *of,
                mm: *mm,
                number: *number,
                place: 0,
            };
            let touched = (scene.as_str(), arm.as_deref());
            with_desk(node, |desk| {
                record_touch(node, desk, touched, *what, &touch)
            })
        }
        CalibrateAction::Camera { scene, camera } => {
            match node.camera_pose(scene, camera.as_deref()).await {
                Ok(seen) => with_desk(node, |desk| propose_camera(desk, scene, seen)),
                Err(error) => Ok(VerbReply::failed(error)),
            }
        }
        CalibrateAction::TakeBack { shown, touch } => {
            let removed = with_desk(node, |desk| desk.drop_place_of(*touch, Some(shown)));
            removed.map(|removed| VerbReply::done(format!("{} removed", count(removed, "touch"))))
        }
        CalibrateAction::Accept { shown, overridden } => {
            with_desk(node, |desk| accept_proposal(desk, shown, *overridden))
        }
        CalibrateAction::Discard { shown } => with_desk(node, |desk| desk.discard(shown))
            .map(|()| VerbReply::done("the proposal is discarded")),
    };
    reply.unwrap_or_else(|error| VerbReply::failed(error.to_string()))
}

/// Calls `work` with the calibrations of a node.
fn with_desk<T>(node: &Node, work: impl FnOnce(&CalibrationDesk<'_>) -> T) -> T {
    work(&CalibrationDesk {
        store: &CalibrationStore::of_state(&node.state, &node.scenes),
        library: &node.scenes,
        at_ms: base::clock::calendar_ms(),
        arms: &|file| arms_of(node, file),
    })
}

fn propose_camera(
    desk: &CalibrationDesk<'_>,
    scene: &str,
    (observation, origin): (TagObservation, CalibrationOrigin),
) -> Result<VerbReply, CalibrationDeskError> {
    let scene = desk.library.scene(scene, None)?;
    let (session, assessment) = desk.propose_seen(&scene, observation, origin)?;
    Ok(proposal_reply(&session, &assessment))
}

/// Returns of every attached arm of a file the origin of what is measured on it now.
fn arms_of(node: &Node, file: &ArmFile) -> Vec<CalibrationOrigin> {
    let arms = node.arms.iter();
    let arms = arms.filter(|arm| arm.motion.arm().file.name == file.name);
    arms.map(|arm| tools::origin(node, arm)).collect()
}

fn show_proposal(desk: &CalibrationDesk<'_>) -> Result<VerbReply, CalibrationDeskError> {
    match desk.proposal() {
        Ok(session) => {
            let assessment = desk.assess(&session)?;
            Ok(proposal_reply(&session, &assessment))
        }
        Err(CalibrationDeskError::Nothing) => Ok(VerbReply::done("there is no proposal")),
        Err(error) => Err(error),
    }
}

fn proposal_reply(session: &CalibrationSession, assessment: &TouchAssessment) -> VerbReply {
    let refused = calib::check(&assessment.finding, &assessment.change, true).err();
    let touches = session.touches.iter().enumerate();
    let touches = touches.map(|(index, touch)| ShownTouch {
        role: touch.role,
        off_mm: assessment.points.get(index).map(TouchResidual::mm),
    });
    let text = report::assessment_text(session, assessment);
    let proposal = ShownProposal {
        key: calib::proposal_key(session, assessment),
        kind: session.kind,
        scene: &session.scene,
        arm: &session.arm,
        words: text.clone(),
        verdict: assessment.finding.verdict,
        large: assessment.change.large(),
        refused,
        touches: touches.collect(),
    };
    VerbReply::with_data(text, &proposal)
}

fn record_touch(
    node: &Node,
    desk: &CalibrationDesk<'_>,
    (scene, arm): (&str, Option<&str>),
    kind: CalibrationKind,
    touch: &HandTouch,
) -> Result<VerbReply, CalibrationDeskError> {
    let refuse = |reason: String| {
        Ok(VerbReply::failed(with_statement(
            reason,
            "nothing was recorded",
        )))
    };
    if touch.mm.is_some_and(|mm| !(mm.is_finite() && mm > 0.0)) {
        return refuse("the distance must be above 0 mm, such as 100 or 62.5".to_owned());
    }
    let scene = desk.library.scene(scene, None)?;
    let seat = match node.arm_for(&scene, arm) {
        Ok(seat) => seat,
        Err(reason) => return refuse(reason.into()),
    };
    if let Err(reason) = tools::check_same_zeros(seat, &scene) {
        return refuse(reason.into());
    }
    let snapshot = seat.motion.snapshot();
    if snapshot.state.is_under_way() {
        return refuse("the arm moves or is held, and a touch needs it to stand still".to_owned());
    }
    if let Some(reason) = unread_reason(seat, &snapshot) {
        return refuse(reason);
    }
    if let Some(fault) = &snapshot.fault {
        return refuse(measurements::unmended_fault(&seat.name, fault));
    }
    let Some(measured) = snapshot.measured else {
        return refuse("the arm cannot be read now".to_owned());
    };
    let new_session = calib::begin_session(kind, &scene, None, tools::origin(node, seat))?;
    let joints_rad = measured.position_rad.to_vec();
    let (session, assessment) = desk.add_touch(new_session, touch, joints_rad)?;
    let reply = proposal_reply(&session, &assessment);
    Ok(VerbReply {
        text: node.text_of_arm(seat, &reply.text),
        ..reply
    })
}

fn accept_proposal(
    desk: &CalibrationDesk<'_>,
    shown: &str,
    overridden: bool,
) -> Result<VerbReply, CalibrationDeskError> {
    let kind = desk.proposal()?.kind;
    let accepted = desk.accept(AcceptConsent { shown, overridden })?;
    let path = accepted.path.display();
    let mut text = format!("accepted as calibration {}: {path}", accepted.number);
    let restart = (kind == CalibrationKind::Zeros).then_some(calib::ZEROS_NEED_RESTART);
    let stale = accepted.stale.iter().map(String::as_str);
    for line in restart.into_iter().chain(stale) {
        text = format!("{text}\n{line}");
    }
    Ok(VerbReply::done(text))
}
