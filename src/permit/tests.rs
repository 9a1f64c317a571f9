//! Leave, latches, and what of them outlives the process.
#![allow(clippy::unwrap_used, reason = "a failing test may panic")]

use super::*;
use std::sync::Arc;

use scene::Library;

fn scene() -> std::sync::Arc<Scene> {
    Library::new(None).scene("default", None).unwrap()
}

#[test]
fn a_permit_ends_with_the_next_stop_fault_or_disabling() {
    let (permits, scene) = (Permits::everything(), scene());
    let given = permits.ask(&scene, Instant::ZERO).unwrap();
    assert!(permits.stands(&given));
    permits.latch(Latch::Stopped(Who::Planner));
    assert!(!permits.stands(&given));
    let reset = permits
        .ask_reset(&scene, Who::Planner, Instant::ZERO)
        .unwrap();
    permits.disable();
    assert!(!permits.stands(&reset));
}

#[test]
fn a_reset_ends_only_what_was_latched_before_it_was_allowed() {
    let (permits, scene) = (Permits::everything(), scene());
    permits.latch(Latch::Stopped(Who::Planner));
    let reset = permits
        .ask_reset(&scene, Who::Planner, Instant::ZERO)
        .unwrap();
    permits.latch(Latch::Stopped(Who::Operator));
    assert!(!permits.unlatch(&reset));
    assert_eq!(permits.latched(), Some(Latch::Stopped(Who::Operator)));
    let reset = permits
        .ask_reset(&scene, Who::Operator, Instant::ZERO)
        .unwrap();
    assert!(permits.unlatch(&reset));
    assert_eq!(permits.latched(), None);
}

/// The arm stands where the scene as it was has left it; as that it cannot be enabled any more.
#[test]
fn an_operator_resets_in_a_scene_that_was_changed_since() {
    let (permits, was) = (Permits::none(), scene());
    let mut is = was.as_ref().clone();
    is.revision = scene::Revision::from_bytes([9; 32]);
    permits.enable(&is, Instant::ZERO, None).unwrap();
    permits.latch(Latch::Stopped(Who::Operator));
    let reset = permits.ask_reset(&was, Who::Operator, Instant::ZERO);
    assert!(permits.unlatch(&reset.unwrap()));
    // Nobody else, not in another scene, and nothing else than a reset.
    for who in [Who::Planner, Who::Node] {
        let denied = permits.ask_reset(&was, who, Instant::ZERO);
        assert!(matches!(denied, Err(Denied::NeedsEnabling { .. })));
    }
    is.name = "another".to_owned();
    is.revision = scene::Revision::from_bytes([8; 32]);
    let denied = permits.ask_reset(&is, Who::Operator, Instant::ZERO);
    assert!(matches!(denied, Err(Denied::NeedsEnabling { .. })));
    assert!(permits.ask(&was, Instant::ZERO).is_err());
}

#[test]
fn a_fault_does_not_hand_an_operators_stop_to_a_planner() {
    let (permits, scene) = (Permits::everything(), scene());
    permits.latch(Latch::Stopped(Who::Operator));
    permits.latch(Latch::Fault("unplugged".to_owned()));
    let denied = permits.ask_reset(&scene, Who::Planner, Instant::ZERO);
    assert_eq!(denied.unwrap_err(), Denied::OperatorMustReset);
}

/// The node brings an arm to rest out of its own stops, and out of heat; all else is a person's.
#[test]
fn the_node_takes_no_leave_out_of_what_is_a_persons() {
    let scene = scene();
    let why = || "broken".to_owned();
    for (latch, may) in [
        (Latch::Stopped(Who::Node), true),
        (Latch::Hot(why()), true),
        (Latch::Fault(why()), false),
        (Latch::Stopped(Who::Operator), false),
        (Latch::Emergency(Who::Operator), false),
    ] {
        let permits = Permits::everything();
        permits.latch(latch.clone());
        let given = permits.ask_reset(&scene, Who::Node, Instant::ZERO);
        assert_eq!(given.is_ok(), may, "{latch:?}");
        assert!(given.is_ok_and(|permit| permit.is_nodes_own()) == may);
        let persons = permits.ask_reset(&scene, Who::Operator, Instant::ZERO);
        assert!(persons.is_err() || !persons.unwrap().is_nodes_own());
    }
    let permits = Permits::everything();
    permits.latch(Latch::Hot(why()));
    permits.latch(Latch::Stopped(Who::Node));
    assert_eq!(permits.latched(), Some(Latch::Hot(why())));
    // Whoever stops an arm that is hot wants it to stand.
    permits.latch(Latch::Stopped(Who::Planner));
    permits.latch(Latch::Hot(why()));
    assert_eq!(permits.latched(), Some(Latch::Stopped(Who::Planner)));
}

fn file() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("emergency-stop-arm");
    (folder, file)
}

fn kept(file: &std::path::Path) -> Arc<Permits> {
    let permits = Arc::new(Permits::everything());
    permits.keep_emergency_in(file.to_path_buf()).unwrap();
    permits
}

#[tokio::test]
async fn an_emergency_stop_outlives_its_process_until_it_is_cleared() {
    let (_folder, file) = file();
    let first = kept(&file);
    first.latch(Latch::Emergency(Who::Operator));
    first.emergency_is_kept().await.unwrap();
    drop(first);
    let second = kept(&file);
    let denied = second.ask(&scene(), Instant::ZERO).unwrap_err();
    assert_eq!(denied, Denied::Emergency);
    second.clear_emergency().unwrap();
    assert_eq!(second.latched(), Some(Latch::Stopped(Who::Operator)));
    assert_eq!(kept(&file).latched(), None);
}

#[tokio::test]
async fn whatever_stands_in_the_file_latches() {
    for bytes in [&b""[..], b"\xff\x00", b"nothing is latched", &[0; 4096]] {
        let (_folder, file) = file();
        std::fs::write(&file, bytes).unwrap();
        let latched = kept(&file).latched();
        assert!(matches!(latched, Some(Latch::Emergency(_))), "{bytes:?}");
    }
    // A folder in its place, or a link that leads nowhere, is something as well.
    let (_folder, file) = file();
    std::os::unix::fs::symlink("nowhere", &file).unwrap();
    assert!(matches!(kept(&file).latched(), Some(Latch::Emergency(_))));
}

#[tokio::test]
async fn a_stop_that_cannot_be_kept_says_so_and_one_that_cannot_be_removed_stays() {
    let (folder, file) = file();
    let permits = kept(&file);
    // A folder of that name can be neither written over nor removed as a file.
    std::fs::create_dir(&file).unwrap();
    permits.latch(Latch::Emergency(Who::Operator));
    let why = permits.emergency_is_kept().await.unwrap_err();
    assert!(why.contains("emergency-stop-arm"), "{why}");
    permits.clear_emergency().unwrap_err();
    assert!(matches!(permits.latched(), Some(Latch::Emergency(_))));
    drop(folder);
}

/// Stops and clearings from several threads: in the end file and memory say the same.
#[tokio::test]
async fn clearing_never_loses_a_later_stop() {
    let (_folder, file) = file();
    let permits = kept(&file);
    let stopping = {
        let permits = Arc::clone(&permits);
        std::thread::spawn(move || {
            for _ in 0..50 {
                permits.latch(Latch::Emergency(Who::Operator));
            }
        })
    };
    while !stopping.is_finished() {
        // It may come between a stop and its clearing, and then says so.
        let _ = permits.clear_emergency();
    }
    stopping.join().unwrap();
    permits.emergency_is_kept().await.unwrap();
    let latched = matches!(permits.latched(), Some(Latch::Emergency(_)));
    let again = matches!(kept(&file).latched(), Some(Latch::Emergency(_)));
    assert_eq!(latched, again);
}
