//! Restarts a servo at a person's request: its latched errors are cleared, and whatever it carries drops.

use std::time::Duration;

use super::{BusError, ServiceError, ServoLine};

/// Longest time for a servo to come back.
const REBOOT_TIMEOUT: Duration = Duration::from_secs(2);

/// Restarts one servo and waits until it replies; its torque is off then.
///
/// # Errors
/// [`BusError::NoReboot`] where its family has no such request; [`ServiceError::NoServo`] where no
/// servo has that id or it does not come back; otherwise when the line itself fails.
pub async fn reboot(line: &mut ServoLine, id: u8) -> Result<(), ServiceError> {
    if line.ping(id).await?.is_none() {
        return Err(line.no_servo(id));
    }
    if !line.reboot(id).await? {
        return Err(BusError::NoReboot { id }.into());
    }
    let until = line.clock().now().after(REBOOT_TIMEOUT);
    while line.clock().now() < until {
        if line.ping(id).await?.is_some() {
            return Ok(());
        }
    }
    Err(line.no_servo(id))
}
