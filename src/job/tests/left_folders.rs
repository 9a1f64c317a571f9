//! Folders of jobs without a journal that can be read: what had only begun goes, all else stays and is named.

use std::os::unix::fs::symlink;
use std::path::Path;

use super::{KEEP, TestArm, half_done};
use crate::journal_file::JournalFile;
use crate::{JobStore, check_journals, past_jobs};

type Damage = fn(&Path) -> std::io::Result<()>;

/// Ways in which a journal is lost, each with its name.
const DAMAGES: [(&str, Damage); 6] = [
    ("emptied", |journal| std::fs::write(journal, "")),
    ("zeros of its length", |journal| {
        let length = std::fs::metadata(journal)?.len();
        std::fs::write(journal, vec![0; usize::try_from(length).unwrap()])
    }),
    ("zeros from its first record on", |journal| {
        let mut bytes = std::fs::read(journal)?;
        bytes.iter_mut().skip(60).for_each(|byte| *byte = 0);
        std::fs::write(journal, bytes)
    }),
    ("is incomplete", |journal| {
        let bytes = std::fs::read(journal)?;
        std::fs::write(journal, bytes.get(..20).unwrap())
    }),
    ("a link to nothing", |journal| {
        std::fs::remove_file(journal)?;
        symlink("/nowhere/journal", journal)
    }),
    ("away", |journal| std::fs::remove_file(journal)),
];

#[test]
fn a_job_whose_journal_was_lost_is_named_and_keeps_its_files() {
    let arm = TestArm::new();
    for (name, damage) in DAMAGES {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path();
        half_done(&JobStore::open(state, KEEP).unwrap(), &arm);
        let job = state.join("jobs/job-1");
        let files = ["bytes.trace", "my-notes.txt"].map(|name| job.join(name));
        files
            .iter()
            .for_each(|file| std::fs::write(file, "kept").unwrap());
        damage(&job.join("journal")).unwrap();
        let checked = check_journals(state).unwrap();
        let jobs = JobStore::open(state, KEEP).unwrap();
        assert_eq!(jobs.damaged(), checked, "{name}");
        assert_eq!(checked.len(), 1, "{name}");
        assert!(checked[0].contains("job-1"), "{name}: {checked:?}");
        assert!(checked[0].contains("node again"), "{name}: {checked:?}");
        assert!(files.iter().all(|file| file.exists()), "{name}");
        assert_eq!(jobs.next_id(), "job-2", "{name}");
        let listed = past_jobs(state).unwrap();
        assert!(matches!(listed.as_slice(), [Err(_)]), "{name}: {listed:?}");
    }
}

#[test]
fn a_job_only_begun_leaves_the_last_number_and_its_design() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path();
    let job = |number: usize| state.join(format!("jobs/job-{number}"));
    (1..=4).for_each(|number| std::fs::create_dir_all(job(number)).unwrap());
    JournalFile::create(&job(2).join("journal")).unwrap();
    std::fs::write(job(3).join("design.toml"), "").unwrap();
    assert_eq!(check_journals(state).unwrap(), [""; 0]);
    let jobs = JobStore::open(state, KEEP).unwrap();
    assert_eq!(jobs.damaged(), [""; 0]);
    let left = (1..=4).filter(|number| job(*number).exists());
    assert_eq!(left.collect::<Vec<_>>(), [3, 4]);
    assert_eq!(jobs.next_id(), "job-5");
}

#[test]
fn a_folder_with_the_last_number_of_all_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path();
    let name = format!("job-{}", u64::MAX);
    for stray in [&*name, "job-007"] {
        std::fs::create_dir_all(state.join("jobs").join(stray)).unwrap();
    }
    let checked = check_journals(state).unwrap();
    let jobs = JobStore::open(state, KEEP).unwrap();
    assert_eq!(jobs.damaged(), checked);
    assert_eq!(checked.len(), 1, "{checked:?}");
    assert!(checked[0].contains(&name), "{checked:?}");
}
