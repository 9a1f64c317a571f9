//! Checks that an arm's servos are those that its file knows.

use crate::error::DriverError;
use arm::ArmFile;
use servo::ServoIdentity;

const _: () = assert!(
    arm::IDENTITY_DIGITS == servo::IDENTITY_DIGITS,
    "an arm's file contains its servos' fingerprints"
);

/// Refuses an arm whose servos are not those that its zeros were measured with, or have been set
/// otherwise since.
///
/// # Errors
/// [`DriverError::Stranger`] names the first of them.
pub fn check(file: &ArmFile, servos: &[ServoIdentity]) -> Result<(), DriverError> {
    for servo in servos {
        let known = file.identity.get(&servo.servo.id.to_string());
        let found = servo.fingerprint();
        if let Some(known) = known.filter(|known| !known.eq_ignore_ascii_case(&found)) {
            return Err(DriverError::Stranger {
                servo: servo.servo.clone(),
                known: known.clone(),
                found,
            });
        }
    }
    Ok(())
}
