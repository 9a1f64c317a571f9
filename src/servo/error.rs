//! Errors of a servo bus, and faults that a servo reports of itself.

use link::LinkError;

/// A servo by its id and the joint that it moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServoName {
    /// Its id on the bus.
    pub id: u8,
    /// The joint that it moves, or its name in the arm file.
    pub name: String,
}

impl std::fmt::Display for ServoName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "servo {} ({})", self.id, self.name)
    }
}

/// A failed transaction.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// The request did not reach the wire.
    #[error("while writing to the servos: {0}")]
    Write(#[source] LinkError),
    /// The line failed while a reply was awaited.
    #[error("while reading from the servos: {0}")]
    Read(#[source] LinkError),
    /// No servo can be restarted on request.
    #[error(
        "servo {id} cannot restart on request. Next: if its torque is on, `steadyhand torque-off`; then switch the supply off and on"
    )]
    NoReboot {
        /// The requested id.
        id: u8,
    },
    /// A write that lets a servo move, without the authority for it.
    #[error("{register} can make a servo move, so only an arm's driver may write it")]
    NoAuthority {
        /// The register, as the manual calls it.
        register: &'static str,
    },
}

/// A fault that a servo reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServoFault {
    /// Supply outside the servo's limits.
    #[error("supply voltage outside the servo's limits: check the supply and its cable")]
    Voltage,
    /// Supply far from the others' or from the one that the arm's file states.
    #[error(
        "its supply differs from the other servos' or from `supply_v` in the arm's file (`steadyhand doctor` says which): check its plugs and the supply"
    )]
    OddSupply,
    /// The servo distrusts its own position sensor.
    #[error(
        "position sensor fault: switch the supply off and on; if the fault stays, replace the servo"
    )]
    Encoder,
    /// Too hot.
    #[error("overheating: let it cool, and reduce the load")]
    Heat,
    /// Too much current.
    #[error("over-current: something blocks it or its wiring is damaged")]
    Current,
    /// Pushed too hard for too long.
    #[error(
        "overload: free the arm, then switch its torque off and on again (a Dynamixel servo first needs `steadyhand bus reboot`)"
    )]
    Overload,
    /// Torque reads off although it was switched on.
    #[error("torque is off although it was on: the servo lost power or restarted")]
    TorqueLost,
    /// The servo's own watchdog has tripped.
    #[error("its bus watchdog tripped: the bus was silent for too long")]
    Watchdog,
    /// A latched hardware error without a more specific name.
    #[error(
        "it reports a hardware error: switch its supply off and on, or run `steadyhand bus reboot`"
    )]
    Hardware,
}

/// A number that does not fit into its register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value} does not fit into its register; -{most} to {most} are possible")]
pub struct TooLarge {
    /// The number.
    pub value: i32,
    /// The largest magnitude that fits.
    pub most: u16,
}
