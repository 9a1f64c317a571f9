//! Permits, latches, and which of them outlive the process.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing test may panic"
)]

use super::*;
use std::sync::Arc;

use scene::SceneLibrary;

fn scene() -> std::sync::Arc<Scene> {
    SceneLibrary::new(None).scene("default", None).unwrap()
}

#[test]
fn a_permit_ends_with_the_next_stop_fault_or_disabling() {
    let (permits, scene) = (PermitRegistry::everything(), scene());
    let permit = permits.ask(&scene, ClockInstant::ZERO).unwrap();
    assert!(permits.is_current(&permit));
    permits.latch(StopLatch::Stopped(ActorRank::Planner));
    assert!(!permits.is_current(&permit));
    let reset = permits
        .ask_reset(&scene, ActorRank::Planner, ClockInstant::ZERO)
        .unwrap();
    permits.disable();
    assert!(!permits.is_current(&reset));
}

#[test]
fn a_reset_ends_only_what_was_latched_before_it_was_allowed() {
    let (permits, scene) = (PermitRegistry::everything(), scene());
    permits.latch(StopLatch::Stopped(ActorRank::Planner));
    let reset = permits
        .ask_reset(&scene, ActorRank::Planner, ClockInstant::ZERO)
        .unwrap();
    permits.latch(StopLatch::Stopped(ActorRank::Operator));
    assert!(!permits.unlatch(&reset));
    assert_eq!(
        permits.latched(),
        Some(StopLatch::Stopped(ActorRank::Operator))
    );
    let reset = permits
        .ask_reset(&scene, ActorRank::Operator, ClockInstant::ZERO)
        .unwrap();
    assert!(permits.unlatch(&reset));
    assert_eq!(permits.latched(), None);
}

/// The arm stands where the old scene left it, and that scene can no longer be enabled.
#[test]
fn an_operator_resets_in_a_scene_that_was_changed_since() {
    let (permits, old) = (PermitRegistry::none(), scene());
    let mut changed = old.as_ref().clone();
    changed.revision = scene::Revision::from_bytes([9; 32]);
    permits
        .enable(&changed, ClockInstant::ZERO, None, permits.orders_given())
        .unwrap();
    permits.latch(StopLatch::Stopped(ActorRank::Operator));
    let reset = permits.ask_reset(&old, ActorRank::Operator, ClockInstant::ZERO);
    assert!(permits.unlatch(&reset.unwrap()));
    // No other actor may, nor in another scene, nor for anything but a reset.
    for actor in [ActorRank::Planner, ActorRank::Node] {
        let denied = permits.ask_reset(&old, actor, ClockInstant::ZERO);
        assert!(matches!(denied, Err(PermitError::NeedsEnabling { .. })));
    }
    changed.name = "another".to_owned();
    changed.revision = scene::Revision::from_bytes([8; 32]);
    let denied = permits.ask_reset(&changed, ActorRank::Operator, ClockInstant::ZERO);
    assert!(matches!(denied, Err(PermitError::NeedsEnabling { .. })));
    assert!(permits.ask(&old, ClockInstant::ZERO).is_err());
}

#[test]
fn a_fault_does_not_hand_an_operators_stop_to_a_planner() {
    let (permits, scene) = (PermitRegistry::everything(), scene());
    permits.latch(StopLatch::Stopped(ActorRank::Operator));
    permits.latch(StopLatch::Fault("unplugged".to_owned()));
    let denied = permits.ask_reset(&scene, ActorRank::Planner, ClockInstant::ZERO);
    assert_eq!(denied.unwrap_err(), PermitError::OperatorMustReset);
}

/// The node brings an arm to rest after its own stops and after heat; everything else is up to a person.
#[test]
fn the_node_takes_no_leave_out_of_what_is_a_persons() {
    let scene = scene();
    let reason = || "broken".to_owned();
    for (latch, may) in [
        (StopLatch::Stopped(ActorRank::Node), true),
        (StopLatch::Hot(reason()), true),
        (StopLatch::Fault(reason()), false),
        (StopLatch::Stopped(ActorRank::Operator), false),
        (StopLatch::Emergency(ActorRank::Operator), false),
    ] {
        let permits = PermitRegistry::everything();
        permits.latch(latch.clone());
        let permit = permits.ask_reset(&scene, ActorRank::Node, ClockInstant::ZERO);
        assert_eq!(permit.is_ok(), may, "{latch:?}");
        assert!(permit.is_ok_and(|permit| permit.is_nodes_own()) == may);
        let persons = permits.ask_reset(&scene, ActorRank::Operator, ClockInstant::ZERO);
        assert!(persons.is_err() || !persons.unwrap().is_nodes_own());
    }
    let permits = PermitRegistry::everything();
    permits.latch(StopLatch::Hot(reason()));
    permits.latch(StopLatch::Stopped(ActorRank::Node));
    assert_eq!(permits.latched(), Some(StopLatch::Hot(reason())));
    // A caller that stops a hot arm wants it to stand.
    permits.latch(StopLatch::Stopped(ActorRank::Planner));
    permits.latch(StopLatch::Hot(reason()));
    assert_eq!(
        permits.latched(),
        Some(StopLatch::Stopped(ActorRank::Planner))
    );
}

fn file() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("emergency-stop-arm.port");
    (folder, file)
}

/// Returns the registry of an arm on a port whose emergency stop is kept in this file.
fn kept_in(file: &std::path::Path) -> Arc<PermitRegistry> {
    kept_again(file.parent().unwrap(), true)
}

/// Returns the registry of a process after another, whose audit log knows of the file of orders.
fn kept_again(state: &std::path::Path, is_on_port: bool) -> Arc<PermitRegistry> {
    let place = if is_on_port { "port" } else { "simulator" };
    let recorded = match state
        .join(format!("standing-orders-arm.{place}"))
        .symlink_metadata()
    {
        Ok(_) => RecordedOrders::Last(NumberedOrders::default()),
        Err(_) => RecordedOrders::None,
    };
    kept_at(state, is_on_port, recorded)
}

fn kept_at(
    state: &std::path::Path,
    is_on_port: bool,
    recorded: RecordedOrders,
) -> Arc<PermitRegistry> {
    let permits = Arc::new(PermitRegistry::everything());
    let files = OrderFiles::of_arm(state, "arm", is_on_port);
    permits
        .keep_orders_in(files, recorded, Box::new(|_| {}))
        .unwrap();
    permits
}

fn order_file(state: &std::path::Path) -> std::path::PathBuf {
    state.join("standing-orders-arm.port")
}

#[tokio::test]
async fn an_emergency_stop_outlives_its_process_until_it_is_cleared() {
    let (_folder, file) = file();
    let first = kept_in(&file);
    first.latch(StopLatch::Emergency(ActorRank::Operator));
    first.orders_are_kept().await.unwrap();
    drop(first);
    let second = kept_in(&file);
    let denied = second.ask(&scene(), ClockInstant::ZERO).unwrap_err();
    assert_eq!(denied, PermitError::Emergency);
    second.clear_emergency(1).unwrap();
    assert_eq!(
        second.latched(),
        Some(StopLatch::Stopped(ActorRank::Operator))
    );
    drop(second);
    // That an operator has to reset the arm outlives the process as well, until one does.
    let third = kept_in(&file);
    assert_eq!(
        third.latched(),
        Some(StopLatch::Stopped(ActorRank::Operator))
    );
    let by_planner = third.ask_reset(&scene(), ActorRank::Planner, ClockInstant::ZERO);
    assert_eq!(by_planner.unwrap_err(), PermitError::OperatorMustReset);
    // Nothing is enabled by itself after an operator's word.
    third
        .enable(&scene(), ClockInstant::ZERO, None, third.orders_given())
        .unwrap();
    let reset = third.ask_reset(&scene(), ActorRank::Operator, ClockInstant::ZERO);
    assert!(third.unlatch(&reset.unwrap()));
    third.orders_are_kept().await.unwrap();
    drop(third);
    assert_eq!(kept_in(&file).latched(), None);
}

#[cfg(unix)]
#[tokio::test]
async fn whatever_stands_in_the_file_latches() {
    for bytes in [&b""[..], b"\xff\x00", b"nothing is latched", &[0; 4096]] {
        let (_folder, file) = file();
        std::fs::write(&file, bytes).unwrap();
        let latched = kept_in(&file).latched();
        assert!(
            matches!(latched, Some(StopLatch::Emergency(_))),
            "{bytes:?}"
        );
    }
    // A folder in its place, or a link that leads nowhere, is something as well.
    let (_folder, file) = file();
    std::os::unix::fs::symlink("nowhere", &file).unwrap();
    assert!(matches!(
        kept_in(&file).latched(),
        Some(StopLatch::Emergency(_))
    ));
}

#[tokio::test]
async fn an_unwritable_order_says_so_and_an_irremovable_one_stays() {
    let (folder, file) = file();
    let permits = kept_in(&file);
    permits.orders_are_kept().await.unwrap();
    // A folder of that name can be neither written over nor removed as a file.
    std::fs::create_dir(&file).unwrap();
    permits.latch(StopLatch::Emergency(ActorRank::Operator));
    // The file of orders has it.
    permits.orders_are_kept().await.unwrap();
    permits.clear_emergency(permits.emergencies()).unwrap_err();
    assert!(permits.is_emergency());
    let orders = order_file(folder.path());
    std::fs::remove_file(&orders).unwrap();
    std::fs::create_dir(&orders).unwrap();
    permits.give_order(OrderVerb::Disable, "user 1");
    let reason = permits.orders_are_kept().await.unwrap_err().to_string();
    assert!(reason.contains("arm.port"), "{reason}");
}

/// Returns the orders that stand, each with its kind and who gave it.
fn standing(permits: &PermitRegistry) -> Vec<(OrderVerb, String)> {
    let orders = permits.orders();
    let orders = orders.iter().map(|order| (order.verb, order.by.clone()));
    orders.collect()
}

#[tokio::test]
async fn each_order_outlives_its_process_until_an_operator_ends_it() {
    use OrderVerb::{Disable, EmergencyStop, Hold, Stop};
    let end = |permits: &PermitRegistry, verb| {
        permits
            .enable(&scene(), ClockInstant::ZERO, None, permits.orders_given())
            .unwrap();
        match verb {
            EmergencyStop => permits.clear_emergency(permits.emergencies()).unwrap(),
            Hold => assert!(permits.end_hold(permits.orders_given())),
            Stop | Disable => {}
        }
        if matches!(verb, Stop | EmergencyStop) {
            let reset = permits.ask_reset(&scene(), ActorRank::Operator, ClockInstant::ZERO);
            assert!(permits.unlatch(&reset.unwrap()));
        }
    };
    for verb in [Stop, EmergencyStop, Disable, Hold] {
        let (_folder, file) = file();
        let first = kept_in(&file);
        first.give_order(verb, "user 1000");
        first.orders_are_kept().await.unwrap();
        drop(first);
        let second = kept_in(&file);
        assert_eq!(standing(&second), [(verb, "user 1000".to_owned())]);
        assert!(!second.any_enabled(ClockInstant::ZERO), "{verb:?}");
        let now = ClockInstant::ZERO;
        assert!(second.ask(&scene(), now).is_err(), "{verb:?}");
        let planners = second.ask_reset(&scene(), ActorRank::Planner, now);
        assert!(planners.is_err(), "{verb:?}");
        end(&second, verb);
        assert!(second.ask(&scene(), now).is_ok(), "{verb:?}");
        second.orders_are_kept().await.unwrap();
        drop(second);
        assert_eq!(standing(&kept_in(&file)), [], "{verb:?}");
    }
}

#[tokio::test]
async fn a_hold_is_no_leave_for_anything_and_an_operators_stop_ends_it() {
    let (permits, now) = (PermitRegistry::everything(), ClockInstant::ZERO);
    permits.give_order(OrderVerb::Hold, "user 1");
    for by in [ActorRank::Node, ActorRank::Planner] {
        let denied = permits.ask_reset(&scene(), by, now).unwrap_err();
        assert_eq!(denied, PermitError::Held("user 1".to_owned()));
    }
    assert!(permits.ask(&scene(), now).is_err());
    assert!(permits.ask_resume(&scene(), now).is_ok());
    // A planner's stop ends the motion, not the operator's word.
    permits.latch(StopLatch::Stopped(ActorRank::Planner));
    assert_eq!(standing(&permits).len(), 1);
    permits.give_order(OrderVerb::Stop, "user 2");
    assert_eq!(standing(&permits), [(OrderVerb::Stop, "user 2".to_owned())]);
}

/// Whatever is done to the file: it never means that nothing stands.
#[cfg(unix)]
#[tokio::test]
async fn a_file_of_orders_that_cannot_be_read_disables() {
    type Damage = fn(&std::path::Path);
    let damages: [(&str, Damage); 7] = [
        ("emptied", |file| std::fs::write(file, "").unwrap()),
        ("cut", |file| {
            let bytes = std::fs::read(file).unwrap();
            std::fs::write(file, bytes.get(..700).unwrap()).unwrap();
        }),
        ("zeros", |file| std::fs::write(file, [0; 2048]).unwrap()),
        ("one byte of each record", |file| {
            let mut bytes = std::fs::read(file).unwrap();
            for at in [40, 1064] {
                *bytes.get_mut(at).unwrap() ^= 1;
            }
            std::fs::write(file, bytes).unwrap();
        }),
        ("one record", |file| {
            let mut bytes = std::fs::read(file).unwrap();
            *bytes.get_mut(40).unwrap() ^= 1;
            std::fs::write(file, bytes).unwrap();
        }),
        ("a folder", |file| {
            std::fs::remove_file(file).unwrap();
            std::fs::create_dir(file).unwrap();
        }),
        ("a link to a file in which nothing stands", |file| {
            std::fs::rename(file, file.with_extension("other")).unwrap();
            std::os::unix::fs::symlink(file.with_extension("other"), file).unwrap();
        }),
    ];
    for (name, damage) in damages {
        let (folder, file) = file();
        let first = kept_in(&file);
        first.orders_are_kept().await.unwrap();
        drop(first);
        damage(&order_file(folder.path()));
        let second = kept_in(&file);
        let orders = second.orders();
        let disabled = orders.get(OrderVerb::Disable).unwrap();
        assert!(
            disabled.by.contains("standing-orders-arm.port"),
            "{name}: {disabled}"
        );
        assert!(!second.any_enabled(ClockInstant::ZERO), "{name}");
        // It is ended as any other, and then the file is whole again.
        second
            .enable(&scene(), ClockInstant::ZERO, None, second.orders_given())
            .unwrap();
        if name != "a folder" {
            second.orders_are_kept().await.unwrap();
            drop(second);
            assert_eq!(standing(&kept_in(&file)), [], "{name}");
        }
    }
}

#[tokio::test]
async fn an_order_stands_while_file_or_audit_log_says_so_whichever_is_newer() {
    for verb in [OrderVerb::Stop, OrderVerb::Disable, OrderVerb::Hold] {
        for (file_has_it, logged_number) in [(true, 99), (false, 1), (false, 99)] {
            let (folder, file) = file();
            let first = kept_in(&file);
            let mut logged = NumberedOrders {
                number: logged_number,
                ..NumberedOrders::default()
            };
            if file_has_it {
                first.give_order(verb, "user 1");
            } else {
                let order = StandingOrder::new(verb, "user 1", 1);
                logged.orders.give(order);
            }
            first.orders_are_kept().await.unwrap();
            drop(first);
            let second = kept_at(folder.path(), true, RecordedOrders::Last(logged));
            assert!(
                second.orders().get(verb).is_some(),
                "{verb:?} {file_has_it}"
            );
            assert!(!second.any_enabled(ClockInstant::ZERO));
        }
    }
}

#[tokio::test]
async fn an_emergency_stop_in_the_audit_log_counts_and_a_removed_file_disables() {
    let (folder, file) = file();
    let state = folder.path();
    let first = kept_in(&file);
    first.orders_are_kept().await.unwrap();
    let old = std::fs::read(order_file(state)).unwrap();
    first.give_order(OrderVerb::EmergencyStop, "user 1");
    first.orders_are_kept().await.unwrap();
    let logged = NumberedOrders {
        number: 9,
        orders: first.orders(),
    };
    drop(first);
    for is_put_back in [false, true] {
        let _ = std::fs::remove_file(&file);
        std::fs::remove_file(order_file(state)).unwrap();
        if is_put_back {
            std::fs::write(order_file(state), &old).unwrap();
        }
        let second = kept_at(state, true, RecordedOrders::Last(logged.clone()));
        assert!(second.is_emergency());
        let is_disabled = second.orders().get(OrderVerb::Disable).is_some();
        assert_eq!(is_disabled, !is_put_back);
        second.orders_are_kept().await.unwrap();
    }
    std::fs::remove_file(order_file(state)).unwrap();
    std::fs::remove_file(&file).unwrap();
    let lost = kept_at(state, true, RecordedOrders::Lost);
    assert!(lost.orders().get(OrderVerb::Disable).is_some());
}

#[tokio::test]
async fn orders_that_the_audit_log_does_not_witness_disable() {
    for recorded in [RecordedOrders::None, RecordedOrders::Lost] {
        let (folder, file) = file();
        kept_in(&file).orders_are_kept().await.unwrap();
        let second = kept_at(folder.path(), true, recorded);
        assert!(second.orders().get(OrderVerb::Disable).is_some());
    }
}

#[tokio::test]
async fn a_word_to_enable_ends_no_order_that_came_after_it() {
    for verb in [
        OrderVerb::Disable,
        OrderVerb::Stop,
        OrderVerb::EmergencyStop,
    ] {
        let permits = PermitRegistry::none();
        let seen = permits.orders_given();
        permits.give_order(verb, "user 1");
        let enabled = permits.enable(&scene(), ClockInstant::ZERO, None, seen);
        assert_eq!(enabled, Err(PermitError::OrderedMeanwhile));
        assert!(!permits.any_enabled(ClockInstant::ZERO));
        assert!(permits.orders().get(verb).is_some());
    }
    let permits = PermitRegistry::everything();
    let seen = permits.orders_given();
    permits.give_order(OrderVerb::Hold, "user 1");
    assert!(!permits.end_hold(seen));
    assert!(permits.end_hold(permits.orders_given()));
}

#[tokio::test]
async fn files_that_are_removed_under_a_node_are_written_again() {
    let (folder, file) = file();
    let permits = kept_in(&file);
    permits.give_order(OrderVerb::EmergencyStop, "user 1");
    permits.orders_are_kept().await.unwrap();
    for removed in [file.clone(), order_file(folder.path())] {
        std::fs::remove_file(&removed).unwrap();
        while !removed.exists() {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn clearing_where_nothing_is_latched_owes_no_reset() {
    let (_folder, file) = file();
    let permits = kept_in(&file);
    permits.clear_emergency(permits.emergencies()).unwrap();
    assert_eq!(permits.latched(), None);
    drop(permits);
    assert_eq!(kept_in(&file).latched(), None);
}

/// Two nodes, each with a state folder, that know the same port.
struct PortBench {
    bench: tempfile::TempDir,
}

impl PortBench {
    fn new() -> Self {
        let bench = tempfile::tempdir().unwrap();
        for state in ["a", "b"] {
            std::fs::create_dir(bench.path().join(state)).unwrap();
        }
        Self { bench }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.bench.path().join(name)
    }

    fn record(&self) -> std::path::PathBuf {
        self.path("ports/dev-none")
    }

    /// Returns the registry of a new process with this state folder.
    fn node(&self, state: &str) -> Arc<PermitRegistry> {
        self.node_of(state, None)
    }

    /// Returns it for an arm whose lowest id on the port may be another one than in its file.
    fn node_of(&self, state: &str, first_id: Option<u8>) -> Arc<PermitRegistry> {
        let state = self.path(state);
        let permits = Arc::new(PermitRegistry::everything());
        let place = ("/dev/none", first_id);
        let records = PortRecords::of(&self.path("ports"), place, &state, "arm");
        let files = OrderFiles::of_arm(&state, "arm", true).at_port(records);
        let recorded = match order_file(&state).exists() {
            true => RecordedOrders::Last(NumberedOrders::default()),
            false => RecordedOrders::None,
        };
        permits
            .keep_orders_in(files, recorded, Box::new(|_| {}))
            .unwrap();
        permits
    }

    async fn told(&self, state: &str, verb: OrderVerb) {
        let first = self.node(state);
        first.give_order(verb, "user 1");
        first.orders_are_kept().await.unwrap();
    }
}

#[tokio::test]
async fn an_order_is_found_by_its_port_until_it_is_ended() {
    let bench = PortBench::new();
    bench.told("a", OrderVerb::Disable).await;
    let second = bench.node("b");
    let by = standing(&second).pop().unwrap().1;
    assert!(by.starts_with("user 1, for this port, in "), "{by}");
    assert!(!second.any_enabled(ClockInstant::ZERO));
    second
        .enable(&scene(), ClockInstant::ZERO, None, second.orders_given())
        .unwrap();
    second.orders_are_kept().await.unwrap();
    assert!(!bench.record().exists());
    drop(second);
    // Once none stands, the folder may go.
    std::fs::remove_dir_all(bench.path("b")).unwrap();
    std::fs::create_dir(bench.path("b")).unwrap();
    assert_eq!(standing(&bench.node("b")), []);
}

/// Arms that share a port are told apart by their ids, whatever node and name they have.
#[tokio::test]
async fn an_order_at_a_port_is_for_the_arm_with_these_ids_alone() {
    let places = [None, Some(0), Some(7), Some(70)];
    let pairs = places.map(|ordered| places.map(|place| (ordered, place)));
    for (ordered, place) in pairs.into_iter().flatten() {
        let bench = PortBench::new();
        let permits = bench.node_of("a", ordered);
        permits.give_order(OrderVerb::Disable, "user 1");
        permits.orders_are_kept().await.unwrap();
        // The record of an arm with the ids of its file stays where it was.
        assert_eq!(bench.record().exists(), ordered.is_none());
        let found = standing(&bench.node_of("b", place));
        assert_eq!(found.is_empty(), place != ordered, "{ordered:?}, {place:?}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_record_at_the_port_that_leads_to_no_orders_disables() {
    type Damage = fn(&PortBench);
    fn put(bench: &PortBench, text: impl AsRef<[u8]>) {
        std::fs::write(bench.record(), text).unwrap();
    }
    let damages: [(&str, Damage); 11] = [
        ("emptied", |bench| put(bench, "")),
        ("random bytes", |bench| put(bench, [0xff, 0x8e, 0x0a, 0x3c])),
        ("two empty lines", |bench| put(bench, "\n\n")),
        ("its first line only", |bench| {
            put(bench, format!("{}\n", bench.path("a").display()));
        }),
        ("a folder that is missing", |bench| {
            put(bench, "/no/such\narm\n");
        }),
        ("a folder without orders", |bench| {
            put(bench, format!("{}\narm\n", bench.bench.path().display()));
        }),
        ("a folder where no order stands", |bench| {
            let free = bench.path("free");
            std::fs::create_dir_all(&free).unwrap();
            OrderFiles::of_arm(&free, "arm", true).hand_over().unwrap();
            put(bench, format!("{}\narm\n", free.display()));
        }),
        ("a folder in its place", |bench| {
            std::fs::remove_file(bench.record()).unwrap();
            std::fs::create_dir(bench.record()).unwrap();
        }),
        ("a link that leads nowhere", |bench| {
            std::fs::remove_file(bench.record()).unwrap();
            std::os::unix::fs::symlink("nowhere", bench.record()).unwrap();
        }),
        ("a file in place of its folder", |bench| {
            std::fs::remove_dir_all(bench.path("ports")).unwrap();
            std::fs::write(bench.path("ports"), "").unwrap();
        }),
        ("the named folder emptied", |bench| {
            std::fs::remove_file(order_file(&bench.path("a"))).unwrap();
        }),
    ];
    for verb in [
        OrderVerb::EmergencyStop,
        OrderVerb::Stop,
        OrderVerb::Disable,
    ] {
        for (name, damage) in damages {
            let bench = PortBench::new();
            bench.told("a", verb).await;
            damage(&bench);
            let second = bench.node("b");
            let disabled = second.orders().get(OrderVerb::Disable).cloned();
            let by = disabled.unwrap_or_else(|| panic!("{verb:?}, {name}")).by;
            assert!(by.contains("ports/dev-none"), "{verb:?}, {name}: {by}");
            assert!(!second.any_enabled(ClockInstant::ZERO), "{verb:?}, {name}");
        }
    }
}

#[tokio::test]
async fn a_state_folder_that_was_removed_while_an_order_stood_disables() {
    let bench = PortBench::new();
    bench.told("a", OrderVerb::Stop).await;
    std::fs::remove_dir_all(bench.path("a")).unwrap();
    std::fs::create_dir(bench.path("a")).unwrap();
    let second = bench.node("a");
    assert!(second.orders().get(OrderVerb::Disable).is_some());
}

#[tokio::test]
async fn an_emergency_stop_outlives_its_removed_file_of_orders() {
    let bench = PortBench::new();
    bench.told("a", OrderVerb::EmergencyStop).await;
    std::fs::remove_file(order_file(&bench.path("a"))).unwrap();
    let second = bench.node("b");
    assert!(second.orders().get(OrderVerb::Disable).is_some());
    assert!(second.is_emergency());
}

#[tokio::test]
async fn an_order_whose_port_has_no_record_says_so_and_is_kept_all_the_same() {
    let bench = PortBench::new();
    let first = bench.node("a");
    std::fs::write(bench.path("ports"), "").unwrap();
    first.give_order(OrderVerb::EmergencyStop, "user 1");
    let failed = first.orders_are_kept().await.unwrap_err();
    let told = failed.consequence();
    assert!(
        told.starts_with("a node with another state folder"),
        "{told}"
    );
    // It does not keep an operator from ending the order.
    first.clear_emergency(first.emergencies()).unwrap();
    first.give_order(OrderVerb::Stop, "user 1");
    std::fs::remove_file(bench.path("ports")).unwrap();
    while first.orders_are_kept().await.is_err() {
        tokio::task::yield_now().await;
    }
    assert!(bench.record().exists());
    drop(first);
    assert_eq!(
        standing(&bench.node("a")),
        [(OrderVerb::Stop, "user 1".to_owned())]
    );
}

/// A start that is refused later, because its arm is not plugged in, must not disable the next one.
#[tokio::test]
async fn the_files_are_there_once_orders_are_kept() {
    let (folder, file) = file();
    let permits = kept_in(&file);
    assert!(order_file(folder.path()).exists());
    drop(permits);
}

/// The word that ends an emergency stop may be carried out after another one came.
#[tokio::test]
async fn clearing_ends_no_stop_that_came_behind_it() {
    let (_folder, file) = file();
    let permits = kept_in(&file);
    permits.latch(StopLatch::Emergency(ActorRank::Operator));
    let seen = permits.emergencies();
    permits.latch(StopLatch::Emergency(ActorRank::Operator));
    let reason = permits.clear_emergency(seen).unwrap_err();
    assert_eq!(reason, OrderKeepingError::StoppedMeanwhile);
    assert!(matches!(permits.latched(), Some(StopLatch::Emergency(_))));
    permits.orders_are_kept().await.unwrap();
    assert!(file.exists());
    permits.clear_emergency(permits.emergencies()).unwrap();
    assert!(!file.exists());
}

#[test]
fn a_refusal_after_a_stop_says_who_has_to_reset() {
    for (by, end) in [
        (
            ActorRank::Operator,
            "stopped by an operator. Next: an operator resets it with `steadyhand reset`",
        ),
        (
            ActorRank::Planner,
            "stopped by a tool call. Next: call `reset`",
        ),
    ] {
        let permits = PermitRegistry::everything();
        permits.latch(StopLatch::Stopped(by));
        let denied = permits.ask(&scene(), ClockInstant::ZERO).unwrap_err();
        assert!(denied.to_string().ends_with(end), "{denied}");
    }
}

/// Stops and clearings from several threads: in the end file and memory say the same.
#[tokio::test]
async fn clearing_never_loses_a_later_stop() {
    let (_folder, file) = file();
    let permits = kept_in(&file);
    let stopping = {
        let permits = Arc::clone(&permits);
        std::thread::spawn(move || {
            for _ in 0..50 {
                permits.latch(StopLatch::Emergency(ActorRank::Operator));
            }
        })
    };
    while !stopping.is_finished() {
        // A stop may come during the clearing, which then fails.
        let _ = permits.clear_emergency(permits.emergencies());
    }
    stopping.join().unwrap();
    permits.orders_are_kept().await.unwrap();
    let latched = matches!(permits.latched(), Some(StopLatch::Emergency(_)));
    let again = matches!(kept_in(&file).latched(), Some(StopLatch::Emergency(_)));
    assert_eq!(latched, again);
}

#[test]
fn a_drawing_is_enabled_beside_its_scene_and_gives_no_leave_for_it() {
    use scene::DesignReplacement;
    let drawn = |name: &str| {
        let file = (name.to_owned(), b"[[[0, 0], [9, 9]]]".to_vec());
        let library =
            SceneLibrary::new(None).with_drawing(DesignReplacement::from_files(vec![file]));
        library.scene("default", None).unwrap()
    };
    let (permits, now) = (PermitRegistry::none(), ClockInstant::ZERO);
    let (own, cat, dog) = (scene(), drawn("cat.json"), drawn("dog.json"));
    permits
        .enable(&cat, now, None, permits.orders_given())
        .unwrap();
    assert!(permits.ask(&cat, now).is_ok());
    // A garbled request must not be taken for the scene's own design.
    assert!(!permits.is_only_enabled("default", now));
    for other in [&own, &dog] {
        let text = permits.ask(other, now).unwrap_err().to_string();
        assert!(text.contains("Enabled now: cat.json in default"), "{text}");
    }
    let text = permits.ask(&dog, now).unwrap_err().to_string();
    assert!(text.contains("`steadyhand draw`"), "{text}");
    // The scene's own grant stays when a drawing is enabled.
    permits
        .enable(&own, now, None, permits.orders_given())
        .unwrap();
    permits
        .enable(&dog, now, None, permits.orders_given())
        .unwrap();
    assert!(permits.ask(&own, now).is_ok() && permits.ask(&dog, now).is_ok());
}

#[test]
fn nothing_moves_in_a_pen_change_until_a_person_ends_it() {
    let (permits, scene) = (PermitRegistry::none(), scene());
    let minute = std::time::Duration::from_secs(60);
    let enable = |now| {
        permits
            .enable(&scene, now, Some(minute), permits.orders_given())
            .unwrap();
    };
    enable(ClockInstant::ZERO);
    let permit = permits.ask(&scene, ClockInstant::ZERO).unwrap();
    permits.begin_pen_change("job-1 waits for pen 2");
    assert!(!permits.is_current(&permit));
    for actor in [ActorRank::Node, ActorRank::Planner, ActorRank::Operator] {
        let denied = permits.ask_reset(&scene, actor, ClockInstant::ZERO);
        assert!(matches!(denied, Err(PermitError::PenChange(_))));
    }
    enable(ClockInstant::ZERO);
    let denied = permits.ask(&scene, ClockInstant::ZERO).unwrap_err();
    assert!(denied.to_string().contains("pen 2"), "{denied}");
    // The permission has expired: the confirmation is refused, and the change goes on.
    let expired_at = ClockInstant::ZERO.after(2 * minute);
    let denied = permits.confirm_pen_change(&scene, expired_at);
    assert!(matches!(denied, Err(PermitError::NeedsEnabling { .. })));
    assert!(matches!(
        permits.ask(&scene, expired_at),
        Err(PermitError::PenChange(_))
    ));
    enable(expired_at);
    permits.confirm_pen_change(&scene, expired_at).unwrap();
    assert!(permits.ask(&scene, expired_at).is_ok());
    // After giving up nothing is enabled, because a hand may be at the arm.
    permits.begin_pen_change("job-1 waits for pen 3");
    permits.give_up_pen_change();
    assert!(matches!(
        permits.ask(&scene, expired_at),
        Err(PermitError::NeedsEnabling { .. })
    ));
}

#[test]
fn a_scene_enabled_unchanged_lets_a_drawing_in_it_go_on() {
    use scene::DesignReplacement;
    let file = ("cat.json".to_owned(), b"[[[0, 0], [9, 9]]]".to_vec());
    let library = SceneLibrary::new(None).with_drawing(DesignReplacement::from_files(vec![file]));
    let drawn = library.scene("default", None).unwrap();
    let (permits, own, now) = (PermitRegistry::none(), scene(), ClockInstant::ZERO);
    assert_eq!(own.setting, drawn.setting);
    let denied = permits.ask_resume(&drawn, now).unwrap_err().to_string();
    let command = "`steadyhand enable --scene default --for 30m`";
    assert!(denied.contains(command), "{denied}");
    permits
        .enable(&own, now, None, permits.orders_given())
        .unwrap();
    for by in [ActorRank::Planner, ActorRank::Operator] {
        assert!(permits.ask_reset(&drawn, by, now).is_ok());
    }
    assert!(permits.ask_resume(&drawn, now).is_ok());
    // It is no leave to begin the drawing, nor is that of a drawing leave for another.
    assert!(permits.ask(&drawn, now).is_err());
    let mut moved = drawn.as_ref().clone();
    moved.setting = scene::Revision::from_bytes([9; 32]);
    let denied = permits.ask_reset(&moved, ActorRank::Planner, now);
    assert!(matches!(denied, Err(PermitError::NeedsEnabling { .. })));
    permits.latch(StopLatch::Stopped(ActorRank::Operator));
    assert!(permits.ask_resume(&drawn, now).is_err());
}

#[test]
fn the_command_that_enables_a_scene_names_its_overlay() {
    let mut over = scene().as_ref().clone();
    over.overlay = Some("leaf".to_owned());
    let denied = PermitRegistry::none().ask(&over, ClockInstant::ZERO);
    let denied = denied.unwrap_err().to_string();
    let command = "`steadyhand enable --scene default --meta leaf --for 30m`";
    assert!(denied.contains(command), "{denied}");
}

#[tokio::test]
async fn an_emergency_stop_is_of_the_arm_on_its_port_or_of_the_simulated_one() {
    let folder = tempfile::tempdir().unwrap();
    let kept = |is_on_port| kept_again(folder.path(), is_on_port);
    let latched = kept(true);
    latched.latch(StopLatch::Emergency(ActorRank::Operator));
    latched.orders_are_kept().await.unwrap();
    drop(latched);
    assert_eq!(kept(false).latched(), None);
    assert!(kept(true).latched().is_some());
}

#[tokio::test]
async fn an_older_nodes_emergency_stop_and_owed_reset_are_of_both_arms() {
    for (name, latch) in [
        (
            "emergency-stop-arm",
            StopLatch::Emergency(ActorRank::Operator),
        ),
        (
            "emergency-stop-arm.reset-owed",
            StopLatch::Stopped(ActorRank::Operator),
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(name), "").unwrap();
        split_unmarked_estop(folder.path(), "arm").unwrap();
        for is_on_port in [true, false] {
            let permits = kept_again(folder.path(), is_on_port);
            assert_eq!(permits.latched(), Some(latch.clone()));
        }
        assert!(!folder.path().join(name).exists(), "it is split once");
        split_unmarked_estop(folder.path(), "arm").unwrap();
    }
}

#[test]
fn what_is_enabled_is_told_with_the_minutes_that_are_left() {
    let (permits, scene) = (PermitRegistry::none(), scene());
    let start = ClockInstant::ZERO;
    assert_eq!(permits.enabled_for_text(start), "nothing");
    permits
        .enable(
            &scene,
            start,
            Some(Duration::from_secs(30 * 60)),
            permits.orders_given(),
        )
        .unwrap();
    let later = |minutes: u64| start.after(Duration::from_secs(minutes * 60));
    assert_eq!(permits.enabled_for_text(later(8)), "default, 22 min left");
    assert_eq!(permits.enabled_for_text(later(31)), "nothing");
    let everything = PermitRegistry::everything();
    assert_eq!(everything.enabled_for_text(start), "everything");
}
