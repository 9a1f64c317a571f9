//! Recovery steps for a person, where `reset` alone does not bring a servo back.

use arm::ServoFamily;
use driver::ServoFault;

/// Returns the steps after a servo's fault. The last one is the `reset` that checks whether the others
/// helped.
pub(super) fn recovery_steps(family: ServoFamily, fault: ServoFault) -> &'static [&'static str] {
    match (fault, family) {
        (ServoFault::Overload | ServoFault::Current, ServoFamily::FeetechSts) => &[
            "hold the arm: it will drop",
            "`steadyhand torque-off` (until then, an overloaded servo accepts no new torque)",
            "clear what blocks the named joint, and move the joint by hand: it must turn freely",
            "`steadyhand reset`",
        ],
        (ServoFault::Overload | ServoFault::Current, ServoFamily::Firmware) => &[
            "hold the arm: it may drop",
            "clear what blocks the named joint, and move the joint by hand: it must turn freely",
            "`steadyhand torque-off`, if the controller keeps the fault",
            "`steadyhand reset`",
        ],
        (
            ServoFault::Overload | ServoFault::Current | ServoFault::Hardware,
            ServoFamily::Dynamixel2,
        ) => &[
            "hold the arm: it will drop",
            "switch the servo supply off: only that clears a latched hardware error",
            "clear what blocks the named joint, and move the joint by hand: it must turn freely",
            "switch the supply on again",
            "`steadyhand reset`",
        ],
        (ServoFault::Heat, _) => &[
            "let the servo cool below 55 °C (`sense` shows its temperature)",
            "reduce its load: a lighter pen holder, slower strokes, a rest pose that hangs down",
            "`steadyhand reset`",
        ],
        (ServoFault::Voltage | ServoFault::OddSupply, _) => &[
            "check the supply and its plugs (`sense` shows the voltage of each servo)",
            "`steadyhand reset`",
        ],
        (ServoFault::TorqueLost | ServoFault::Watchdog, _) => &[
            "hold the arm: some joints may have dropped",
            "clear its path to the rest pose",
            "`steadyhand reset`",
        ],
        (ServoFault::Encoder | ServoFault::Hardware, _) => &[
            "switch the servo supply off and on; if the fault stays, replace the servo",
            "`steadyhand reset`",
        ],
    }
}
