//! What an operator said that keeps an arm from moving until an operator ends it. It outlives the process.

use std::fmt;

/// Longest name of who gave an order, in bytes.
const NAME_BYTES_MAX: usize = 120;

/// An operator's word that stands until another word of an operator ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderVerb {
    /// An ordinary stop; `reset` ends it.
    Stop,
    /// An emergency stop; `clear` makes it an ordinary one.
    EmergencyStop,
    /// `disable`; `enable` ends it.
    Disable,
    /// `hold`; `steadyhand continue` ends it, or an operator's stop.
    Hold,
}

impl OrderVerb {
    const ALL: [Self; 4] = [Self::Stop, Self::EmergencyStop, Self::Disable, Self::Hold];

    /// Returns its name, as in files and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::EmergencyStop => "emergency_stop",
            Self::Disable => "disable",
            Self::Hold => "hold",
        }
    }

    /// Returns the operator's commands that end it.
    #[must_use]
    pub const fn ended_by(self) -> &'static str {
        match self {
            Self::Stop => "`steadyhand reset`",
            Self::EmergencyStop => "`steadyhand clear`, then `steadyhand reset`",
            Self::Disable => "`steadyhand enable`",
            Self::Hold => "`steadyhand continue`",
        }
    }
}

/// One order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingOrder {
    /// The word.
    pub verb: OrderVerb,
    /// Who said it, or why it stands.
    pub by: String,
    /// Milliseconds since 1970.
    pub at_ms: u64,
}

impl StandingOrder {
    /// Returns an order. A name that is too long for its record is cut.
    #[must_use]
    pub fn new(verb: OrderVerb, by: &str, at_ms: u64) -> Self {
        let mut name = by.replace(char::is_control, " ");
        while name.len() > NAME_BYTES_MAX {
            name.pop();
        }
        Self {
            verb,
            by: name.trim().to_owned(),
            at_ms,
        }
    }

    fn read(line: &str) -> Option<Self> {
        let mut fields = line.splitn(3, ' ');
        let name = fields.next()?;
        let verb = OrderVerb::ALL
            .into_iter()
            .find(|verb| verb.name() == name)?;
        let at_ms = fields.next()?.parse().ok()?;
        Some(Self::new(verb, fields.next()?, at_ms))
    }
}

impl fmt::Display for StandingOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, next) = (self.verb.name(), self.verb.ended_by());
        write!(f, "{verb} by {} ({next} ends it)", self.by)
    }
}

/// The orders that stand for one arm: at most one of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StandingOrders(Vec<StandingOrder>);

impl StandingOrders {
    /// Returns whether none stands.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the orders, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &StandingOrder> {
        self.0.iter()
    }

    /// Returns the order of this kind.
    #[must_use]
    pub fn get(&self, verb: OrderVerb) -> Option<&StandingOrder> {
        self.iter().find(|order| order.verb == verb)
    }

    /// Adds an order in place of an earlier one of its kind. An ordinary stop changes no emergency stop, and any stop ends a hold.
    pub fn give(&mut self, order: StandingOrder) {
        use OrderVerb::{EmergencyStop, Hold, Stop};
        let is_weaker = order.verb == Stop && self.get(EmergencyStop).is_some();
        self.0.retain(|old| match order.verb {
            Stop | EmergencyStop => !matches!(old.verb, Stop | Hold),
            verb => old.verb != verb,
        });
        if !is_weaker {
            self.0.retain(|old| old.verb != order.verb);
            self.0.push(order);
        }
    }

    /// Ends the order of this kind; returns whether there was one.
    pub fn end(&mut self, verb: OrderVerb) -> bool {
        let before = self.0.len();
        self.0.retain(|order| order.verb != verb);
        self.0.len() < before
    }

    /// Makes an emergency stop an ordinary one, which a reset ends.
    pub(super) fn clear_emergency(&mut self) {
        for order in &mut self.0 {
            if order.verb == OrderVerb::EmergencyStop {
                order.verb = OrderVerb::Stop;
            }
        }
    }

    /// Reads what [`Self::to_lines`] returned; `None` if a line is no order.
    #[must_use]
    pub fn read<'a>(lines: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut orders = Self::default();
        for line in lines {
            orders.give(StandingOrder::read(line)?);
        }
        Some(orders)
    }

    /// Returns the orders as lines, one each.
    #[must_use]
    pub fn to_lines(&self) -> String {
        let line =
            |order: &StandingOrder| format!("{} {} {}\n", order.verb.name(), order.at_ms, order.by);
        self.iter().map(line).collect()
    }
}

impl fmt::Display for StandingOrders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let orders: Vec<String> = self.iter().map(StandingOrder::to_string).collect();
        f.write_str(&orders.join("; "))
    }
}
