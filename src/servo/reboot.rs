//! Restarts a servo at a person's request: what it has latched is cleared, and what it carries drops.

use std::time::Duration;

use super::{BusError, ServiceError, ServoLine};

/// A servo that has not come back by then does not.
const BACK: Duration = Duration::from_secs(2);

/// Lets one servo start anew and waits until it answers; its torque is off then.
///
/// # Errors
/// [`BusError::NoReboot`] where its family knows no such request; [`ServiceError::NoServo`] where
/// nobody has that id or it does not come back; otherwise when the line itself fails.
pub async fn reboot(line: &mut ServoLine, id: u8) -> Result<(), ServiceError> {
    if line.ping(id).await?.is_none() {
        return Err(line.no_servo(id));
    }
    if !line.reboot(id).await? {
        return Err(BusError::NoReboot { id }.into());
    }
    let until = line.clock().now().after(BACK);
    while line.clock().now() < until {
        if line.ping(id).await?.is_some() {
            return Ok(());
        }
    }
    Err(line.no_servo(id))
}
