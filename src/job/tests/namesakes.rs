//! Journals of the arm on a port and of the one that practice simulates under the same name.

use super::*;

/// Keeps the journal of a drawing whose process ended with 3 mm of it drawn.
fn left_half_done(jobs: &JobStore, arm: &TestArm, is_on_port: bool) -> String {
    let accepted = AcceptedJob {
        is_on_port,
        ..accepted(jobs)
    };
    let entry = jobs.begin(&accepted).unwrap();
    entry.planned(&arm.plan, &arm.scene.rest_rad).unwrap();
    entry.moving().unwrap();
    let drawn = InkProgress {
        mm: 3.0,
        strokes: 0,
    };
    entry.ink(drawn, 6.0).unwrap();
    jobs.ended_with(&entry);
    entry.id().to_owned()
}

fn reset(jobs: &JobStore, arm: &TestArm, is_on_port: bool) {
    carry_out(jobs, arm, "reset", is_on_port);
}

fn draw(jobs: &JobStore, arm: &TestArm, is_on_port: bool) {
    carry_out(jobs, arm, "stroke", is_on_port);
}

/// Keeps the journal of a job of this tool that came to its end.
fn carry_out(jobs: &JobStore, arm: &TestArm, tool: &str, is_on_port: bool) {
    let accepted = AcceptedJob {
        is_on_port,
        tool: tool.to_owned(),
        ..accepted(jobs)
    };
    let entry = jobs.begin(&accepted).unwrap();
    entry.planned(&arm.plan, &arm.scene.rest_rad).unwrap();
    entry.moving().unwrap();
    entry
        .ended("reached", "", "{}", Some(TipPlace::Off))
        .unwrap();
    jobs.ended_with(&entry);
}

fn ids<const N: usize>(pasts: [Option<PastJob>; N]) -> [Option<String>; N] {
    pasts.map(|past| past.map(|past| past.id))
}

#[test]
fn practice_and_an_arm_on_a_port_settle_nothing_of_each_other() {
    for is_on_port in [true, false] {
        let state = tempfile::tempdir().unwrap();
        let (arm, jobs) = (TestArm::new(), JobStore::open(state.path(), KEEP).unwrap());
        let own = ArmKey { is_on_port, ..ARM };
        let namesake = own.namesake();
        let left = Some(left_half_done(&jobs, &arm, is_on_port));
        let of_own = || {
            ids([
                jobs.unfinished(own),
                jobs.interrupted(own),
                jobs.pen_left_down(own),
                jobs.last_drawing(own),
                jobs.last_moved(own),
            ])
        };
        let expected = [(); 5].map(|()| left.clone());
        assert_eq!(of_own(), expected);
        let of_namesake = [
            jobs.unfinished(namesake),
            jobs.interrupted(namesake),
            jobs.pen_left_down(namesake),
            jobs.last_drawing(namesake),
            jobs.last_moved(namesake),
        ];
        assert_eq!(ids(of_namesake), [None, None, None, None, None]);
        assert_eq!(ids([jobs.unfinished_of_namesake(namesake)]), [left]);
        assert_eq!(jobs.unfinished_of_namesake(own), None);
        reset(&jobs, &arm, !is_on_port);
        left_half_done(&jobs, &arm, !is_on_port);
        assert_eq!(of_own(), expected, "what the other did changes nothing");
        drop(jobs);
        let jobs = JobStore::open(state.path(), KEEP).unwrap();
        let after = [jobs.unfinished(own), jobs.pen_left_down(own)];
        assert_eq!(ids(after), [expected[0].clone(), expected[0].clone()]);
        let pasts = past_jobs(state.path()).unwrap();
        assert_eq!(pens_left_down(&pasts).len(), 1, "of the arm on a port");
    }
}

/// Rewrites a journal as an older node wrote it, which did not say whether its arm was on a port.
fn unmark(state: &Path, id: &str) {
    let path = state.join("jobs").join(id).join("journal");
    let records = journal_file::read(&path).unwrap().records;
    std::fs::remove_file(&path).unwrap();
    let mut log = JournalFile::create(&path).unwrap();
    for record in records {
        log.append(&record.without("at")).unwrap();
    }
}

#[test]
fn a_journal_that_names_no_port_counts_for_one_and_is_never_resumed() {
    let state = tempfile::tempdir().unwrap();
    let (arm, jobs) = (TestArm::new(), JobStore::open(state.path(), KEEP).unwrap());
    let left = Some(left_half_done(&jobs, &arm, true));
    drop(jobs);
    unmark(state.path(), "job-1");
    let jobs = JobStore::open(state.path(), KEEP).unwrap();
    let on_port = ARM.namesake();
    let held = |jobs: &JobStore, arm| ids([jobs.interrupted(arm), jobs.pen_left_down(arm)]);
    let left_twice = [left.clone(), left.clone()];
    assert_eq!(held(&jobs, on_port), left_twice);
    assert_eq!(held(&jobs, ARM), [None, None]);
    for arm in [ARM, on_port] {
        let told = jobs.unfinished_of_namesake(arm);
        assert_eq!(told.map(|past| past.id), left);
        assert_eq!(jobs.unfinished(arm), None);
    }
    let listed = |state: &Path| {
        let pasts = past_jobs(state).unwrap();
        pens_left_down(&pasts).first().map(ToString::to_string)
    };
    assert_eq!(listed(state.path()), left);
    // Practice settles nothing of it, neither by a reset nor by a drawing, and the arm on the port all of it.
    reset(&jobs, &arm, false);
    draw(&jobs, &arm, false);
    assert_eq!(held(&jobs, on_port), left_twice);
    drop(jobs);
    let jobs = JobStore::open(state.path(), KEEP).unwrap();
    assert_eq!(held(&jobs, on_port), left_twice);
    draw(&jobs, &arm, true);
    assert_eq!(held(&jobs, on_port), [None, None]);
    assert_eq!(jobs.unfinished_of_namesake(on_port), None);
    assert_eq!(listed(state.path()), None);
}

#[test]
fn a_reset_that_names_no_port_lifts_no_pen_of_an_arm_on_one() {
    let state = tempfile::tempdir().unwrap();
    let (arm, jobs) = (TestArm::new(), JobStore::open(state.path(), KEEP).unwrap());
    let left = Some(left_half_done(&jobs, &arm, true));
    reset(&jobs, &arm, true);
    drop(jobs);
    unmark(state.path(), "job-2");
    let jobs = JobStore::open(state.path(), KEEP).unwrap();
    let on_port = ARM.namesake();
    assert_eq!(ids([jobs.pen_left_down(on_port)]), [left]);
    reset(&jobs, &arm, true);
    assert_eq!(jobs.pen_left_down(on_port), None);
}
