//! Finds causes that keep an arm's own driver from using the devices on its port, each with a fix.

use std::collections::BTreeMap;
use std::path::Path;

use crate::firmware::ControllerFault;
use crate::identity::check as check_identity;
use crate::{ArmDriver, AttachReport, DriverError};
use arm::{ArmFile, ArmModel, ServoFamily};
use base::clock::NodeClock;
use base::units::{Finite, ServoState};
use link::ByteLink;
use servo::diagnose::{BusDiagnosis, DiagnosisCause, DiagnosisFinding, check_machine};
pub use servo::host::HostSystem;
use servo::supply::{SHARE_UNDER_LOAD, ServoSupply, odd_supplies};
use servo::{OpenPort, SLACK, ServiceError, ServoIdentity, ServoProtocol, complaints, scan};

/// Fix for servo settings that a node warns about.
const SETTINGS_FIX: &str = "set this limit or delay before torque goes on, with `steadyhand bus configure PORT --id N` and `--limits-ticks MIN:MAX` or `--return-delay-us 0` (`--repair` sets neither)";

/// Fix for servos whose replies are sometimes lost or damaged while their registers are read.
const CABLE_FIX: &str = "push every plug in fully, this servo's first. Check for a loose crimp and a weak supply. Then hold the arm still and try again. `steadyhand bus monitor PORT` shows which servos answer";

/// Fix for a servo that was not there when the arm was calibrated.
const STRANGER_FIX: &str = "calibrate the joint, then put these into the arm's file";

/// Finds the cause that keeps a controller with firmware of its own from being used; where none
/// replies, finds what else does.
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
            (found.protocol, found.baud),
            &file.name,
            "a controller with its own firmware",
        );
    } else if !diagnosis.add_talk(open, clock).await? {
        diagnosis.findings.extend(silence);
    }
    Ok(diagnosis)
}

/// Checks that an arm's own driver finds its servos set up as it needs them; its error is a finding.
///
/// # Errors
/// As [`ArmDriver::attach`], once the finding has been added.
pub async fn setup(
    link: &mut dyn ByteLink,
    arm: &ArmModel,
    clock: &NodeClock,
    diagnosis: &mut BusDiagnosis,
) -> Result<(), DriverError> {
    let file = ArmFile {
        // Identities are judged below, so that every servo can be reported.
        identity: BTreeMap::new(),
        ..arm.file.clone()
    };
    let without_identity = ArmModel {
        file,
        ..arm.clone()
    };
    let attached = ArmDriver::new(&without_identity, clock).attach(link).await;
    match attached {
        Ok(attached) => judge_setup(diagnosis, arm, attached),
        Err(error) => {
            add_attach_error(diagnosis, arm.file.family, &error);
            return Err(error);
        }
    }
    Ok(())
}

/// Returns the protocol of a family's servos; `None` for a controller with firmware of its own.
#[must_use]
pub fn servo_protocol(family: ServoFamily) -> Option<ServoProtocol> {
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

/// Diagnoses an arm without using its bus.
pub fn attached(host: &HostSystem, state: &AttachedState<'_>) -> Vec<DiagnosisFinding> {
    let mut diagnosis = BusDiagnosis::default();
    if let Some(port) = state.port {
        check_machine(host, Path::new(port), &mut diagnosis);
        diagnosis.add_holders(host, port);
    }
    if let Some(fault) = state.fault {
        let steps = match state.recovery {
            [] => "`steadyhand reset`. If that does not help, shut down the node and check the bus with `steadyhand doctor`".to_owned(),
            steps => steps.join("; "),
        };
        diagnosis.add(DiagnosisCause::Fault, fault, steps);
    }
    add_stranger(&mut diagnosis, &state.arm.file, state.identity);
    add_low_gains(&mut diagnosis, state.arm, state.identity);
    let protocol = servo_protocol(state.arm.file.family);
    for (servo, protocol) in state
        .servos
        .iter()
        .filter_map(|servo| Some((servo, protocol?)))
    {
        let bits = servo.error_bits.into_iter();
        for complaint in bits.flat_map(|bits| complaints::reported(protocol, bits)) {
            let what = format!("servo {}: {complaint}", servo.id);
            diagnosis.add(DiagnosisCause::Complaint, what, complaint.remedy());
        }
    }
    let supplies = state.servos.iter().filter_map(|servo| {
        let identity = state.identity.iter().find(|one| one.servo.id == servo.id)?;
        Some(ServoSupply {
            id: servo.id,
            kind: identity.model.into(),
            voltage_v: servo.voltage_v?,
            voltage_max_v: None,
        })
    });
    let supplies: Vec<ServoSupply> = supplies.collect();
    let stated_v = state.arm.file.supply_v.map(Finite::get);
    for odd in odd_supplies(&supplies, stated_v, &SHARE_UNDER_LOAD) {
        diagnosis.add(DiagnosisCause::Complaint, odd.to_string(), odd.remedy());
    }
    for warning in state.warnings {
        diagnosis.add(DiagnosisCause::LostReplies, warning, "shut down the node, then `steadyhand bus monitor PORT` shows each servo (docs/faults.md explains the faults)");
    }
    diagnosis.findings
}

/// Adds the error of a driver that could not attach.
fn add_attach_error(diagnosis: &mut BusDiagnosis, family: ServoFamily, error: &DriverError) {
    let (cause, fix) = match error {
        DriverError::OtherFirmware { .. } => (
            DiagnosisCause::WrongFirmware,
            "update its firmware with the manufacturer's program, or replace it. If the voltage on the label and the major version are the same, allow both versions in the arm's file: `firmware = [\"3.9\", \"3.10\"]`"
                .to_owned(),
        ),
        DriverError::Controller(
            ControllerFault::Version { .. } | ControllerFault::Schema { .. },
        ) => (
            DiagnosisCause::WrongFirmware,
            "build its firmware and this node from the same `firmware-protocol`, then flash the firmware"
                .to_owned(),
        ),
        _ if family == ServoFamily::Firmware => (
            DiagnosisCause::Controller,
            "make it speak `firmware-protocol` (docs/families.md) and match the arm's file"
                .to_owned(),
        ),
        DriverError::NoReply { .. }
        | DriverError::SilentBus { .. }
        | DriverError::Bus(_)
        | DriverError::Jump { .. }
        | DriverError::UnsteadyReadings { .. } => {
            (DiagnosisCause::LostReplies, CABLE_FIX.to_owned())
        }
        _ => {
            let id = error
                .servo()
                .map_or("N".to_owned(), |servo| servo.id.to_string());
            let fix = format!(
                "`steadyhand bus configure PORT --id {id} --repair` sets modes and registers for a node. A servo of a different model must be replaced"
            );
            (DiagnosisCause::WrongSetup, fix)
        }
    };
    diagnosis.add(cause, error.to_string(), fix);
}

/// Adds a driver's warnings, and whether the servos are those that the arm was calibrated with.
fn judge_setup(diagnosis: &mut BusDiagnosis, arm: &ArmModel, attached: AttachReport) {
    for warning in attached.warnings {
        diagnosis.add(DiagnosisCause::WrongSetup, warning, SETTINGS_FIX);
    }
    add_stranger(diagnosis, &arm.file, &attached.servos);
    add_low_gains(diagnosis, arm, &attached.servos);
    let present = attached.servos.iter();
    diagnosis.identity = present
        .map(|servo| {
            let id = arm.id_in_file(servo.servo.id);
            (id.to_string(), servo.fingerprint())
        })
        .collect();
}

/// Adds a finding for servos whose gain P is lower than they are delivered with: their joints yield more to the arm's weight.
fn add_low_gains(diagnosis: &mut BusDiagnosis, arm: &ArmModel, servos: &[ServoIdentity]) {
    let Some(figures) = &arm.file.servo else {
        return;
    };
    let heaviest = arm.largest_load_n_m();
    for (joint, servo) in arm.servos() {
        let found = servos.iter().find(|found| found.servo.id == servo.id);
        let Some((found, gain_p)) = found.and_then(|found| Some((found, found.gain_p?))) else {
            continue;
        };
        if gain_p == 0 || gain_p >= figures.gain_p {
            continue;
        }
        let load_n_m = heaviest.get(joint).copied().unwrap_or(0.0).abs();
        let sag_deg = |gain_p| (load_n_m / figures.stiffness_n_m_rad(gain_p, None)).to_degrees();
        let what = format!(
            "{}: gain P is {gain_p} (as delivered: {}). Under the arm's weight its joint hangs up to {:.1}° low instead of {:.1}°",
            found.servo,
            figures.gain_p,
            sag_deg(gain_p),
            sag_deg(figures.gain_p)
        );
        let fix = format!(
            "shut down the node, then `steadyhand bus configure PORT --id {} --p {}`",
            servo.id, figures.gain_p
        );
        diagnosis.add(DiagnosisCause::LowGain, what, fix);
    }
}

/// Adds a finding if a servo is not the one that the arm was calibrated with.
fn add_stranger(diagnosis: &mut BusDiagnosis, file: &ArmFile, servos: &[ServoIdentity]) {
    if let Err(error) = check_identity(file, servos) {
        diagnosis.add(DiagnosisCause::Stranger, error.to_string(), STRANGER_FIX);
    }
}
