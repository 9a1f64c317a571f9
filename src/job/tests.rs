//! Journals of drawings on the simulated arm, and every way in which they can be cut short.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::float_cmp,
    clippy::disallowed_methods,
    reason = "a failing test may panic, and may wait"
)]

#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::journal_file::{self, JournalFile};
use super::journal_record::{JournalRecord, RecordKind};
use super::*;
use base::clock::NodeClock;
use link::memory::MemoryLink;
use link::{ByteLink, LinkError};
use motion::{MotionHandle, MotionOutcome, PortOpener};
use permit::{ActorRank, PermitRegistry, StopLatch};
use plan::{self, Plan, SilentObserver};
#[cfg(target_os = "linux")]
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use scene::{Scene, SceneLibrary, SheetStroke};
use sim::{ArmSimulator, InkLine, PaperSurface, SimPen};

#[cfg(unix)]
mod left_folders;
mod namesakes;

const KEEP: RetentionPolicy = RetentionPolicy {
    jobs: 3,
    bytes: 1 << 30,
    days: 30,
};

const ARM: ArmKey<'_> = ArmKey {
    name: "arm",
    is_on_port: false,
};

struct Sheet(scene::Surface);

impl PaperSurface for Sheet {
    fn touch(&self, tip_m: [f64; 3]) -> Option<([f64; 2], f64)> {
        let projected = self.0.project(&nalgebra::Point3::from(tip_m));
        Some((projected.at_mm, projected.height_mm))
    }
}

struct TestArm {
    scene: Arc<Scene>,
    sim: ArmSimulator,
    motion: Arc<MotionHandle>,
    plan: Plan,
}

impl TestArm {
    fn new() -> Self {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let sim = ArmSimulator::new(&scene.arm, &scene.rest_rad);
        let pen = SimPen {
            tip_m: scene.pens[0].tip_m.coords.into(),
            colour: "#000000".to_owned(),
            width_mm: 0.5,
        };
        sim.place_sheet(Box::new(Sheet(scene.surface.clone())), vec![pen]);
        let device = sim.clone();
        let open: PortOpener = Box::new(move |clock| {
            let link = MemoryLink::new(device.clone(), clock, "bench").map_err(LinkError::Read)?;
            Ok(Box::new(link) as Box<dyn ByteLink>)
        });
        let (arm, permits) = (
            Arc::clone(&scene.arm),
            Arc::new(PermitRegistry::everything()),
        );
        let motion =
            Arc::new(MotionHandle::start(arm, NodeClock::simulated(), permits, open).unwrap());
        let start = motion.snapshot().measured.unwrap().position_rad;
        let plan = plan::draw(&scene, &start, &SilentObserver).unwrap();
        Self {
            scene,
            sim,
            motion,
            plan,
        }
    }

    fn proof(&self) -> gate::CheckedTrajectory {
        let now = self.motion.clock().now();
        let permit = self.motion.permits().ask(&self.scene, now).unwrap();
        let measured = self.motion.snapshot().measured.unwrap();
        let trajectory = self.plan.trajectory.clone();
        gate::check(&self.scene, permit, &measured, now, trajectory).unwrap()
    }

    async fn draw_without_journal(&self) -> Vec<InkLine> {
        let outcome = self.motion.run(self.proof(), 0).await.unwrap();
        assert!(
            matches!(outcome, MotionOutcome::Reached { .. }),
            "{outcome:?}"
        );
        self.sim.ink()
    }

    async fn draw(&self, entry: &Arc<JobJournal>) -> (MotionOutcome, JournalOutcome) {
        let stop = {
            let motion = Arc::clone(&self.motion);
            Box::new(move |reason: &str| {
                motion.stop(ActorRank::Node, false);
                motion.permits().latch(StopLatch::Fault(reason.to_owned()));
            })
        };
        let (entry, snapshots) = (Arc::clone(entry), self.motion.watch());
        let writer = JournalWriter::start(entry, &self.scene, &self.plan, snapshots, stop).unwrap();
        let outcome = self
            .motion
            .run_released(self.proof(), 0, writer.release())
            .await
            .unwrap();
        (outcome, writer.finish().await)
    }
}

fn accepted(jobs: &JobStore) -> AcceptedJob {
    AcceptedJob {
        id: jobs.next_id(),
        tool: "stroke".to_owned(),
        arm: "arm".to_owned(),
        ..AcceptedJob::default()
    }
}

/// Carries out a drawing to its end, and returns its records.
async fn draw_all(state: &Path) -> (TestArm, Vec<JournalRecord>) {
    let arm = TestArm::new();
    let jobs = JobStore::open(state, KEEP).unwrap();
    let entry = Arc::new(jobs.begin(&accepted(&jobs)).unwrap());
    let (outcome, journal) = arm.draw(&entry).await;
    assert!(
        matches!(outcome, MotionOutcome::Reached { .. }),
        "{outcome:?}"
    );
    assert_eq!(journal.failure, None);
    let records = journal_file::read(&state.join("jobs/job-1/journal"))
        .unwrap()
        .records;
    (arm, records)
}

#[tokio::test]
async fn a_drawing_with_a_journal_is_the_same_to_the_last_point() {
    let state = tempfile::tempdir().unwrap();
    let (arm, _) = draw_all(state.path()).await;
    assert_eq!(arm.sim.ink(), TestArm::new().draw_without_journal().await);
}

#[tokio::test]
async fn the_intent_to_ink_is_recorded_before_each_five_millimetres() {
    let state = tempfile::tempdir().unwrap();
    let (arm, records) = draw_all(state.path()).await;
    let mut released_mm = 0.0;
    let mut count = 0;
    for record in records
        .iter()
        .filter(|record| record.kind == Some(RecordKind::Ink))
    {
        let drawn: f64 = record.number("drawn_mm").unwrap();
        let upto: f64 = record.number("upto_mm").unwrap();
        assert!(
            drawn <= released_mm,
            "{drawn} drawn, {released_mm} released"
        );
        assert!(upto - drawn <= 5.0 + 1e-9, "{upto} after {drawn}");
        released_mm = upto;
        count += 1;
    }
    let total = arm.plan.report.pen_down_mm;
    assert!((released_mm - total).abs() < 1e-6);
    assert!(
        f64::from(count) > total / 5.0,
        "{count} records for {total} mm"
    );
}

/// Returns the job in a prefix of a journal after a crash: bytes cut anywhere.
fn after_crash(journal: &[u8], end: usize) -> Option<PastJob> {
    let state = tempfile::tempdir().unwrap();
    let folder = state.path().join("jobs/job-1");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("journal"), &journal[..end]).unwrap();
    let jobs = JobStore::open(state.path(), KEEP).unwrap();
    assert!(
        jobs.damaged().is_empty(),
        "cut at {end}: {:?}",
        jobs.damaged()
    );
    jobs.interrupted(ARM)
}

fn total_mm(strokes: &[SheetStroke]) -> f64 {
    strokes.iter().map(SheetStroke::length_mm).sum()
}

#[tokio::test]
async fn cut_at_any_byte_nothing_is_missing_and_little_is_drawn_twice() {
    const OVERLAP_MM: f64 = 3.0;
    /// The last forty records and more.
    const LAST_BYTES: usize = 4000;
    let state = tempfile::tempdir().unwrap();
    let (arm, records) = draw_all(state.path()).await;
    let journal = std::fs::read(state.path().join("jobs/job-1/journal")).unwrap();
    let total = total_mm(&arm.plan.strokes);
    let is_ink = |record: &JournalRecord| record.kind == Some(RecordKind::Ink);
    assert!(records.iter().any(is_ink));
    let (mut cuts, mut last_mm) = (0, 0.0);
    // Cuts throughout the journal, as a restart reads them, and at every byte of the last records.
    let restarted = (0..=journal.len()).filter(|end| end % 197 == 0);
    let restarted = restarted.filter_map(|end| Some((end, after_crash(&journal, end)?)));
    let last_ends = journal.len().saturating_sub(LAST_BYTES)..=journal.len();
    let parsed = last_ends.map(|end| {
        let contents = journal_file::parse_contents(&journal[..end], Path::new("journal")).unwrap();
        let mut past = PastJob::from_records(&contents.records);
        past.interrupted = !past.is_over();
        (end, past)
    });
    for (end, past) in restarted.chain(parsed) {
        cuts += 1;
        let rest_mm = total_mm(&past.remaining_strokes(OVERLAP_MM));
        // The pen was between what was recorded as drawn and what was released.
        let (least, most) = (past.drawn.mm, past.released_mm.max(past.drawn.mm));
        assert!(
            least + rest_mm >= total - 0.02,
            "missing after a cut at {end}"
        );
        assert!(
            most + rest_mm <= total + OVERLAP_MM + 5.0 + 1e-6,
            "cut at {end}: {most} mm may be drawn, {rest_mm} of {total} follow"
        );
        // The second series of cuts begins before the end of the first.
        assert!(
            least >= last_mm || end == journal.len() - LAST_BYTES,
            "a longer journal says less"
        );
        last_mm = least;
    }
    assert!(cuts > LAST_BYTES, "only {cuts} cuts were checked");
}

#[tokio::test]
async fn a_disk_that_takes_no_more_stops_the_motion_within_what_was_recorded() {
    let state = tempfile::tempdir().unwrap();
    let arm = TestArm::new();
    let jobs = JobStore::open(state.path(), KEEP).unwrap();
    let entry = Arc::new(jobs.begin(&accepted(&jobs)).unwrap());
    entry.disk_fills_at(20);
    let (outcome, journal) = arm.draw(&entry).await;
    assert!(matches!(outcome, MotionOutcome::Stopped(_)), "{outcome:?}");
    assert!(journal.failure.is_some());
    let past = PastJob::from_records(
        &journal_file::read(&state.path().join("jobs/job-1/journal"))
            .unwrap()
            .records,
    );
    assert!(
        journal.drawn.mm <= past.released_mm + 1e-9,
        "{journal:?} {past:?}"
    );
    assert!(journal.drawn.mm > 1.0, "{journal:?}");
    // The simulated arm, which knows only the bytes, drew no more. Measured in steps, for rounding to ticks makes it zigzag.
    let inked_mm = ink_mm(&arm.sim.ink());
    assert!(
        (journal.drawn.mm - 3.0..=past.released_mm + 2.0).contains(&inked_mm),
        "{inked_mm} mm of ink, {past:?}"
    );
    let stopped_at = arm.sim.true_joints();
    arm.sim
        .advance(arm.motion.clock().now().after(Duration::from_secs(5)));
    assert!(arm.sim.true_joints().distance_max(&stopped_at) < 0.01);
    assert_eq!(ink_mm(&arm.sim.ink()), inked_mm);
    assert!(matches!(
        arm.motion.permits().latched(),
        Some(StopLatch::Fault(_))
    ));
}

#[tokio::test]
async fn a_motion_whose_end_alone_is_not_recorded_was_not_stopped() {
    let state = tempfile::tempdir().unwrap();
    let (arm, jobs) = (TestArm::new(), JobStore::open(state.path(), KEEP).unwrap());
    let entry = Arc::new(jobs.begin(&accepted(&jobs)).unwrap());
    entry.disk_fills_at_kind(RecordKind::Passed);
    let (outcome, journal) = arm.draw(&entry).await;
    assert!(
        matches!(outcome, MotionOutcome::Reached { .. }),
        "{outcome:?}"
    );
    assert_eq!(journal.failure, None);
    assert!(journal.end_failure.is_some());
    assert_eq!(arm.motion.permits().latched(), None);
}

#[tokio::test]
async fn a_job_whose_end_a_full_disk_did_not_take_is_kept_and_offered() {
    let state = tempfile::tempdir().unwrap();
    let arm = TestArm::new();
    let jobs = JobStore::open(state.path(), KEEP).unwrap();
    let entry = Arc::new(jobs.begin(&accepted(&jobs)).unwrap());
    entry.disk_fills_at(20);
    let (_, journal) = arm.draw(&entry).await;
    assert!(
        entry
            .ended("faulted", "the disk is full", "{}", None)
            .is_err()
    );
    assert_eq!(jobs.past("job-1").unwrap().state, "moving");
    jobs.ended_with(&entry);
    let listed = jobs.past_jobs().unwrap().remove(0).unwrap();
    for past in [jobs.past("job-1").unwrap(), listed] {
        assert_eq!(past.state, "faulted");
        assert!(past.message.contains("its journal"), "{}", past.message);
        assert!(!past.strokes.is_empty());
    }
    let is_offered = |jobs: &JobStore| {
        let past = jobs.unfinished(ARM).unwrap();
        assert_eq!(past.id, "job-1");
        assert_eq!(jobs.interrupted(ARM).unwrap().id, "job-1");
        assert!(
            past.drawn.mm > 1.0 && past.drawn.mm <= journal.drawn.mm,
            "{past:?}"
        );
        assert!(!past.remaining_strokes(3.0).is_empty());
    };
    is_offered(&jobs);
    // More jobs of another arm than are kept.
    for _ in 0..2 * KEEP.jobs {
        let accepted = AcceptedJob {
            arm: "other".to_owned(),
            ..accepted(&jobs)
        };
        let other = jobs.begin(&accepted).unwrap();
        other.ended("refused", "no", "{}", None).unwrap();
        jobs.ended_with(&other);
        is_offered(&jobs);
    }
    drop(jobs);
    let jobs = JobStore::open(state.path(), KEEP).unwrap();
    is_offered(&jobs);
    // Another crash, in a job that draws nothing, does not hide it.
    let reset = jobs.begin(&AcceptedJob {
        tool: "reset".to_owned(),
        ..accepted(&jobs)
    });
    reset.unwrap().moving().unwrap();
    drop(jobs);
    let jobs = JobStore::open(state.path(), KEEP).unwrap();
    is_offered(&jobs);
    // The next drawing takes it over, and then it is no longer offered.
    let next = jobs.begin(&accepted(&jobs)).unwrap();
    next.moving().unwrap();
    next.ended("reached", "done", "{}", None).unwrap();
    jobs.ended_with(&next);
    assert!(jobs.unfinished(ARM).is_none() && jobs.interrupted(ARM).is_none());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_at_the_start_makes_no_journal_a_damaged_one() {
    let state = tempfile::tempdir().unwrap();
    let jobs = JobStore::open(state.path(), KEEP).unwrap();
    let entry = jobs.begin(&accepted(&jobs)).unwrap();
    entry.moving().unwrap();
    drop((entry, jobs));
    let journal = state.path().join("jobs/job-1/journal");
    let bytes = std::fs::read(&journal).unwrap();
    // Replace it by a file of the same bytes that nobody can extend.
    let full = memfd_create("full", MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::io::write(&full, &bytes).unwrap();
    fcntl_add_seals(&full, SealFlags::GROW | SealFlags::WRITE).unwrap();
    std::fs::remove_file(&journal).unwrap();
    let descriptor = format!("/proc/self/fd/{}", full.as_raw_fd());
    std::os::unix::fs::symlink(descriptor, &journal).unwrap();
    let jobs = JobStore::open(state.path(), KEEP).unwrap();
    assert_eq!(jobs.damaged(), [""; 0]);
    assert_eq!(jobs.interrupted(ARM).unwrap().id, "job-1");
}

/// Without releases the arm would wait with its pen on the paper for ever.
#[tokio::test]
async fn a_panic_of_the_journals_thread_stops_the_motion() {
    let state = tempfile::tempdir().unwrap();
    let arm = TestArm::new();
    let jobs = JobStore::open(state.path(), KEEP).unwrap();
    let entry = Arc::new(jobs.begin(&accepted(&jobs)).unwrap());
    entry.panics_at(20);
    let timeout = Duration::from_secs(60);
    let drawing = tokio::time::timeout(timeout, arm.draw(&entry));
    let (outcome, journal) = drawing.await.unwrap();
    let MotionOutcome::Stopped(report) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(report.verified && report.lifted, "{report:?}");
    assert!(journal.failure.is_some());
    assert!(matches!(
        arm.motion.permits().latched(),
        Some(StopLatch::Fault(_))
    ));
}

/// Returns the length of ink, measured in steps of 2.5 mm.
fn ink_mm(ink: &[InkLine]) -> f64 {
    let length_mm = |line: &InkLine| {
        let mut from = line.points_mm[0];
        let mut mm = 0.0;
        for point in line.points_mm.iter().chain(line.points_mm.last()) {
            let step = (point[0] - from[0]).hypot(point[1] - from[1]);
            if step >= 2.5 {
                (mm, from) = (mm + step, *point);
            }
        }
        let end = line.points_mm[line.points_mm.len() - 1];
        mm + (end[0] - from[0]).hypot(end[1] - from[1])
    };
    ink.iter().map(length_mm).sum()
}

#[test]
fn only_a_jobs_id_leads_to_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    for id in ["../evil", "job-1/../../evil", "job-", "job-+1", "", "/etc"] {
        let error = super::past(folder.path(), id).unwrap_err();
        assert!(
            matches!(error, super::JournalError::NoJob(_)),
            "{id}: {error}"
        );
    }
}

/// A list made while a job is being created contains no job without a name.
#[test]
fn a_job_that_is_being_created_is_not_listed() {
    let state = tempfile::tempdir().unwrap();
    let jobs = JobStore::open(state.path(), KEEP).unwrap();
    jobs.begin(&accepted(&jobs)).unwrap();
    std::fs::create_dir(state.path().join("jobs/job-2")).unwrap();
    std::fs::create_dir(state.path().join("jobs/job-3")).unwrap();
    JournalFile::create(&state.path().join("jobs/job-3/journal")).unwrap();
    let ids: Vec<String> = past_jobs(state.path())
        .unwrap()
        .into_iter()
        .map(|past| past.unwrap().id)
        .collect();
    assert_eq!(ids, ["job-1"]);
    let error = super::past(state.path(), "job-3").unwrap_err();
    assert!(matches!(error, JournalError::Nothing(_)), "{error}");
}

#[test]
fn an_endless_job_is_over_once_its_arm_is_taken_or_its_node_gone() {
    let state = tempfile::tempdir().unwrap();
    let jobs = JobStore::open(state.path(), KEEP).unwrap();
    let states = || -> Vec<String> {
        let pasts = past_jobs(state.path()).unwrap().into_iter();
        pasts.map(|past| past.unwrap().state).collect()
    };
    jobs.begin(&accepted(&jobs)).unwrap().moving().unwrap();
    assert_eq!(states(), ["moving"]);
    jobs.begin(&accepted(&jobs)).unwrap().moving().unwrap();
    assert_eq!(states(), ["faulted", "moving"]);
    let last = || super::past(state.path(), "job-2").unwrap();
    assert_eq!(last().state, "moving");
    drop(jobs);
    assert_eq!(states(), ["faulted", "faulted"]);
    let message = last().message;
    assert!(message.contains("node ended"), "{message}");
    // Reading the journals has released their lock.
    let jobs = JobStore::open(state.path(), KEEP).unwrap();
    assert_eq!(jobs.interrupted(ARM).unwrap().id, "job-2");
}

#[test]
fn a_second_process_learns_which_one_has_locked_the_journals() {
    let state = tempfile::tempdir().unwrap();
    let _first = JobStore::open(state.path(), KEEP).unwrap();
    let error = JobStore::open(state.path(), KEEP).unwrap_err().to_string();
    assert!(error.contains(&std::process::id().to_string()), "{error}");
}

#[test]
fn old_jobs_are_removed_and_a_drawing_left_half_done_stays() {
    let state = tempfile::tempdir().unwrap();
    let draw = |jobs: &JobStore, ends: bool| {
        let entry = jobs.begin(&accepted(jobs)).unwrap();
        entry.moving().unwrap();
        if ends {
            entry.ended("reached", "done", "{}", None).unwrap();
            jobs.ended_with(&entry);
        }
    };
    let jobs = JobStore::open(state.path(), KEEP).unwrap();
    draw(&jobs, false);
    drop(jobs);
    let jobs = JobStore::open(state.path(), KEEP).unwrap();
    assert_eq!(jobs.interrupted(ARM).unwrap().id, "job-1");
    for _ in 0..6 {
        let entry = jobs
            .begin(&AcceptedJob {
                arm: "other".to_owned(),
                ..accepted(&jobs)
            })
            .unwrap();
        entry.ended("refused", "no", "{}", None).unwrap();
        jobs.ended_with(&entry);
    }
    assert_eq!(jobs.interrupted(ARM).unwrap().id, "job-1");
    let left = past_jobs(state.path()).unwrap();
    assert!(left.len() <= KEEP.jobs + 1, "{} jobs", left.len());
    draw(&jobs, true);
    assert_eq!(jobs.interrupted(ARM), None);
}

#[test]
fn jobs_are_kept_to_a_size() {
    const PICTURE_BYTES: usize = 10_000;
    let state = tempfile::tempdir().unwrap();
    let keep = RetentionPolicy {
        jobs: 100,
        bytes: 3 * PICTURE_BYTES as u64,
        days: 30,
    };
    let jobs = JobStore::open(state.path(), keep).unwrap();
    for _ in 0..8 {
        let entry = jobs.begin(&accepted(&jobs)).unwrap();
        std::fs::write(entry.folder().join("plan.png"), [7; PICTURE_BYTES]).unwrap();
        entry.ended("reached", "done", "{}", None).unwrap();
        jobs.ended_with(&entry);
    }
    let left: Vec<String> = past_jobs(state.path())
        .unwrap()
        .into_iter()
        .map(|past| past.unwrap().id)
        .collect();
    // The last job's own size does not yet count when it begins.
    assert_eq!(left, ["job-6", "job-7", "job-8"]);
}

#[test]
fn a_drawing_of_a_queue_is_remembered_longer_than_its_job() {
    let state = tempfile::tempdir().unwrap();
    let (arm, jobs) = (TestArm::new(), JobStore::open(state.path(), KEEP).unwrap());
    let ends = [(7.0, "reached"), (0.0, "refused"), (0.0, "faulted")];
    for (number, (mm, end)) in (1..).zip(ends.into_iter().chain([(1.0, "reached"); 4])) {
        let entry = jobs
            .begin(&AcceptedJob {
                ticket: format!("5f2c/{number}"),
                ..accepted(&jobs)
            })
            .unwrap();
        entry.planned(&arm.plan, &arm.scene.rest_rad).unwrap();
        if end != "refused" {
            entry.moving().unwrap();
            entry.ink(InkProgress { mm, strokes: 0 }, 9.0).unwrap();
        }
        entry.ended(end, "told", "{}", None).unwrap();
        jobs.ended_with(&entry);
    }
    drop(jobs);
    let jobs = JobStore::open(state.path(), KEEP).unwrap();
    assert_eq!(
        jobs.queued().len(),
        4,
        "one more than is kept, for jobs are removed only when one begins"
    );
    let tickets: Vec<_> = jobs
        .old_tickets("5f2c")
        .into_iter()
        .map(|old| (old.ticket, old.job, old.is_drawn))
        .collect();
    let expected = |drawing: u32, is_drawn| {
        let (ticket, job) = (format!("5f2c/{drawing}"), format!("job-{drawing}"));
        (ticket, job, is_drawn)
    };
    // The second drew nothing, and may be drawn elsewhere; it is not known what the third drew.
    assert_eq!(tickets, [expected(1, true), expected(3, false)]);
    assert!(jobs.has_old_ticket("5f2c/1") && !jobs.has_old_ticket("5f2c/2"));
}

/// Makes every read of a job's journal wait, as for a disk that does not answer, until the test's folder is removed.
fn stall_journal(jobs: &JobStore, id: &str) {
    std::fs::write(jobs.folder().join(id).join(STALLED), "").unwrap();
}

const STALLED: &str = "stalled";

/// Waits as long as a journal is stalled.
pub(super) fn wait_while_stalled(journal: &Path) {
    while journal.with_file_name(STALLED).exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Checks that jobs can be looked at while `work` waits for the disk.
fn is_readable_during(jobs: &Arc<JobStore>, work: impl FnOnce(&JobStore) + Send + 'static) {
    let (begins, begun) = std::sync::mpsc::channel();
    let (looks, looked) = std::sync::mpsc::channel();
    let (writer, reader) = (Arc::clone(jobs), Arc::clone(jobs));
    // Neither thread is waited for: one that hangs ends with the test.
    let writing = std::thread::spawn(move || {
        begins.send(()).unwrap();
        work(&writer);
    });
    begun.recv().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert!(!writing.is_finished(), "the disk answers");
    std::thread::spawn(move || looks.send(reader.interrupted(ARM)).is_ok());
    let looked = looked.recv_timeout(Duration::from_secs(5));
    assert!(looked.is_ok(), "it waits for the disk");
}

/// Leaves a drawing of a queue half done, as the job `job-1`.
fn half_done(jobs: &JobStore, arm: &TestArm) {
    let accepted = AcceptedJob {
        ticket: "5f2c/1".to_owned(),
        ..accepted(jobs)
    };
    let entry = jobs.begin(&accepted).unwrap();
    entry.planned(&arm.plan, &arm.scene.rest_rad).unwrap();
    entry.moving().unwrap();
    let drawn = InkProgress {
        mm: 7.0,
        strokes: 0,
    };
    entry.ink(drawn, 9.0).unwrap();
    entry.ended("faulted", "told", "{}", None).unwrap();
    jobs.ended_with(&entry);
}

fn reached(jobs: &JobStore) -> JobJournal {
    let entry = jobs.begin(&accepted(jobs)).unwrap();
    entry.moving().unwrap();
    entry.ended("reached", "done", "{}", None).unwrap();
    entry
}

#[test]
fn jobs_are_looked_at_while_a_disk_does_not_answer() {
    let state = tempfile::tempdir().unwrap();
    let arm = TestArm::new();
    let jobs = Arc::new(JobStore::open(state.path(), KEEP).unwrap());
    half_done(&jobs, &arm);
    let entry = reached(&jobs);
    stall_journal(&jobs, "job-1");
    // It takes over what the first has left, and says so in its journal.
    is_readable_during(&jobs, move |jobs| jobs.ended_with(&entry));
}

#[test]
fn jobs_are_looked_at_while_an_old_one_is_removed() {
    let state = tempfile::tempdir().unwrap();
    let arm = TestArm::new();
    let jobs = Arc::new(JobStore::open(state.path(), KEEP).unwrap());
    half_done(&jobs, &arm);
    for _ in 0..KEEP.jobs {
        let entry = reached(&jobs);
        jobs.ended_with(&entry);
    }
    stall_journal(&jobs, "job-1");
    // The first is removed when the next begins, and is read once more for its ticket.
    is_readable_during(&jobs, |jobs| drop(jobs.begin(&accepted(jobs))));
}

#[test]
fn a_damaged_journal_is_named_and_nothing_of_it_is_skipped() {
    let state = tempfile::tempdir().unwrap();
    let path = state.path().join("jobs/job-7/journal");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut log = JournalFile::create(&path).unwrap();
    for _ in 0..3 {
        log.append(&JournalRecord::new(RecordKind::Moving)).unwrap();
    }
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[40] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let jobs = JobStore::open(state.path(), KEEP).unwrap();
    assert!(jobs.damaged()[0].contains("job-7"), "{:?}", jobs.damaged());
    assert_eq!(jobs.next_id(), "job-8");
}

#[test]
fn the_drawing_under_way_is_on_paper_and_what_it_goes_on_with() {
    let state = tempfile::tempdir().unwrap();
    let (arm, jobs) = (TestArm::new(), JobStore::open(state.path(), KEEP).unwrap());
    let on_paper_mm = |under_way: Option<&str>| {
        let lines = jobs.inked_lines(ARM, under_way, |_| true);
        let steps = lines.iter().flat_map(|line| line.windows(2));
        let mm = steps.map(|pair| (pair[1][0] - pair[0][0]).hypot(pair[1][1] - pair[0][1]));
        mm.sum::<f64>()
    };
    let begin = |resumes: &str, mm: f64| {
        let resumes = resumes.to_owned();
        let accepted = AcceptedJob {
            resumes,
            ..accepted(&jobs)
        };
        let entry = jobs.begin(&accepted).unwrap();
        entry.planned(&arm.plan, &arm.scene.rest_rad).unwrap();
        entry.moving().unwrap();
        entry.ink(InkProgress { mm, strokes: 0 }, mm + 5.0).unwrap();
        entry
    };
    let first = begin("", 7.0);
    assert_eq!(on_paper_mm(None), 0.0);
    assert!((on_paper_mm(Some("job-1")) - 7.0).abs() < 1e-6);
    let other = ArmKey {
        name: "other",
        ..ARM
    };
    let of_other = jobs.inked_lines(other, Some("job-1"), |_| true);
    assert!(of_other.is_empty());
    assert!(jobs.inked_lines(ARM, Some("job-1"), |_| false).is_empty());
    first.ended("stopped", "", "", None).unwrap();
    jobs.ended_with(&first);
    assert!((on_paper_mm(None) - 7.0).abs() < 1e-6);
    let second = begin("job-1", 4.0);
    assert!((on_paper_mm(Some(second.id())) - 11.0).abs() < 1e-6);
    // A job whose journal says that it continues itself.
    let third = begin("job-3", 2.0);
    assert!((on_paper_mm(Some(third.id())) - 2.0).abs() < 1e-6);
}

/// The journal of a drawing in parts, one for each pen, has all strokes, wherever in it the process ends.
#[test]
fn a_drawing_in_parts_keeps_the_strokes_of_the_later_pens() {
    let state = tempfile::tempdir().unwrap();
    let (arm, jobs) = (TestArm::new(), JobStore::open(state.path(), KEEP).unwrap());
    let entry = jobs.begin(&accepted(&jobs)).unwrap();
    let strokes = &arm.plan.strokes;
    let strokes_of_pen = |pen: usize| {
        let with_pen = strokes.iter().map(|stroke| SheetStroke {
            pen,
            ..stroke.clone()
        });
        with_pen.collect::<Vec<_>>()
    };
    let (count, part_mm) = (strokes.len(), arm.plan.report.pen_down_mm);
    let start = &arm.scene.rest_rad;
    let (mut part, parts) = (DrawingPart::default(), 3);
    for pen in 0..parts {
        part.later = (pen + 1..parts).flat_map(strokes_of_pen).collect();
        entry.begins_part(part.clone());
        entry.pen_confirmed(pen + 1, "ink").unwrap();
        entry.planned(&arm.plan, start).unwrap();
        entry.moving().unwrap();
        let before_mm = part_mm * pen as f64;
        let check_rest = |past: &PastJob, drawn_mm: f64| {
            assert!((past.total_mm() - 3.0 * part_mm).abs() < 1e-6);
            assert!((past.drawn.mm - drawn_mm).abs() < 1e-6, "{:?}", past.drawn);
            let left_mm: f64 = past
                .remaining_strokes(0.0)
                .iter()
                .map(SheetStroke::length_mm)
                .sum();
            assert!(
                (left_mm + drawn_mm - 3.0 * part_mm).abs() < 0.1,
                "{left_mm}"
            );
        };
        check_rest(&entry.past(), before_mm);
        let drawn = InkProgress {
            mm: 7.0,
            strokes: 0,
        };
        entry.ink(drawn, 12.0).unwrap();
        check_rest(&entry.past(), before_mm + 7.0);
        assert!((entry.past().released_mm - before_mm - 12.0).abs() < 1e-6);
        assert_eq!(PastJob::from_records(&records(&entry)), entry.past());
        let drawn = InkProgress {
            mm: part_mm,
            strokes: count,
        };
        entry.passed(drawn).unwrap();
        entry.held("it waits for the next pen").unwrap();
        check_rest(&entry.past(), before_mm + part_mm);
        assert_eq!(entry.past().drawn.strokes, count * (pen + 1));
        assert_eq!(entry.past().has_remainder(), pen + 1 < parts);
        assert_eq!(entry.past().is_all_drawn(), pen + 1 == parts);
        let next = entry.past().next_pen();
        assert_eq!(next, part.later.first().map(|stroke| stroke.pen));
        part.earlier.extend(strokes.clone());
    }
    let confirmed = entry.past().pens_confirmed;
    assert_eq!(confirmed, ["pen 1 `ink`", "pen 2 `ink`", "pen 3 `ink`"]);
}

fn records(entry: &JobJournal) -> Vec<JournalRecord> {
    let path = entry.folder().join(JOURNAL);
    journal_file::read(&path).unwrap().records
}

#[test]
fn a_job_that_goes_on_is_no_longer_reported_as_held() {
    let state = tempfile::tempdir().unwrap();
    let jobs = JobStore::open(state.path(), KEEP).unwrap();
    let entry = jobs.begin(&accepted(&jobs)).unwrap();
    entry.moving().unwrap();
    entry.held("the motion is held with the pen up").unwrap();
    assert_eq!(entry.past().state_text(), "is held");
    entry.moving().unwrap();
    let past = entry.past();
    assert_eq!(
        (past.state_text().as_str(), past.message.as_str()),
        ("is moving", "")
    );
    entry
        .waits("waiting_for_pen", "it waits for pen 1")
        .unwrap();
    assert_eq!(entry.past().state_text(), "waits for a pen");
    entry.moving().unwrap();
    assert_eq!(entry.past().message, "");
}

/// Its arm may not have moved at all: a hand may be at it.
#[test]
fn a_job_whose_node_ended_while_it_waited_for_a_person_is_interrupted() {
    let state = tempfile::tempdir().unwrap();
    let jobs = JobStore::open(state.path(), KEEP).unwrap();
    let entry = jobs.begin(&accepted(&jobs)).unwrap();
    let reopened = |jobs: JobStore| {
        drop(jobs);
        JobStore::open(state.path(), KEEP).unwrap()
    };
    entry
        .waits("waiting_for_pen", "it waits for pen 1")
        .unwrap();
    drop(entry);
    let jobs = reopened(jobs);
    assert_eq!(jobs.interrupted(ARM).unwrap().id, "job-1");
    let entry = jobs.begin(&accepted(&jobs)).unwrap();
    drop(entry);
    // Nothing had begun.
    assert_eq!(reopened(jobs).interrupted(ARM).unwrap().id, "job-1");
}

#[test]
fn a_drawing_that_a_joint_did_not_follow_is_over_but_not_on_its_sheet() {
    let state = tempfile::tempdir().unwrap();
    let (arm, jobs) = (TestArm::new(), JobStore::open(state.path(), KEEP).unwrap());
    let end = |state: &str| {
        let entry = jobs.begin(&accepted(&jobs)).unwrap();
        entry.planned(&arm.plan, &arm.scene.rest_rad).unwrap();
        entry.moving().unwrap();
        let strokes = arm.plan.strokes.len();
        entry.passed(InkProgress { mm: 60.0, strokes }).unwrap();
        entry
            .ended(state, "told", "{}", Some(TipPlace::Off))
            .unwrap();
        entry.past()
    };
    for (state, is_on_sheet) in [("reached", true), ("stopped", true), (DEVIATED, false)] {
        let past = end(state);
        assert!(past.is_over() && !past.is_unfinished(), "{state}");
        assert_eq!(past.is_on_sheet(), is_on_sheet, "{state}");
    }
}

#[test]
fn a_pen_that_may_be_down_is_remembered_until_the_arm_has_moved_again() {
    let state = tempfile::tempdir().unwrap();
    let arm = TestArm::new();
    let jobs = JobStore::open(state.path(), KEEP).unwrap();
    let begin = |arm: &str| {
        let (arm, is_on_port) = (arm.to_owned(), true);
        let accepted = AcceptedJob {
            arm,
            is_on_port,
            ..accepted(&jobs)
        };
        jobs.begin(&accepted).unwrap()
    };
    let end = |state: &str, tip: Option<TipPlace>, moves: bool| {
        let entry = begin("arm");
        if moves {
            entry.planned(&arm.plan, &arm.scene.rest_rad).unwrap();
            entry.moving().unwrap();
            entry
                .ink(
                    InkProgress {
                        mm: 1.0,
                        strokes: 0,
                    },
                    6.0,
                )
                .unwrap();
        }
        entry.ended(state, "told", "{}", tip).unwrap();
        jobs.ended_with(&entry);
        entry.past()
    };
    let on_port = ARM.namesake();
    let left_down = || jobs.pen_left_down(on_port).map(|past| past.id);
    let listed = || {
        let pasts = past_jobs(state.path()).unwrap();
        pens_left_down(&pasts).first().map(ToString::to_string)
    };
    for (state, tip, may_be_down) in [
        ("faulted", Some(TipPlace::AtSheet), true),
        ("reached", Some(TipPlace::Off), false),
        ("stopped", Some(TipPlace::Unread), true),
        ("stopped", Some(TipPlace::Off), false),
        // Journals of older nodes.
        ("faulted", None, true),
        ("stopped", None, false),
        ("faulted", Some(TipPlace::Unread), true),
    ] {
        let past = end(state, tip, true);
        assert_eq!(left_down().is_some(), may_be_down, "{state} {tip:?}");
        assert_eq!(left_down(), listed());
        // There may be line beyond the last reading.
        let unsure = past.released_mm > past.drawn.mm;
        assert_eq!(unsure, tip == Some(TipPlace::Unread), "{state} {tip:?}");
    }
    // A job that moves nothing, or moves another arm, does not lift the pen.
    let last = left_down();
    end("refused", None, false);
    let other = begin("other");
    other.moving().unwrap();
    other
        .ended("reached", "told", "{}", Some(TipPlace::Off))
        .unwrap();
    jobs.ended_with(&other);
    assert_eq!((left_down(), listed()), (last.clone(), last));
}
