//! Tracks the tool's switch: M3 and M4 with their power, M5, and the angle of a pen's servo.

/// State of a tool's switch and its power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ToolLevel {
    /// M5, S0, or no command yet.
    Off,
    /// M3 without any S.
    On,
    /// M3 or M4 with this S, or a servo at this angle.
    Power(f64),
}

impl ToolLevel {
    /// Returns how far it is on: 0 without an S; `None` if it is off.
    pub(super) const fn power(self) -> Option<f64> {
        match self {
            Self::Off => None,
            Self::On => Some(0.0),
            Self::Power(power) => Some(power),
        }
    }
}

/// The lowest and the highest power at which a tool draws.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PowerRange {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl PowerRange {
    pub(super) const fn of(power: f64) -> Self {
        Self {
            low: power,
            high: power,
        }
    }

    pub(super) const fn including(self, power: f64) -> Self {
        Self {
            low: self.low.min(power),
            high: self.high.max(power),
        }
    }

    pub(super) fn overlaps(self, other: Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    pub(super) fn contains(self, level: ToolLevel) -> bool {
        let power = level.power();
        power.is_some_and(|power| (self.low..=self.high).contains(&power))
    }
}

#[derive(Default)]
pub(super) struct ToolSwitch {
    is_on: bool,
    /// For a servo, an angle of 0 is as good as any other; for a spindle, a power of 0 is off.
    is_servo: bool,
    /// M4: a laser that is dark while G0 travels.
    is_dynamic: bool,
    power: Option<f64>,
}

impl ToolSwitch {
    pub(super) fn switch_on(&mut self, is_dynamic: bool) {
        self.is_on = true;
        self.is_dynamic = is_dynamic;
    }

    pub(super) fn switch_off(&mut self) {
        self.is_on = false;
    }

    pub(super) fn set_power(&mut self, power: f64, is_servo: bool) {
        self.is_servo |= is_servo;
        self.power = Some(power);
    }

    /// Returns the level during a move; a laser that M4 switched on is dark while G0 travels.
    pub(super) fn level(&self, in_rapid: bool) -> ToolLevel {
        match self.power {
            _ if !self.is_on || (in_rapid && self.is_dynamic) => ToolLevel::Off,
            None => ToolLevel::On,
            Some(power) if power <= 0.0 && !self.is_servo => ToolLevel::Off,
            Some(power) => ToolLevel::Power(power),
        }
    }
}
