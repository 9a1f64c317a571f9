//! Recovery steps for a person, where `reset` alone does not bring a servo back.

use arm::ServoFamily;
use driver::ServoFault;

/// Returns the steps after a servo's fault. The last one is the `reset` that checks whether the others
/// helped.
pub(super) fn recovery_steps(family: ServoFamily, fault: ServoFault) -> &'static [&'static str] {
    match (fault, family) {
        (ServoFault::Overload | ServoFault::Current, ServoFamily::FeetechSts) => &[
            "hold the arm: it will drop",
            "`steadyhand torque-off`: a servo that cut its torque for overload takes it again only after that",
            "take away what blocks the joint that is named, and move it by hand: it must turn freely",
            "`steadyhand reset`",
        ],
        (ServoFault::Overload | ServoFault::Current, ServoFamily::Firmware) => &[
            "hold the arm: it may drop",
            "take away what blocks the joint that is named, and move it by hand: it must turn freely",
            "`steadyhand torque-off`, if the controller keeps the fault",
            "`steadyhand reset`",
        ],
        (
            ServoFault::Overload | ServoFault::Current | ServoFault::Hardware,
            ServoFamily::Dynamixel2,
        ) => &[
            "hold the arm: it will drop",
            "switch the servo supply off: a latched hardware error ends only with the power",
            "take away what blocks the joint that is named, and move it by hand: it must turn freely",
            "switch the supply on again",
            "`steadyhand reset`",
        ],
        (ServoFault::Heat, _) => &[
            "let the servo cool below 55 °C; its temperature is in `sense`",
            "lessen its load: a lighter pen holder, slower strokes, a rest pose that hangs",
            "`steadyhand reset`",
        ],
        (ServoFault::Voltage | ServoFault::OddSupply, _) => &[
            "check the supply and its plugs: the voltage of each servo is in `sense`",
            "`steadyhand reset`",
        ],
        (ServoFault::TorqueLost | ServoFault::Watchdog, _) => &[
            "hold the arm: single joints may have dropped",
            "see that nothing is in its way to rest",
            "`steadyhand reset`",
        ],
        (ServoFault::Encoder | ServoFault::Hardware, _) => &[
            "switch the servo supply off and on; replace the servo if the fault stays",
            "`steadyhand reset`",
        ],
    }
}
