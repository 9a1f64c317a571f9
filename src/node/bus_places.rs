//! The arms of a node as they are on their buses: with ids of their own where several share a port.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};

use arm::ArmModel;
use base::clock::NodeClock;
use config::{ArmEntry, NodeFile};
use link::ByteLink;
use link::shared_port::SharedPort;
use motion::{BusThread, MotionError, PortOpener};
use scene::SceneLibrary;

/// The buses that several arms share.
#[derive(Default)]
pub struct SharedBuses {
    by_port: BTreeMap<String, (BusThread, SharedPort)>,
    simulated: Option<BusThread>,
}

impl SharedBuses {
    /// Returns the thread of an arm's bus, and how the arm opens its port: as one of its holders, where there are others.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn join(
        &mut self,
        arm: &ArmModel,
        port: &str,
        open: PortOpener,
    ) -> Result<(BusThread, PortOpener), MotionError> {
        if arm.bus.others.is_empty() {
            return Ok((BusThread::start(&arm.file.name)?, open));
        }
        let (thread, shared) = match self.by_port.entry(port.to_owned()) {
            Entry::Occupied(bus) => bus.get().clone(),
            Entry::Vacant(free) => {
                let bus = (BusThread::start(&arm.file.name)?, SharedPort::new(open));
                free.insert(bus).clone()
            }
        };
        let open: PortOpener =
            Box::new(move |clock| Ok(Box::new(shared.open(clock)?) as Box<dyn ByteLink>));
        Ok((thread, open))
    }

    /// Returns the thread of a simulated arm. Arms of one simulated clock share theirs: they wait for each other at each moment
    /// of it, and threads that do so take milliseconds each time on a busy machine.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn simulated(
        &mut self,
        arm: &ArmModel,
        clock: &NodeClock,
    ) -> Result<BusThread, MotionError> {
        let shared = self.simulated.clone().filter(|_| clock.is_simulated());
        let thread = shared.map_or_else(|| BusThread::start(&arm.file.name), Ok)?;
        self.simulated = Some(thread.clone());
        Ok(thread)
    }
}

/// Returns the arm of each entry of the node file.
///
/// # Errors
/// As [`arm_on_its_bus`], for the first that cannot be used.
pub fn arms_on_their_buses(
    file: &NodeFile,
    library: &SceneLibrary,
) -> anyhow::Result<Vec<Arc<ArmModel>>> {
    let entries = file.arms.iter();
    let arms = entries.map(|entry| arm_on_its_bus(file, entry, library));
    arms.collect()
}

/// Returns the arm of an entry of the node file, with the ids that its servos have on its bus.
///
/// # Errors
/// Its file cannot be read, or it cannot share its port with the other arms there.
pub fn arm_on_its_bus(
    file: &NodeFile,
    entry: &ArmEntry,
    library: &SceneLibrary,
) -> anyhow::Result<Arc<ArmModel>> {
    let own = with_own_ids(entry, library)?;
    let mut others = Vec::new();
    for other in file
        .arms
        .iter()
        .filter(|other| entry.shares_port_with(other))
    {
        let beside = with_own_ids(other, library)?;
        check_pair((entry, &own), (other, &beside))?;
        others.extend(beside.ids());
    }
    if others.is_empty() {
        return Ok(own);
    }
    let mut own = Arc::unwrap_or_clone(own);
    own.bus.others = others;
    Ok(Arc::new(own))
}

fn with_own_ids(entry: &ArmEntry, library: &SceneLibrary) -> anyhow::Result<Arc<ArmModel>> {
    let arm = library.arm(&entry.model).map_err(|error| anyhow!(error))?;
    let Some(first) = entry.first_id else {
        return Ok(arm);
    };
    let moved = arm.with_first_id(first);
    let moved = moved.with_context(|| format!("arm `{}`", entry.name))?;
    Ok(Arc::new(moved))
}

/// Refuses two arms that cannot share a port: replies of one would be taken for the other's, or not be understood.
fn check_pair(
    (entry, own): (&ArmEntry, &ArmModel),
    (other, beside): (&ArmEntry, &ArmModel),
) -> anyhow::Result<()> {
    let (name, other, port) = (&entry.name, &other.name, &entry.port);
    let ids = beside.ids();
    if let Some(id) = own.ids().into_iter().find(|id| ids.contains(id)) {
        let lower = [own.ids(), ids].into_iter().min();
        let highest = lower.and_then(|ids| ids.into_iter().max());
        let free = highest.map_or(0, |highest| highest.saturating_add(1));
        bail!(
            "the arms `{name}` and `{other}` share the port {port}, and both have a servo with id {id}. Next: write `first_id = {free}` for the one with the higher ids"
        );
    }
    if (own.file.family, own.file.baud) != (beside.file.family, beside.file.baud) {
        bail!(
            "the arms `{name}` ({:?}, {} baud) and `{other}` ({:?}, {} baud) share the port {port}; a bus has one kind of servos and one speed. Next: give one of them a port of its own",
            own.file.family,
            own.file.baud,
            beside.file.family,
            beside.file.baud
        );
    }
    Ok(())
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;

    /// Returns the ids of both arms, and those that each knows of as the other's.
    fn ids(arms: [(&str, &str); 2]) -> Result<[[Vec<u8>; 2]; 2], String> {
        let entries = ["left", "right"].into_iter().zip(arms);
        let entries = entries.map(|(name, (model, key))| {
            format!(
                "[[arms]]\nname = \"{name}\"\nmodel = \"{model}\"\nport = \"/dev/none\"\n{key}\n"
            )
        });
        let file = NodeFile::read("node.toml", &entries.collect::<String>());
        let (file, library) = (
            file.map_err(|error| error.to_string())?,
            SceneLibrary::new(None),
        );
        let found = |index: usize| {
            let arm = arm_on_its_bus(&file, &file.arms[index], &library);
            let arm = arm.map_err(|error| format!("{error:#}"))?;
            Ok::<_, String>([arm.ids(), arm.bus.others.clone()])
        };
        Ok([found(0)?, found(1)?])
    }

    #[test]
    fn arms_of_one_port_have_ids_of_their_own_and_know_each_others() {
        let [left, right] = ids([("so101", ""), ("so101", "first_id = 7")]).unwrap();
        let (low, high): (Vec<u8>, Vec<u8>) = ((1..=6).collect(), (7..=12).collect());
        assert_eq!(left, [low.clone(), high.clone()]);
        assert_eq!(right, [high, low]);
    }

    #[test]
    fn refuses_arms_whose_ids_clash_or_are_no_ids_or_whose_servos_differ() {
        for (second, expected) in [
            (("so101", "first_id = 6"), "`left` and `right`"),
            (("so101", "first_id = 6"), "first_id = 7"),
            (("so101", "first_id = 1"), "id 1"),
            (("so101", "first_id = 248"), "highest id 253"),
            (("koch", "first_id = 7"), "one kind of servos"),
            (("custom", "first_id = 7"), "on a controller"),
        ] {
            let error = ids([("so101", ""), second]).unwrap_err();
            assert!(error.contains(expected), "{second:?}: {error}");
        }
        assert!(ids([("so101", ""), ("so101", "first_id = 247")]).is_ok());
    }
}
