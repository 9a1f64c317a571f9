//! All jobs of a node: its folder of journals, one a job, kept to a set number, size and age.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use super::job_journal::{AcceptedJob, JobJournal};
use super::journal_file::{self, JournalError};
use super::journal_record::{JournalRecord, RecordKind};
use super::old_tickets::{self, OldTicket, OldTickets};
use super::past_job::PastJob;
use super::{DESIGN, JOBS, JOURNAL};
use base::clock::{NodeClock, calendar_ms};
use base::file_access::{make_folders, with_mode};
use base::lock::MutexExt;

/// The file in a state folder that is locked by the node that has it.
const LOCK: &str = "lock";

/// Limits for keeping jobs that have ended.
#[derive(Clone, Copy, Debug)]
pub struct RetentionPolicy {
    /// Number of jobs.
    pub jobs: usize,
    /// Number of bytes, pictures included.
    pub bytes: u64,
    /// No longer than this.
    pub days: u64,
}

/// The reason why the journals cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JobStoreError {
    /// Another process writes them.
    #[error(
        "{path} is in use by process {holder}; a state folder has one node. To call that one, leave --config away and say `--node ADDRESS`, where it serves HTTP; `draw`, `enable` and `stop` find it by themselves. To have two, give this one its own --state"
    )]
    Held {
        /// The file that is locked.
        path: PathBuf,
        /// By whom, as that process wrote.
        holder: String,
    },
    /// The file system says no.
    #[error("cannot use {path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// A journal cannot be written or believed.
    #[error(transparent)]
    Log(#[from] JournalError),
}

/// The journals of a node. While it exists, no other process can open them.
#[derive(Debug)]
pub struct JobStore {
    jobs: PathBuf,
    keep: RetentionPolicy,
    next: AtomicU64,
    /// Jobs that have ended, oldest first, with what they take on the disk.
    ended: Mutex<Vec<(PastJob, u64)>>,
    /// Journals that cannot be believed: until they are moved away, nothing moves.
    damaged: Vec<String>,
    /// Drawings of queues whose jobs were removed.
    old_tickets: Mutex<OldTickets>,
    _lock: File,
}

impl JobStore {
    /// Opens the journals in a state folder. A job that had not ended is called interrupted, on
    /// the disk too.
    ///
    /// # Errors
    /// When another process has them, or the folder cannot be written.
    pub fn open(state: &Path, keep: RetentionPolicy) -> Result<Self, JobStoreError> {
        let lock = lock(&state.join(LOCK))?;
        let jobs = state.join(JOBS);
        make_folders(&jobs, 0o700).map_err(|error| file(&jobs, error))?;
        let old_tickets =
            OldTickets::open(&jobs).map_err(|error| file(&jobs.join(old_tickets::FILE), error))?;
        let mut book = Self {
            keep,
            old_tickets: Mutex::new(old_tickets),
            next: AtomicU64::new(1),
            ended: Mutex::default(),
            damaged: Vec::new(),
            _lock: lock,
            jobs,
        };
        let numbers = numbers(&book.jobs).map_err(|error| file(&book.jobs, error))?;
        book.next = AtomicU64::new(numbers.last().map_or(1, |last| last + 1));
        for number in numbers {
            book.load_job(number);
        }
        Ok(book)
    }

    /// Reads a job that an earlier process left.
    fn load_job(&mut self, number: u64) {
        let folder = self.jobs.join(id(number));
        match recover(&folder.join(JOURNAL)) {
            Ok(Some(past)) => {
                if !past.interrupted {
                    // Its end is on the disk; that it settled others may not be.
                    self.settle(&past);
                }
                self.ended().push((without_strokes(past), size(&folder)));
            }
            // A job whose very beginning was torn has moved nothing.
            Ok(None) => drop(std::fs::remove_dir_all(&folder)),
            Err(error) => {
                tracing::error!("{error}");
                self.damaged.push(error.to_string());
            }
        }
    }

    /// Returns the folder of the journals.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.jobs
    }

    /// Jobs that have a journal, the newest first; at most `max`, and none where the folder cannot be read.
    #[must_use]
    pub fn recent(&self, max: usize) -> Vec<String> {
        let numbers = numbers(&self.jobs).unwrap_or_default();
        numbers.into_iter().rev().take(max).map(id).collect()
    }

    /// A name that no job of this node has had.
    #[must_use]
    pub fn next_id(&self) -> String {
        id(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Journals that cannot be believed, each with what to do.
    #[must_use]
    pub fn damaged(&self) -> &[String] {
        &self.damaged
    }

    /// Begins a job's journal.
    ///
    /// # Errors
    /// When it cannot be written; then the job must not move anything.
    pub fn begin(&self, accepted: &AcceptedJob) -> Result<JobJournal, JobStoreError> {
        self.prune();
        Ok(JobJournal::create(&self.jobs, accepted)?)
    }

    /// Remembers that a job has ended. Where it drew, or came to its end, it takes over what earlier
    /// jobs of its arm had left: a drawing, if it is one. A job whose end could not be written is one
    /// that was interrupted: what its journal has is all that is believed of it, now and after a restart.
    pub fn ended_with(&self, entry: &JobJournal) {
        let mut past = entry.past();
        if !past.is_over() {
            let record = past.interrupted_record("its journal could not be written");
            past.apply_record(&record);
        }
        self.settle(&past);
        let size = size(entry.folder());
        self.ended().push((without_strokes(past), size));
    }

    /// Lets a job take over what earlier ones of its arm had left, if it moved and drew or came to its end. Where the disk does
    /// not take that, it is done again at the next start.
    fn settle(&self, by: &PastJob) {
        let goes_on = by.moved && (by.state == "reached" || by.drawn.mm > 0.0);
        let draws = by.tool == "stroke";
        let open = |past: &PastJob| {
            past.arm == by.arm
                && number(&past.id) < number(&by.id)
                && past.is_open()
                && (draws || !past.is_unfinished())
        };
        let mut ended = self.ended();
        for (past, _) in ended.iter_mut().filter(|(past, _)| goes_on && open(past)) {
            past.settled.clone_from(&by.id);
            let record = JournalRecord::new(RecordKind::Settled).with("by", &by.id);
            let path = self.jobs.join(&past.id).join(JOURNAL);
            if let Err(error) = journal_file::append_to(&path, &record) {
                tracing::error!("{error}");
            }
        }
    }

    /// The drawing that an arm has left half done.
    #[must_use]
    pub fn unfinished(&self, arm: &str) -> Option<PastJob> {
        self.newest(|past| past.arm == arm && past.is_unfinished())
    }

    /// The job that may have left an arm's pen on the paper: the last one that moved it, if it may.
    #[must_use]
    pub fn pen_left_down(&self, arm: &str) -> Option<PastJob> {
        let last = self.newest(|past| past.arm == arm && past.tells_of_pen());
        last.filter(PastJob::may_leave_pen_down)
    }

    /// The job of an arm that was moving when its process ended, until a later one settles it. A drawing that is left half done
    /// comes before a later job that leaves nothing.
    #[must_use]
    pub fn interrupted(&self, arm: &str) -> Option<PastJob> {
        let ended = self.ended();
        let is_open = |past: &&PastJob| {
            past.arm == arm && past.interrupted && past.moved && past.settled.is_empty()
        };
        let mut open = ended.iter().rev().map(|(past, _)| past).filter(is_open);
        let newest = open.next()?;
        let drawing = std::iter::once(newest)
            .chain(open)
            .find(|past| past.is_unfinished());
        Some(drawing.unwrap_or(newest).clone())
    }

    /// The last job of an arm that moved it.
    #[must_use]
    pub fn last_moved(&self, arm: &str) -> Option<PastJob> {
        self.newest(|past| past.arm == arm && past.moved)
    }

    /// Returns the lines that an arm's last drawing has certainly put on its sheet, by its journal: of
    /// the job `under_way` if it has drawn yet, and of the jobs that it continues. Empty where
    /// that drawing was on a sheet other than the one that `is_meant` accepts.
    #[must_use]
    pub fn inked_lines(
        &self,
        arm: &str,
        under_way: Option<&str>,
        is_meant: impl Fn(&PastJob) -> bool,
    ) -> Vec<Vec<[f64; 2]>> {
        let now = under_way.and_then(|id| self.read(id));
        let now = now.filter(|past| drew(past, arm));
        let last = now.or_else(|| self.last_drawing(arm));
        let meant = self.and_earlier(last).take_while(is_meant);
        meant.flat_map(|past| past.inked()).collect()
    }

    /// Returns the job that a job goes on with. Whatever a journal says, it is the earlier one: nothing goes round in a circle.
    fn earlier(&self, past: &PastJob) -> Option<PastJob> {
        let before = self.read(&past.resumes)?;
        (number(&before.id) < number(&past.id)).then_some(before)
    }

    /// Returns a job, the one that it goes on with, and so on.
    fn and_earlier(&self, last: Option<PastJob>) -> impl Iterator<Item = PastJob> {
        std::iter::successors(last, |past| self.earlier(past))
    }

    /// Counts the strokes that were drawn to their end before a job, itself the rest of earlier ones.
    #[must_use]
    pub fn done_before(&self, past: &PastJob) -> usize {
        let earlier = self.and_earlier(self.earlier(past));
        earlier.map(|past| past.drawn.strokes).sum()
    }

    /// The last job that is over and has drawn with an arm, with its strokes.
    #[must_use]
    pub fn last_drawing(&self, arm: &str) -> Option<PastJob> {
        let found = self.newest(|past| drew(past, arm))?;
        self.read(&found.id)
    }

    /// The drawing that an arm left half done and gave up for its last one, which is another, with its strokes. Where that goes on
    /// with earlier jobs, what was given up for those counts as well.
    #[must_use]
    pub fn given_up(&self, arm: &str) -> Option<PastJob> {
        let mut drawn = self.and_earlier(self.last_drawing(arm));
        drawn.find_map(|by| self.given_up_for(&by))
    }

    fn given_up_for(&self, by: &PastJob) -> Option<PastJob> {
        let is_given_up = |past: &&PastJob| {
            past.settled == by.id && past.id != by.resumes && !by.draws_same(past)
        };
        let ended = self.ended();
        let newest_first = ended.iter().rev().map(|(past, _)| past);
        let found: Vec<String> = newest_first
            .filter(is_given_up)
            .map(|past| past.id.clone())
            .collect();
        drop(ended);
        let mut found = found.iter().filter_map(|id| self.read(id));
        found.find(PastJob::has_remainder)
    }

    /// The ended jobs of queues' drawings, oldest first; with their strokes where ink was left and the job did not reach its end.
    #[must_use]
    pub fn queued(&self) -> Vec<PastJob> {
        let ended = self.ended();
        let queued = ended.iter().map(|(past, _)| past);
        let queued = queued.filter(|past| !past.ticket.is_empty());
        let queued: Vec<PastJob> = queued.cloned().collect();
        drop(ended);
        queued.into_iter().map(|past| self.whole(past)).collect()
    }

    /// Returns the drawings of a queue's batch whose jobs are no longer kept.
    #[must_use]
    pub fn old_tickets(&self, batch: &str) -> Vec<OldTicket> {
        self.old_tickets.locked().of_batch(batch)
    }

    /// Returns whether a job that is no longer kept drew a queue's drawing.
    #[must_use]
    pub fn has_old_ticket(&self, ticket: &str) -> bool {
        self.old_tickets.locked().has(ticket)
    }

    /// Returns a job with its strokes, where they are needed to say whether it drew all.
    fn whole(&self, past: PastJob) -> PastJob {
        match past.state != "reached" && past.has_inked() {
            true => self.read(&past.id).unwrap_or(past),
            false => past,
        }
    }

    /// Keeps, of a job that is to be removed, which drawing of a queue it drew.
    fn remember_ticket(&self, past: &PastJob) -> std::io::Result<()> {
        if past.ticket.is_empty() || !past.may_have_inked() {
            return Ok(());
        }
        let past = self.whole(past.clone());
        self.old_tickets.locked().remember(OldTicket {
            is_drawn: past.is_on_sheet(),
            ticket: past.ticket,
            job: past.id,
        })
    }

    /// Reads a whole job from its journal; `None` if it is missing or cannot be believed.
    fn read(&self, id: &str) -> Option<PastJob> {
        number(id)?;
        let contents = journal_file::read(&self.jobs.join(id).join(JOURNAL)).ok()?;
        Some(PastJob::from_records(&contents.records))
    }

    /// The last job of this tool that an arm carried out to its end.
    #[must_use]
    pub fn last_reached(&self, arm: &str, tool: &str) -> Option<PastJob> {
        self.newest(|past| past.arm == arm && past.tool == tool && past.state == "reached")
    }

    /// Removes the oldest jobs beyond what is kept; what is left half done, or has no end in its journal, stays.
    fn prune(&self) {
        let longest_ms = self.keep.days * 24 * 3_600_000;
        let mut ended = self.ended();
        let mut bytes: u64 = ended.iter().map(|(_, size)| size).sum();
        let mut jobs = ended.len();
        let times = ended.iter().map(|(past, _)| past.last_written_ms());
        let times: Vec<u64> = times.collect();
        let mut ages = ages_ms(&times, calendar_ms(), longest_ms).into_iter();
        ended.retain(|(past, size)| {
            let is_old = ages.next().is_some_and(|age_ms| age_ms > longest_ms);
            let one_too_many = jobs > self.keep.jobs || bytes > self.keep.bytes;
            if past.is_open() || !(is_old || one_too_many) {
                return true;
            }
            if let Err(error) = self.remember_ticket(past) {
                tracing::error!(
                    "{} is kept, for its drawing would be forgotten: {error}",
                    past.id
                );
                return true;
            }
            jobs -= 1;
            bytes -= size;
            if let Err(error) = std::fs::remove_dir_all(self.jobs.join(&past.id)) {
                tracing::warn!("cannot remove the old job {}: {error}", past.id);
            }
            false
        });
    }

    /// Returns the newest job that has ended and is meant.
    fn newest(&self, is_meant: impl Fn(&PastJob) -> bool) -> Option<PastJob> {
        let ended = self.ended();
        let mut newest_first = ended.iter().rev().map(|(past, _)| past);
        newest_first.find(|past| is_meant(past)).cloned()
    }

    fn ended(&self) -> MutexGuard<'_, Vec<(PastJob, u64)>> {
        self.ended.locked()
    }
}

/// A shorter step of the calendar is believed, however short jobs are kept.
const LEAP_MS_MIN: u64 = 30 * 24 * 3_600_000;

/// Returns how long ago each job was, by the calendar's steps from one to the next. A step back counts as nothing, and so does
/// one longer than jobs are kept and than [`LEAP_MS_MIN`]: it cannot be told from a calendar that was set.
fn ages_ms(times_ms: &[u64], now_ms: u64, longest_ms: u64) -> Vec<u64> {
    let leap_ms = longest_ms.max(LEAP_MS_MIN);
    let (mut age_ms, mut later_ms) = (0_u64, now_ms);
    let mut ages: Vec<u64> = times_ms
        .iter()
        .rev()
        .map(|time_ms| {
            let step_ms = later_ms.saturating_sub(*time_ms);
            age_ms = age_ms.saturating_add(if step_ms > leap_ms { 0 } else { step_ms });
            later_ms = *time_ms;
            age_ms
        })
        .collect();
    ages.reverse();
    ages
}

fn drew(past: &PastJob, arm: &str) -> bool {
    past.arm == arm && past.tool == "stroke" && past.drawn.mm > 0.0
}

/// Drops the strokes of a job that no other can continue.
fn without_strokes(mut past: PastJob) -> PastJob {
    if !past.is_unfinished() && !past.interrupted {
        past.strokes = Vec::new();
    }
    past
}

/// Returns the folder of a job's journal, pictures and bytes in a node's state folder.
#[must_use]
pub fn folder(state: &Path, id: &str) -> PathBuf {
    state.join(JOBS).join(id)
}

/// Returns the drawing that a job kept in place of its scene's own design, as TOML.
///
/// # Errors
/// When it cannot be read, or was not kept.
pub fn kept_design(state: &Path, id: &str) -> std::io::Result<String> {
    std::fs::read_to_string(folder(state, id).join(DESIGN))
}

/// Reads a job from a node's state folder, whether the node runs or not.
///
/// # Errors
/// When there is no such job, or its journal was damaged.
pub fn past(state: &Path, id: &str) -> Result<PastJob, JournalError> {
    let mut past = as_written(state, id)?;
    if !past.is_over() && !has_holder(state) {
        past.was_left_by_its_node();
    }
    Ok(past)
}

fn as_written(state: &Path, id: &str) -> Result<PastJob, JournalError> {
    if number(id).is_none() {
        return Err(JournalError::NoJob(id.to_owned()));
    }
    let path = folder(state, id).join(JOURNAL);
    let contents = match journal_file::read(&path) {
        Err(JournalError::File { error, .. }) if is_begun(state, id, &error) => {
            return Err(JournalError::Nothing(path));
        }
        contents => contents?,
    };
    if contents.records.is_empty() {
        return Err(JournalError::Nothing(path));
    }
    Ok(PastJob::from_records(&contents.records))
}

/// Returns whether a job has its folder, and its journal comes next.
fn is_begun(state: &Path, id: &str, error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::NotFound && folder(state, id).is_dir()
}

/// Returns every job in a node's state folder, oldest first; a journal that cannot be read is an
/// error of its own. A job that is being created at this moment is left out.
///
/// # Errors
/// When the folder cannot be read.
pub fn past_jobs(state: &Path) -> std::io::Result<Vec<Result<PastJob, JournalError>>> {
    let numbers = numbers(&state.join(JOBS))?;
    let all = numbers
        .into_iter()
        .map(|number| as_written(state, &id(number)));
    let mut all: Vec<_> = all
        .filter(|past| !matches!(past, Err(JournalError::Nothing(_))))
        .collect();
    let mut arms_of_later = HashSet::new();
    for past in all.iter_mut().rev().flatten() {
        let is_last = arms_of_later.insert(past.arm.clone());
        if past.is_over() {
            continue;
        }
        if !is_last {
            past.was_overtaken();
        } else if !has_holder(state) {
            past.was_left_by_its_node();
        }
    }
    Ok(all)
}

/// Returns the jobs among these, oldest first, after which the pen of an arm on a port may still stand on the paper.
#[must_use]
pub fn pens_left_down(pasts: &[Result<PastJob, JournalError>]) -> Vec<&str> {
    let mut arms_of_later = HashSet::new();
    let newest_first = pasts.iter().rev().flatten();
    let last = newest_first.filter(|past| past.tells_of_pen() && arms_of_later.insert(&past.arm));
    let left = last.filter(|past| past.is_on_port && past.may_leave_pen_down());
    left.map(|past| past.id.as_str()).collect()
}

fn id(number: u64) -> String {
    format!("job-{number}")
}

/// The number of a job; `None` for what is no job's id, such as a path.
fn number(id: &str) -> Option<u64> {
    let digits = id.strip_prefix("job-")?;
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_plain)
}

fn numbers(jobs: &Path) -> std::io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(jobs)? {
        let name = entry?.file_name();
        numbers.extend(name.to_str().and_then(number));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// A job as an earlier process left it; `None` if not even its beginning was written.
fn recover(path: &Path) -> Result<Option<PastJob>, JournalError> {
    if !path.exists() {
        return Ok(None);
    }
    // Read before it is opened to be written: on a full disk it can still be believed.
    let records = journal_file::read(path)?.records;
    if records.is_empty() {
        return Ok(None);
    }
    let mut past = PastJob::from_records(&records);
    if past.is_over() {
        return Ok(Some(past));
    }
    let record = past.interrupted_record("the node ended");
    past.apply_record(&record);
    if let Err(error) = journal_file::append_to(path, &record) {
        tracing::warn!(
            "that {} was interrupted is not in its journal: {error}",
            past.id
        );
    }
    Ok(Some(past))
}

fn file(path: &Path, error: std::io::Error) -> JobStoreError {
    JobStoreError::File {
        path: path.to_owned(),
        error,
    }
}

/// Takes a lock for as long as the file is open, and says in it who has it.
fn lock(path: &Path) -> Result<File, JobStoreError> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    let opened = with_mode(&mut options, 0o600).open(path);
    let mut lock = opened.map_err(|error| file(path, error))?;
    let mut is_ours = lock.try_lock().is_ok();
    if !is_ours {
        // A process that asks whether a node has the journals holds the lock for a moment.
        NodeClock::real().sleep_through(Duration::from_millis(50));
        is_ours = lock.try_lock().is_ok();
    }
    if !is_ours {
        let holder = std::fs::read_to_string(path).unwrap_or_default();
        return Err(JobStoreError::Held {
            path: path.to_owned(),
            holder: holder.trim().to_owned(),
        });
    }
    let named = lock
        .set_len(0)
        .and_then(|()| writeln!(lock, "{}", std::process::id()));
    named.map_err(|error| file(path, error))?;
    Ok(lock)
}

/// Returns whether a process has the journals of a state folder; where that cannot be seen, one has.
fn has_holder(state: &Path) -> bool {
    match File::open(state.join(LOCK)) {
        Ok(lock) => lock.try_lock_shared().is_err(),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| Some(entry.metadata().ok()?.len()));
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: u64 = 24 * 3_600_000;

    /// A day that a calendar may show.
    fn day(day: u64) -> u64 {
        20_000 * DAY_MS + day * DAY_MS
    }

    #[test]
    fn a_calendar_that_leaps_makes_no_job_old() {
        let years = 20 * 365;
        let ages = |days: &[u64], now: u64| {
            let times: Vec<u64> = days.iter().map(|at| day(*at)).collect();
            let ages = ages_ms(&times, day(now), 90 * DAY_MS);
            ages.iter().map(|age| age / DAY_MS).collect::<Vec<_>>()
        };
        assert_eq!(ages(&[years, years + 1], years + 3), [3, 2]);
        assert_eq!(
            ages(&[years, years + 80, years + 100], years + 101),
            [101, 21, 1]
        );
        // Set back, and right again.
        assert_eq!(ages(&[years, years + 1, 0, 1], 2), [3, 2, 2, 1]);
        assert_eq!(ages(&[years, 0, 1], years + 2), [1, 1, 0]);
        // Wrong from the first job on, and set right.
        assert_eq!(ages(&[0, 1], years), [1, 0]);
        // Set ahead.
        assert_eq!(ages(&[0, 1], 1 + years), [1, 0]);
        assert_eq!(ages(&[], 7), [0; 0]);
        // Where nothing is to be kept, an ordinary step still makes a job old.
        assert_eq!(ages_ms(&[5, 7], 9, 0), [4, 2]);
    }
}
