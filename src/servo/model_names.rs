//! Names of model numbers.

use super::ServoProtocol;

/// Feetech models, by what registers 3 and 4 read.
const FEETECH: [(u16, &str); 7] = [
    (777, "STS3215"),
    (2825, "STS3250"),
    (1284, "SCS0009"),
    (1029, "SCS15"),
    (521, "STS3025"),
    (2569, "SMS3215"),
    (1541, "HLS3625"),
];

/// Dynamixel models, by what registers 0 and 1 read.
const DYNAMIXEL: [(u16, &str); 20] = [
    (1000, "XH430-W350"),
    (1010, "XH430-W210"),
    (1020, "XM430-W350"),
    (1030, "XM430-W210"),
    (1040, "XH430-V350"),
    (1050, "XH430-V210"),
    (1060, "XL430-W250"),
    (1070, "XC430-W150"),
    (1080, "XC430-W240"),
    (1090, "2XL430-W250"),
    (1100, "XH540-W270"),
    (1110, "XH540-W150"),
    (1120, "XM540-W270"),
    (1130, "XM540-W150"),
    (1160, "2XC430-W250"),
    (1190, "XL330-M077"),
    (1200, "XL330-M288"),
    (1220, "XC330-M288"),
    (1230, "XC330-T181"),
    (1240, "XC330-T288"),
];

/// Returns the name of a model, or its number if it is unknown.
#[must_use]
pub fn name(protocol: ServoProtocol, model: u16) -> String {
    let table: &[(u16, &str)] = match protocol {
        ServoProtocol::FeetechSts => &FEETECH,
        ServoProtocol::Dynamixel2 => &DYNAMIXEL,
    };
    let entry = table.iter().find(|(number, _)| *number == model);
    entry.map_or_else(|| format!("model {model}"), |(_, name)| (*name).to_owned())
}
