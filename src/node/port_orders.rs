//! The folder that keeps the orders of the arm on a port: a node with another name or state folder finds them by the port.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use base::{disk, plain_file};
use permit::{NumberedOrders, OrderFiles, PermitRegistry};

use super::state_folder;

/// The notes of one port, by each of its names: where its last orders were written.
pub(super) struct PortOrders {
    notes: Vec<PathBuf>,
    state: PathBuf,
    file_name_part: String,
}

impl PortOrders {
    /// Returns the notes of a port for a node with this state folder. Without a home there are none.
    pub(super) fn of(port: &str, state: &Path, file_name_part: &str) -> Self {
        let folder = state_folder::usual("ports").ok();
        let names = [Some(port.into()), Path::new(port).canonicalize().ok()];
        let names: BTreeSet<PathBuf> = names.into_iter().flatten().collect();
        let note = |name: &PathBuf| Some(folder.as_ref()?.join(note_name(name)));
        Self {
            notes: names.iter().filter_map(note).collect(),
            state: state.canonicalize().unwrap_or_else(|_| state.to_owned()),
            file_name_part: file_name_part.to_owned(),
        }
    }

    /// Notes that this node's state folder has the port's orders, if one stands.
    pub(super) fn note(&self, change: &NumberedOrders) {
        if change.orders.is_empty() {
            return;
        }
        let text = format!("{}\n{}\n", self.state.display(), self.file_name_part);
        for note in &self.notes {
            if plain_file::read_text(note).is_ok_and(|old| old == text) {
                continue;
            }
            let folder = note.parent().map_or(Ok(()), disk::folder);
            if let Err(error) = folder.and_then(|()| disk::put(note, &text)) {
                tracing::warn!(
                    "cannot write {}: {error}. Nodes with other state folders do not see this port's orders",
                    note.display()
                );
            }
        }
    }

    /// Takes over the orders that stand for this port in another state folder.
    pub(super) fn take_over(&self, permits: &PermitRegistry) {
        for (state, part) in self.elsewhere() {
            let orders = OrderFiles::of_arm(&state, &part, true).kept();
            if !orders.is_empty() {
                permits.disable();
            }
            for order in orders.iter() {
                let by = format!("{}, at this port, in {}", order.by, state.display());
                permits.give_order(order.verb, &by);
            }
        }
    }

    /// Returns the state folders and arms of other nodes that had the port's last orders.
    fn elsewhere(&self) -> BTreeSet<(PathBuf, String)> {
        let read = |note: &PathBuf| {
            let text = plain_file::read_text(note).ok()?;
            let (state, part) = text.trim_end().split_once('\n')?;
            Some((PathBuf::from(state), part.to_owned()))
        };
        let own = (self.state.clone(), self.file_name_part.clone());
        let noted = self.notes.iter().filter_map(read);
        noted.filter(|place| *place != own).collect()
    }
}

fn note_name(port: &Path) -> String {
    let name = port.to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    name.trim_start_matches('/').chars().map(plain).collect()
}
