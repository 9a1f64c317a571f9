//! Finds causes that keep an arm's own driver from using the devices on its port, as findings with a fix each.

use std::collections::BTreeMap;
use std::path::Path;

use crate::firmware::ControllerFault;
use crate::identity::check as check_identity;
use crate::{ArmDriver, AttachReport, DriverError};
use arm::{ArmFile, ArmModel, ServoFamily};
use base::clock::NodeClock;
use base::units::ServoState;
use link::ByteLink;
use servo::diagnose::{BusDiagnosis, DiagnosisCause, DiagnosisFinding, check_machine};
pub use servo::host::HostSystem;
use servo::{OpenPort, SLACK, ServiceError, ServoIdentity, ServoProtocol, complaints, scan};

/// Fix for settings of servos that a node warns of.
const SET_BEFORE_ENERGISED: &str = "set it before the arm is energised: `steadyhand bus configure PORT --id N` with `--limits-ticks MIN:MAX` or `--return-delay-us 0`; `--repair` sets neither";

/// Fix for servos whose replies are lost or damaged now and then, as their registers are read.
const LOOSE_CABLE: &str = "push every plug home, at this servo first, look for a crimp that moves and for a supply that sags, and hold the arm still; then look again. `steadyhand bus monitor PORT` shows who answers";

/// Fix for a servo that was not there when the arm was calibrated.
const CALIBRATE_STRANGER: &str = "once the joint is calibrated, put these into the arm's file";

/// Finds the cause that keeps a controller with firmware of its own from being used; where none answers, who does.
///
/// # Errors
/// When the line fails half-way; a port that cannot be opened is a finding.
pub async fn controller(
    open: &mut OpenPort<'_>,
    clock: &NodeClock,
    host: &HostSystem,
    port: &str,
    arm: &ArmModel,
) -> Result<BusDiagnosis, ServiceError> {
    let mut diagnosis = BusDiagnosis::default();
    let latency = check_machine(host, Path::new(port), &mut diagnosis);
    let file = &arm.file;
    let silence = match open(file.baud) {
        Err(error) => {
            diagnosis.add_port(&error, host, port);
            return Ok(diagnosis);
        }
        Ok(mut link) => match setup(link.as_mut(), arm, clock, &mut diagnosis).await {
            Err(DriverError::Controller(ControllerFault::Silent { .. })) => {
                diagnosis.findings.pop()
            }
            _ => return Ok(diagnosis),
        },
    };
    let slack = latency.map_or(SLACK, |latency| SLACK + 2 * latency);
    let search = scan::find_usual(open, clock, slack, None, &mut |_, _| {}).await?;
    if let Some(found) = search.reached {
        diagnosis.add_family(
            (found.speech, found.baud),
            &file.name,
            "a controller with firmware of its own",
        );
    } else if !diagnosis.add_talk(open, clock).await? {
        diagnosis.findings.extend(silence);
    }
    Ok(diagnosis)
}

/// Checks that an arm's own driver finds its servos as it needs them; its complaint is a finding.
///
/// # Errors
/// As [`ArmDriver::attach`], once the finding has been added.
pub async fn setup(
    link: &mut dyn ByteLink,
    arm: &ArmModel,
    clock: &NodeClock,
    into: &mut BusDiagnosis,
) -> Result<(), DriverError> {
    let file = ArmFile {
        // Who they are is judged below, so that it can be told of all of them.
        identity: BTreeMap::new(),
        ..arm.file.clone()
    };
    let anybody = ArmModel {
        file,
        ..arm.clone()
    };
    let attached = ArmDriver::new(&anybody, clock).attach(link).await;
    match attached {
        Ok(attached) => judge_setup(into, arm, attached),
        Err(error) => {
            add_unfit(into, arm.file.family, &error);
            return Err(error);
        }
    }
    Ok(())
}

/// Returns what a family's servos speak; `None` for a controller with firmware of its own.
#[must_use]
pub fn speech(family: ServoFamily) -> Option<ServoProtocol> {
    match family {
        ServoFamily::FeetechSts => Some(ServoProtocol::FeetechSts),
        ServoFamily::Dynamixel2 => Some(ServoProtocol::Dynamixel2),
        ServoFamily::Firmware => None,
    }
}

/// State of an arm while its own thread has the port.
#[derive(Clone, Copy, Debug)]
pub struct AttachedState<'a> {
    /// The arm.
    pub arm: &'a ArmModel,
    /// Its serial port; `None` where it is simulated.
    pub port: Option<&'a str>,
    /// Its servos as they were attached.
    pub identity: &'a [ServoIdentity],
    /// Its servos as they were last read.
    pub servos: &'a [ServoState],
    /// Its fault.
    pub fault: Option<&'a str>,
    /// Steps for an operator that end the fault.
    pub recovery: &'a [&'static str],
    /// Warnings that do not keep it from moving.
    pub warnings: &'a [String],
}

/// Finds what can be found of an arm without asking its bus anything.
pub fn attached(host: &HostSystem, seen: &AttachedState<'_>) -> Vec<DiagnosisFinding> {
    let mut found = BusDiagnosis::default();
    if let Some(port) = seen.port {
        check_machine(host, Path::new(port), &mut found);
        found.add_holders(host, port);
    }
    if let Some(fault) = seen.fault {
        let steps = match seen.recovery {
            [] => "reset the arm; if that does not help, end the node and run `steadyhand doctor`, which asks the bus itself".to_owned(),
            steps => steps.join("; "),
        };
        found.add(DiagnosisCause::Fault, fault, steps);
    }
    add_stranger(&mut found, &seen.arm.file, seen.identity);
    let speech = speech(seen.arm.file.family);
    for (servo, speech) in seen
        .servos
        .iter()
        .filter_map(|servo| Some((servo, speech?)))
    {
        let bits = servo.error_bits.into_iter();
        for complaint in bits.flat_map(|bits| complaints::reported(speech, bits)) {
            let what = format!("servo {}: {complaint}", servo.id);
            found.add(DiagnosisCause::Complaint, what, complaint.remedy());
        }
    }
    for warning in seen.warnings {
        found.add(DiagnosisCause::LostReplies, warning, "docs/faults.md says what to do; with the node ended, `steadyhand bus monitor` shows each servo");
    }
    found.findings
}

/// A driver that would not attach.
fn add_unfit(into: &mut BusDiagnosis, family: ServoFamily, error: &DriverError) {
    let (cause, fix) = match error {
        DriverError::OtherFirmware { .. } => (
            DiagnosisCause::WrongFirmware,
            "bring it to the firmware of the others with the manufacturer's program, or replace it"
                .to_owned(),
        ),
        DriverError::Controller(
            ControllerFault::Version { .. } | ControllerFault::Schema { .. },
        ) => (
            DiagnosisCause::WrongFirmware,
            "build its firmware and this node from the same `firmware-protocol`, and flash it"
                .to_owned(),
        ),
        _ if family == ServoFamily::Firmware => (
            DiagnosisCause::Controller,
            "it must speak `firmware-protocol`, as docs/families.md says, and fit the arm's file"
                .to_owned(),
        ),
        DriverError::NoReply { .. }
        | DriverError::SilentBus { .. }
        | DriverError::Bus(_)
        | DriverError::Jump { .. }
        | DriverError::UnsteadyReadings { .. } => {
            (DiagnosisCause::LostReplies, LOOSE_CABLE.to_owned())
        }
        _ => {
            let id = error
                .servo()
                .map_or("N".to_owned(), |servo| servo.id.to_string());
            let fix = format!(
                "`steadyhand bus configure PORT --id {id} --repair` sets modes and registers as a node needs them; a servo of another model has to be replaced"
            );
            (DiagnosisCause::WrongSetup, fix)
        }
    };
    into.add(cause, error.to_string(), fix);
}

/// Findings of a driver's warnings, and whether the servos are those that the arm was calibrated with.
fn judge_setup(into: &mut BusDiagnosis, arm: &ArmModel, attached: AttachReport) {
    for warning in attached.warnings {
        into.add(DiagnosisCause::WrongSetup, warning, SET_BEFORE_ENERGISED);
    }
    add_stranger(into, &arm.file, &attached.servos);
    let present = attached.servos.iter();
    into.identity = present
        .map(|servo| (servo.servo.id.to_string(), servo.fingerprint()))
        .collect();
}

/// Adds that a servo is not the one that the arm was calibrated with.
fn add_stranger(into: &mut BusDiagnosis, file: &ArmFile, servos: &[ServoIdentity]) {
    if let Err(error) = check_identity(file, servos) {
        into.add(
            DiagnosisCause::Stranger,
            error.to_string(),
            CALIBRATE_STRANGER,
        );
    }
}
