//! The records by which a node with another name or state folder finds the orders of the arm on a port. A record is there while an
//! order stands, and names the folder that has it. One that does not lead to readable orders disables the arm.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::order_file::KeptOrders;
use super::order_writer::{OrderFiles, OrderKeepingError};
use super::standing_orders::{OrderVerb, StandingOrder, StandingOrders};
use base::clock::calendar_ms;
use base::{disk, plain_file};

/// The records of one port, by each of its names.
#[derive(Debug)]
pub struct PortRecords {
    records: Vec<PathBuf>,
    own: OrderPlace,
}

/// The place of an arm's orders: a state folder, and the arm's name in file names.
#[derive(Debug, PartialEq, Eq)]
struct OrderPlace {
    state: PathBuf,
    arm: String,
}

impl PortRecords {
    /// Returns the records of a port in their folder, for an arm whose orders are kept in this state folder. An arm with other
    /// ids than those of its file has records of its own, by its `first_id`: it may share the port.
    #[must_use]
    pub fn of(
        folder: &Path,
        (port, first_id): (&str, Option<u8>),
        state: &Path,
        file_name_part: &str,
    ) -> Self {
        let path = Path::new(port);
        let names = [Some(port.into()), path.canonicalize().ok(), device(path)];
        let names: BTreeSet<PathBuf> = names.into_iter().flatten().collect();
        let records = names
            .iter()
            .map(|name| folder.join(record_name(name, first_id)));
        Self {
            records: records.collect(),
            own: OrderPlace {
                state: state.canonicalize().unwrap_or_else(|_| state.to_owned()),
                arm: file_name_part.to_owned(),
            },
        }
    }

    /// Makes the records say where the orders are, and removes the own ones once none stands.
    ///
    /// # Errors
    /// A record cannot be written.
    pub(super) fn follow(&self, orders: &StandingOrders) -> Result<(), OrderKeepingError> {
        for record in &self.records {
            let is_own = matches!(read(record), Ok(Some(place)) if place == self.own);
            let done = match (orders.is_empty(), is_own) {
                (false, false) => self.write(record),
                (true, true) => std::fs::remove_file(record),
                _ => Ok(()),
            };
            done.map_err(|error| OrderKeepingError::PortRecord {
                path: record.clone(),
                why: error.to_string(),
            })?;
        }
        Ok(())
    }

    fn write(&self, record: &Path) -> io::Result<()> {
        record.parent().map_or(Ok(()), disk::folder)?;
        let OrderPlace { state, arm } = &self.own;
        disk::put(record, &format!("{}\n{arm}\n", state.display()))
    }

    /// Returns the orders that the records lead to, and an order to disable for each record that leads to none.
    pub(super) fn standing(&self) -> Vec<StandingOrder> {
        let orders = self.records.iter().map(|record| match read(record) {
            Ok(None) => Vec::new(),
            Ok(Some(place)) => self.orders_at(record, &place),
            Err(error) => vec![unknown(record, &error.to_string())],
        });
        orders.flatten().collect()
    }

    fn orders_at(&self, record: &Path, place: &OrderPlace) -> Vec<StandingOrder> {
        let files = OrderFiles::of_arm(&place.state, &place.arm, true);
        let kept = files.kept();
        // A record is there only while an order stands.
        let doubt = match files.read() {
            KeptOrders::Missing => Some("the file with this arm's orders was removed"),
            _ if kept.is_empty() => {
                Some("it points to a state folder without an order for this arm")
            }
            _ => None,
        };
        let doubt = doubt.map(|reason| unknown(record, reason));
        let mut orders: Vec<StandingOrder> = doubt.into_iter().collect();
        if *place != self.own {
            orders.extend(kept.iter().map(|order| {
                let by = format!("{}, for this port, in {}", order.by, place.state.display());
                StandingOrder::new(order.verb, &by, order.at_ms)
            }));
        }
        orders
    }
}

/// Returns the order that stands because a record does not say which do.
fn unknown(record: &Path, reason: &str) -> StandingOrder {
    tracing::warn!("{}: {reason}, so motion is disabled", record.display());
    let name = record.file_name().unwrap_or_default().to_string_lossy();
    let by = format!("the node, because of ports/{name}: {reason}");
    StandingOrder::new(OrderVerb::Disable, &by, calendar_ms())
}

/// Reads a record; `None` where there is none.
fn read(record: &Path) -> io::Result<Option<OrderPlace>> {
    let text = match plain_file::read_text(record) {
        // A link that leads nowhere is something.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !record.is_symlink() => {
            return Ok(None);
        }
        text => text?,
    };
    let damaged = || io::Error::other("it is damaged");
    let (state, arm) = text.trim_end().split_once('\n').ok_or_else(damaged)?;
    let is_whole = Path::new(state).is_absolute() && !arm.contains(['\n', '/']);
    is_whole.then_some(()).ok_or_else(damaged)?;
    Ok(Some(OrderPlace {
        state: state.into(),
        arm: arm.to_owned(),
    }))
}

/// Names a device by its number, which is the same under each of its paths.
#[cfg(unix)]
fn device(path: &Path) -> Option<PathBuf> {
    use std::os::unix::fs::MetadataExt as _;
    let number = path.metadata().ok()?.rdev();
    (number != 0).then(|| format!("device-{number}").into())
}

#[cfg(not(unix))]
fn device(_path: &Path) -> Option<PathBuf> {
    None
}

fn record_name(port: &Path, first_id: Option<u8>) -> String {
    let name = port.to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let mut name: String = name.trim_start_matches('/').chars().map(plain).collect();
    // Windows takes a file of this name for the port, whatever folder it is in.
    if name.to_ascii_uppercase().starts_with("COM") {
        name.insert_str(0, "port-");
    }
    // No port's own name has a point.
    first_id.map_or_else(|| name.clone(), |id| format!("{name}.{id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_record_has_the_name_of_a_port_on_windows() {
        let names = [
            ("COM7", None, "port-COM7"),
            ("com7", Some(7), "port-com7.7"),
            ("/dev/ttyACM0", Some(7), "dev-ttyACM0.7"),
        ];
        for (port, first_id, name) in names {
            assert_eq!(record_name(Path::new(port), first_id), name);
        }
    }
}
