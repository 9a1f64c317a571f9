//! All jobs of a node: its folder of journals, one for each job, kept to a set number, size and age.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use super::job_folder;
use super::job_journal::{AcceptedJob, JobJournal};
use super::journal_file::{self, JournalError};
use super::journal_record::{JournalRecord, RecordKind};
use super::old_tickets::{self, OldTicket, OldTickets};
use super::past_job::{ArmKey, PARK, PastJob};
use super::{DESIGN, JOBS, JOURNAL};
use base::clock::calendar_ms;
use base::file_access::{make_folders, with_mode};
use base::file_lock::{NODE_LOCK, is_folder_locked, lock_folder, lock_within};
use base::lock::MutexExt;
use base::plain_file;

/// The file in a state folder that its node locks, beside the folder itself.
pub(super) const LOCK: &str = NODE_LOCK;

/// Longest wait for a process that only checks whether a node runs: it holds the locks for a moment.
const LOCK_TIMEOUT: Duration = Duration::from_millis(50);

/// Limits for keeping jobs that have ended.
#[derive(Clone, Copy, Debug)]
pub struct RetentionPolicy {
    /// Number of jobs.
    pub jobs: usize,
    /// Number of bytes, pictures included.
    pub bytes: u64,
    /// Largest age in days.
    pub days: u64,
}

/// Reason why the journals cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JobStoreError {
    /// Another process writes them.
    #[error(
        "{path} is in use by {holder}; a state folder can serve only one node. `draw`, `enable` and `stop` find that node without --config. Next: use that node (`--node ADDRESS` over HTTP), or give this one its own --state"
    )]
    Held {
        /// The file that is locked.
        path: PathBuf,
        /// The locking process, as it wrote into the file.
        holder: String,
    },
    /// A file operation failed.
    #[error(
        "cannot use {path}: {error}. {}", file_advice(.error)
    )]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// A journal cannot be written or trusted.
    #[error(transparent)]
    Log(#[from] JournalError),
}

/// Returns what a person does about a file of a state folder that cannot be used.
fn file_advice(error: &std::io::Error) -> String {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge | ReadOnlyFilesystem => {
            format!("Next: {}", base::disk::write_advice(error))
        }
        _ => "A state folder and everything in it must belong to the node's user. Next: `chown` it to that user, move away other files, or name another folder with --state".to_owned(),
    }
}

/// A job that has ended, as the limits judge it.
struct KeptJob {
    id: String,
    bytes: u64,
    /// True if it ended longer ago than jobs are kept.
    is_old: bool,
    /// True if it must not be removed, however many jobs there are.
    is_needed: bool,
    has_moved: bool,
}

/// The journals of a node. While it exists, no other process can open them.
#[derive(Debug)]
pub struct JobStore {
    jobs: PathBuf,
    keep: RetentionPolicy,
    next: AtomicU64,
    /// Jobs that have ended, oldest first, with their sizes in bytes. Never locked while the disk is waited for: calls that only look
    /// lock it too.
    ended: Mutex<Vec<(PastJob, u64)>>,
    /// Held while journals of ended jobs are changed or removed.
    changing_disk: Mutex<()>,
    /// Journals that cannot be trusted: until they are moved away, nothing moves.
    damaged: Vec<String>,
    /// Drawings of queues whose jobs were removed.
    old_tickets: Mutex<OldTickets>,
    _lock: StateLock,
}

/// The locks of a node on its state folder. That on the folder itself lasts although the file is removed.
#[derive(Debug)]
struct StateLock {
    _file: File,
    _folder: Option<File>,
}

impl JobStore {
    /// Opens the journals in a state folder. A job that had not ended is marked as interrupted, on
    /// the disk too.
    ///
    /// # Errors
    /// When another process has locked them, or the folder cannot be written.
    pub fn open(state: &Path, keep: RetentionPolicy) -> Result<Self, JobStoreError> {
        Self::open_with(state, keep, |_| None)
    }

    /// As [`Self::open`], with what another record, such as the audit log, says of a job whose journal was cut in its first record:
    /// such a job counts as interrupted.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with(
        state: &Path,
        keep: RetentionPolicy,
        begun: impl Fn(&str) -> Option<AcceptedJob>,
    ) -> Result<Self, JobStoreError> {
        let lock = StateLock::take(state)?;
        let jobs = state.join(JOBS);
        make_folders(&jobs, 0o700).map_err(|error| file(&jobs, error))?;
        let old_tickets =
            OldTickets::open(&jobs).map_err(|error| file(&jobs.join(old_tickets::FILE), error))?;
        let mut store = Self {
            keep,
            old_tickets: Mutex::new(old_tickets),
            next: AtomicU64::new(1),
            ended: Mutex::default(),
            changing_disk: Mutex::default(),
            damaged: Vec::new(),
            _lock: lock,
            jobs,
        };
        let numbers = numbers(&store.jobs).map_err(|error| file(&store.jobs, error))?;
        store.next = AtomicU64::new(numbers.last().map_or(1, |last| last.saturating_add(1)));
        for number in &numbers {
            store.load_job(*number, numbers.last() == Some(number), &begun);
        }
        Ok(store)
    }

    /// Reads a job that an earlier process left.
    fn load_job(
        &mut self,
        number: u64,
        is_last: bool,
        begun: &impl Fn(&str) -> Option<AcceptedJob>,
    ) {
        let folder = self.jobs.join(id(number));
        let recovered = recover(&self.jobs, number).or_else(|error| match error {
            JournalError::Nothing(_) => match begun(&id(number)) {
                Some(accepted) => Ok(JobJournal::replace_cut(&folder, &accepted)),
                None => Err(error),
            },
            error => Err(error),
        });
        match recovered {
            Ok(past) => {
                if !past.interrupted {
                    // Its end is on the disk, but the records of jobs that it settled may not be.
                    self.settle(&past);
                }
                self.ended().push((without_strokes(past), size(&folder)));
            }
            // It has moved nothing. The last folder keeps its number from being given again.
            Err(JournalError::Nothing(_)) if is_last => {}
            Err(JournalError::Nothing(_)) => job_folder::remove_begun(&folder),
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

    /// Returns the jobs that have a journal, newest first: at most `max`, and none if the folder cannot be read.
    #[must_use]
    pub fn recent(&self, max: usize) -> Vec<String> {
        let numbers = numbers(&self.jobs).unwrap_or_default();
        numbers.into_iter().rev().take(max).map(id).collect()
    }

    /// Returns a name that no job of this node has had.
    #[must_use]
    pub fn next_id(&self) -> String {
        id(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns an error for each journal that cannot be trusted, with what to do.
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

    /// Remembers that a job has ended. If it drew, or came to its end, it takes over what earlier
    /// jobs of its arm had left: a drawing, if it is one. A job whose end could not be written counts
    /// as interrupted: only its journal is trusted, now and after a restart.
    pub fn ended_with(&self, entry: &JobJournal) {
        let mut past = entry.past();
        if !past.is_over() {
            let record = past.interrupted_record("its end could not be written to its journal");
            past.apply_record(&record);
        }
        self.settle(&past);
        let size = size(entry.folder());
        self.ended().push((without_strokes(past), size));
    }

    /// Lets a job take over what earlier ones of its arm had left, if it moved and drew or came to its end. If that cannot
    /// be written, it is done again at the next start.
    fn settle(&self, by: &PastJob) {
        let takes_over = by.moved && (by.state == "reached" || by.drawn.mm > 0.0);
        let draws = by.tool == "stroke";
        let is_taken = |past: &PastJob| {
            // Of a journal that does not say, only the arm on the port takes over, or a job that does not say either.
            past.arm == by.arm
                && (past.is_on_port == by.is_on_port
                    || (past.is_on_port.is_none() && by.is_on_port == Some(true)))
                && number(&past.id) < number(&by.id)
                && past.is_open()
                && (draws || !past.is_unfinished())
        };
        let _changing = self.changing_disk.locked();
        let mut taken_ids = Vec::new();
        let mut ended = self.ended();
        let pasts = ended.iter_mut().map(|(past, _)| past);
        for past in pasts.filter(|past| takes_over && is_taken(past)) {
            past.settled.clone_from(&by.id);
            taken_ids.push(past.id.clone());
        }
        drop(ended);
        for id in taken_ids {
            let record = JournalRecord::new(RecordKind::Settled).with("by", &by.id);
            let path = self.jobs.join(id).join(JOURNAL);
            if let Err(error) = journal_file::append_to(&path, &record) {
                tracing::error!("{error}");
            }
        }
    }

    /// Returns the drawing that an arm has left half done.
    #[must_use]
    pub fn unfinished(&self, arm: ArmKey<'_>) -> Option<PastJob> {
        self.newest(|past| past.is_of(arm) && past.is_unfinished())
    }

    /// Returns the drawing that was left half done under an arm's name, and not by that arm: it was simulated then and is on a
    /// port now, or the other way round, or a journal of an older node does not say.
    #[must_use]
    pub fn unfinished_of_namesake(&self, arm: ArmKey<'_>) -> Option<PastJob> {
        self.newest(|past| past.arm == arm.name && !past.is_of(arm) && past.is_unfinished())
    }

    /// Returns the last job that moved an arm, if it may have left the pen on the paper.
    #[must_use]
    pub fn pen_left_down(&self, arm: ArmKey<'_>) -> Option<PastJob> {
        let last = self.newest(|past| past.says_where_pen_of(arm));
        last.filter(PastJob::may_leave_pen_down)
    }

    /// Returns the job that was moving an arm when its process ended, or for which a hand may have been at the arm, until a later one
    /// settles it. A drawing that is left half
    /// done comes before a later job that leaves nothing.
    #[must_use]
    pub fn interrupted(&self, arm: ArmKey<'_>) -> Option<PastJob> {
        let ended = self.ended();
        let is_open = |past: &&PastJob| {
            let was_under_way = past.interrupted && (past.moved || past.waited);
            past.counts_for(arm) && was_under_way && past.settled.is_empty()
        };
        let mut open = ended.iter().rev().map(|(past, _)| past).filter(is_open);
        let newest = open.next()?;
        let drawing = std::iter::once(newest)
            .chain(open)
            .find(|past| past.is_unfinished());
        Some(drawing.unwrap_or(newest).clone())
    }

    /// Returns the last job that moved an arm.
    #[must_use]
    pub fn last_moved(&self, arm: ArmKey<'_>) -> Option<PastJob> {
        self.newest(|past| past.is_of(arm) && past.moved)
    }

    /// Returns the last drawing of an arm that left ink.
    #[must_use]
    pub fn last_drawn(&self, arm: ArmKey<'_>) -> Option<PastJob> {
        self.newest(|past| past.is_of(arm) && past.tool == "stroke" && past.has_inked())
    }

    /// Returns the drawings whose ink lies on the sheet before an arm, the oldest first and without their strokes: those in a
    /// revision of a scene from the job with this number on, unless the arm has drawn something else since.
    #[must_use]
    pub fn drawn_since(&self, arm: ArmKey<'_>, from: u64, revision: &str) -> Vec<PastJob> {
        let ended = self.ended();
        let newest_first = ended.iter().rev().map(|(past, _)| past);
        let drawn = newest_first
            .filter(|past| past.is_of(arm) && past.tool == "stroke" && past.has_inked());
        let on_sheet = drawn.take_while(|past| {
            past.revision == revision && number(&past.id).is_some_and(|number| number >= from)
        });
        let mut on_sheet: Vec<PastJob> = on_sheet.cloned().collect();
        on_sheet.reverse();
        on_sheet
    }

    /// Returns the number that the next job will have.
    #[must_use]
    pub fn next_number(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Returns the last job that moved an arm because somebody asked for it: not one that parked it.
    #[must_use]
    pub fn last_asked_motion(&self, arm: ArmKey<'_>) -> Option<PastJob> {
        self.newest(|past| past.is_of(arm) && past.moved && past.tool != PARK)
    }

    /// Returns the lines that an arm's last drawing has certainly put on its sheet, according to its journal:
    /// those of the job `under_way` if it has drawn yet, and of the jobs that it continues. Empty if
    /// `matches` does not accept the sheet of that drawing.
    #[must_use]
    pub fn inked_lines(
        &self,
        arm: ArmKey<'_>,
        under_way: Option<&str>,
        matches: impl Fn(&PastJob) -> bool,
    ) -> Vec<Vec<[f64; 2]>> {
        let current = under_way.and_then(|id| self.read(id));
        let current = current.filter(|past| drew(past, arm));
        let last = current.or_else(|| self.last_drawing(arm));
        let drawings = self.with_earlier(last).take_while(matches);
        drawings.flat_map(|past| past.inked()).collect()
    }

    /// Returns the job that a job continues. It must be an earlier one, whatever a journal says, so that there is no cycle.
    fn earlier(&self, past: &PastJob) -> Option<PastJob> {
        let earlier = self.read(&past.resumes)?;
        (number(&earlier.id) < number(&past.id)).then_some(earlier)
    }

    /// Returns a job, the one that it continues, and so on.
    fn with_earlier(&self, last: Option<PastJob>) -> impl Iterator<Item = PastJob> {
        std::iter::successors(last, |past| self.earlier(past))
    }

    /// Counts the strokes that the jobs which a job continues have completed.
    #[must_use]
    pub fn done_before(&self, past: &PastJob) -> usize {
        let earlier = self.with_earlier(self.earlier(past));
        earlier.map(|past| past.drawn.strokes).sum()
    }

    /// Returns the last job that is over and has drawn with an arm, with its strokes.
    #[must_use]
    pub fn last_drawing(&self, arm: ArmKey<'_>) -> Option<PastJob> {
        let found = self.newest(|past| drew(past, arm))?;
        self.read(&found.id)
    }

    /// Returns the last drawing of an arm that is over, was not refused before anything moved, and `matches` accepts, with its strokes.
    #[must_use]
    pub fn last_begun_drawing(
        &self,
        arm: ArmKey<'_>,
        matches: impl Fn(&PastJob) -> bool,
    ) -> Option<PastJob> {
        let is_begun = |past: &PastJob| past.state != "refused" || past.has_moved();
        let is_drawing = |past: &PastJob| past.is_of(arm) && past.tool == "stroke";
        let found = self.newest(|past| is_drawing(past) && is_begun(past) && matches(past))?;
        self.read(&found.id)
    }

    /// Returns the unfinished drawing, with its strokes, that an arm gave up for its last one, which is a different drawing. If that
    /// one continues earlier jobs, drawings given up for those count as well.
    #[must_use]
    pub fn given_up(&self, arm: ArmKey<'_>) -> Option<PastJob> {
        let mut drawn = self.with_earlier(self.last_drawing(arm));
        drawn.find_map(|by| self.given_up_for(&by))
    }

    fn given_up_for(&self, by: &PastJob) -> Option<PastJob> {
        let is_given_up = |past: &&PastJob| {
            past.settled == by.id && past.id != by.resumes && !by.draws_same(past)
        };
        let ended = self.ended();
        let newest_first = ended.iter().rev().map(|(past, _)| past);
        let ids: Vec<String> = newest_first
            .filter(is_given_up)
            .map(|past| past.id.clone())
            .collect();
        drop(ended);
        let mut given_up = ids.iter().filter_map(|id| self.read(id));
        given_up.find(PastJob::has_remainder)
    }

    /// Returns the ended jobs of queues' drawings, oldest first, with their strokes if ink was left and the job did not reach its end.
    #[must_use]
    pub fn queued(&self) -> Vec<PastJob> {
        let ended = self.ended();
        let queued = ended.iter().map(|(past, _)| past);
        let queued = queued.filter(|past| !past.ticket.is_empty());
        let queued: Vec<PastJob> = queued.cloned().collect();
        drop(ended);
        let with_strokes = |past| self.with_strokes(past);
        queued.into_iter().map(with_strokes).collect()
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

    /// Returns a job with its strokes, if they are needed to decide whether it drew everything.
    fn with_strokes(&self, past: PastJob) -> PastJob {
        match past.state != "reached" && past.has_inked() {
            true => self.read(&past.id).unwrap_or(past),
            false => past,
        }
    }

    /// Keeps a record of the queue's drawing that a job drew, before the job is removed.
    fn remember_ticket(&self, past: &PastJob) -> std::io::Result<()> {
        if past.ticket.is_empty() || !past.may_have_inked() {
            return Ok(());
        }
        let past = self.with_strokes(past.clone());
        self.old_tickets.locked().remember(OldTicket {
            is_drawn: past.is_on_sheet(),
            ticket: past.ticket,
            job: past.id,
        })
    }

    /// Reads a complete job from its journal; `None` if it is missing or cannot be trusted.
    fn read(&self, id: &str) -> Option<PastJob> {
        number(id)?;
        let contents = journal_file::read(&self.jobs.join(id).join(JOURNAL)).ok()?;
        Some(PastJob::from_records(&contents.records))
    }

    /// Reads a job, as [`past`] does. A job whose end could not be written, as on a full disk, has ended all the same: this
    /// process knows it, and its journal will be read so after a restart.
    ///
    /// # Errors
    /// When there is no such job, or its journal was damaged.
    pub fn past(&self, id: &str) -> Result<PastJob, JournalError> {
        let past = read_past(self.state(), id)?;
        Ok(self.with_unwritten_end(past))
    }

    /// Returns every job, oldest first, as [`past_jobs`] does.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn past_jobs(&self) -> std::io::Result<Vec<Result<PastJob, JournalError>>> {
        let pasts = past_jobs(self.state())?.into_iter();
        let ended = pasts.map(|past| Ok(self.with_unwritten_end(past?)));
        Ok(ended.collect())
    }

    fn with_unwritten_end(&self, past: PastJob) -> PastJob {
        let is_same = |ended: &PastJob| !past.is_over() && ended.id == past.id;
        match self.newest(is_same) {
            Some(ended) => PastJob {
                strokes: past.strokes,
                ..ended
            },
            None => past,
        }
    }

    fn state(&self) -> &Path {
        self.jobs.parent().unwrap_or(&self.jobs)
    }

    /// Returns the last job of this tool that an arm carried out to its end and that `matches` accepts.
    #[must_use]
    pub fn last_reached(
        &self,
        arm: ArmKey<'_>,
        tool: &str,
        matches: impl Fn(&PastJob) -> bool,
    ) -> Option<PastJob> {
        let is_reached = |past: &PastJob| past.tool == tool && past.state == "reached";
        self.newest(|past| past.is_of(arm) && is_reached(past) && matches(past))
    }

    /// Removes the oldest jobs beyond the limits, those that moved nothing first. Jobs that are needed stay.
    fn prune(&self) {
        let _changing = self.changing_disk.locked();
        let mut kept = self.kept_jobs();
        let mut jobs = kept.len();
        let mut bytes: u64 = kept.iter().map(|job| job.bytes).sum();
        // The newest stay where they are: who asked for them may still look at them.
        let newest = jobs - jobs.min(self.keep.jobs / 10);
        let (older, _) = kept.split_at_mut(newest);
        older.sort_by_key(|job| job.has_moved);
        for job in kept {
            let is_over_limit = jobs > self.keep.jobs || bytes > self.keep.bytes;
            if job.is_needed || !(job.is_old || is_over_limit) {
                continue;
            }
            let Some(past) = self.newest(|past| past.id == job.id) else {
                continue;
            };
            if let Err(error) = self.remember_ticket(&past) {
                tracing::error!(
                    "{} stays, because the record of its drawing cannot be written elsewhere: {error}",
                    job.id
                );
                continue;
            }
            jobs -= 1;
            bytes -= job.bytes;
            self.ended().retain(|(past, _)| past.id != job.id);
            if let Err(error) = job_folder::remove(&self.jobs.join(&job.id)) {
                tracing::warn!("cannot remove the old job {}: {error}", job.id);
            }
        }
    }

    /// Returns the jobs that have ended and are kept, oldest first.
    fn kept_jobs(&self) -> Vec<KeptJob> {
        let longest_ms = self.keep.days * 24 * 3_600_000;
        let ended = self.ended();
        let times_ms = ended.iter().map(|(past, _)| past.last_written_ms());
        let times_ms: Vec<u64> = times_ms.collect();
        let ages_ms = ages_ms(&times_ms, calendar_ms(), longest_ms);
        let needed = needed(&ended);
        let kept = ended.iter().zip(ages_ms);
        kept.map(|((past, bytes), age_ms)| KeptJob {
            id: past.id.clone(),
            bytes: *bytes,
            is_old: age_ms > longest_ms,
            is_needed: needed.contains(past.id.as_str()),
            has_moved: past.has_moved(),
        })
        .collect()
    }

    /// Returns the newest ended job that matches.
    fn newest(&self, matches: impl Fn(&PastJob) -> bool) -> Option<PastJob> {
        let ended = self.ended();
        let mut newest_first = ended.iter().rev().map(|(past, _)| past);
        newest_first.find(|past| matches(past)).cloned()
    }

    fn ended(&self) -> MutexGuard<'_, Vec<(PastJob, u64)>> {
        self.ended.locked()
    }
}

/// Returns the ids of the jobs, given oldest first, that must not be removed: those left open with the jobs that they continue,
/// and for each arm the last one that moved it and the last one that says where its pen is.
fn needed(ended: &[(PastJob, u64)]) -> HashSet<&str> {
    let (mut needed, mut continued) = (HashSet::new(), HashSet::new());
    let (mut moved, mut located) = (HashSet::new(), HashSet::new());
    for (past, _) in ended.iter().rev() {
        let arm = (&past.arm, past.is_on_port);
        let is_last =
            (past.moved && moved.insert(arm)) | (past.says_where_pen_is() && located.insert(arm));
        let is_of_open = past.is_open() || continued.contains(past.id.as_str());
        if is_of_open {
            continued.insert(past.resumes.as_str());
        }
        if is_last || is_of_open {
            needed.insert(past.id.as_str());
        }
    }
    needed
}

/// A shorter step of the calendar is trusted, however short the time for which jobs are kept.
const LEAP_MS_MIN: u64 = 30 * 24 * 3_600_000;

/// Returns each job's age, from the calendar's steps between jobs. A step back counts as zero, and so does
/// one that is longer than jobs are kept and than [`LEAP_MS_MIN`]: it cannot be distinguished from a calendar that was set.
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

fn drew(past: &PastJob, arm: ArmKey<'_>) -> bool {
    past.is_of(arm) && past.tool == "stroke" && past.drawn.mm > 0.0
}

/// Drops the strokes of a job that no other job can continue.
fn without_strokes(mut past: PastJob) -> PastJob {
    if !past.is_unfinished() && !past.interrupted {
        past.strokes = Vec::new();
    }
    past
}

/// Returns the folder of a job's journal, pictures and byte trace in a node's state folder.
#[must_use]
pub fn folder(state: &Path, id: &str) -> PathBuf {
    state.join(JOBS).join(id)
}

/// Returns the drawing that a job kept in place of its scene's own design, as TOML.
///
/// # Errors
/// When it cannot be read, or was not kept.
pub fn kept_design(state: &Path, id: &str) -> std::io::Result<String> {
    plain_file::read_text(folder(state, id).join(DESIGN))
}

/// Reads a job from a node's state folder, whether or not the node is running.
///
/// # Errors
/// When there is no such job, or its journal was damaged.
pub fn past(state: &Path, id: &str) -> Result<PastJob, JournalError> {
    let mut past = read_past(state, id)?;
    if !past.is_over() && !has_holder(state) {
        past.mark_abandoned();
    }
    Ok(past)
}

fn read_past(state: &Path, id: &str) -> Result<PastJob, JournalError> {
    let number = number(id).ok_or_else(|| JournalError::NoJob(id.to_owned()))?;
    let records = records(&state.join(JOBS), number)?;
    Ok(PastJob::from_records(&records))
}

/// Returns every job in a node's state folder, oldest first, with an error for each journal that
/// cannot be read. A job that is just being created is left out.
///
/// # Errors
/// When the folder cannot be read.
pub fn past_jobs(state: &Path) -> std::io::Result<Vec<Result<PastJob, JournalError>>> {
    let numbers = numbers(&state.join(JOBS))?;
    let mut pasts: Vec<_> = numbers
        .into_iter()
        .map(|number| read_past(state, &id(number)))
        .filter(|past| !matches!(past, Err(JournalError::Nothing(_))))
        .collect();
    let mut arms_of_later = HashSet::new();
    for past in pasts.iter_mut().rev().flatten() {
        let is_last = arms_of_later.insert(past.arm.clone());
        if past.is_over() {
            continue;
        }
        if !is_last {
            past.mark_overtaken();
        } else if !has_holder(state) {
            past.mark_abandoned();
        }
    }
    Ok(pasts)
}

/// Returns the jobs among these, given oldest first, after which the pen of an arm on a port may still be on the paper.
#[must_use]
pub fn pens_left_down(pasts: &[Result<PastJob, JournalError>]) -> Vec<&str> {
    let mut arms_of_later = HashSet::new();
    let newest_first = pasts.iter().rev().flatten();
    let says_where = |past: &&PastJob| {
        past.says_where_pen_of(ArmKey {
            name: &past.arm,
            is_on_port: true,
        })
    };
    newest_first
        .filter(says_where)
        .filter(|past| arms_of_later.insert(&past.arm) && past.may_leave_pen_down())
        .map(|past| past.id.as_str())
        .collect()
}

pub(super) fn id(number: u64) -> String {
    format!("job-{number}")
}

/// Returns the number of a job; `None` if the text is not a job's id, such as a path.
#[must_use]
pub fn number(id: &str) -> Option<u64> {
    let number = id.strip_prefix("job-")?.parse().ok()?;
    (self::id(number) == id).then_some(number)
}

pub(super) fn numbers(jobs: &Path) -> std::io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(jobs)? {
        let name = entry?.file_name();
        numbers.extend(name.to_str().and_then(number));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Reads a job's records, as [`job_folder::records`] does.
///
/// # Errors
/// As that, and where no job could have a later number.
pub(super) fn records(jobs: &Path, number: u64) -> Result<Vec<JournalRecord>, JournalError> {
    let folder = jobs.join(id(number));
    match number {
        u64::MAX => Err(JournalError::LastNumber(folder)),
        _ => job_folder::records(&folder),
    }
}

/// Reads a job that an earlier process left, and ends it if need be.
fn recover(jobs: &Path, number: u64) -> Result<PastJob, JournalError> {
    // Read before it is opened for writing: on a full disk its contents still count.
    let records = records(jobs, number)?;
    let mut past = PastJob::from_records(&records);
    if past.is_over() {
        return Ok(past);
    }
    let record = past.interrupted_record("the node ended");
    past.apply_record(&record);
    let path = jobs.join(id(number)).join(JOURNAL);
    if let Err(error) = journal_file::append_to(&path, &record) {
        tracing::warn!(
            "cannot record the interruption of {} in its journal: {error}",
            past.id
        );
    }
    Ok(past)
}

pub(super) fn file(path: &Path, error: std::io::Error) -> JobStoreError {
    JobStoreError::File {
        path: path.to_owned(),
        error,
    }
}

/// Returns the error about a lock that another process has, which has written its id into the file.
pub(super) fn held(path: &Path) -> JobStoreError {
    let holder = plain_file::read_text(path).unwrap_or_default();
    JobStoreError::Held {
        path: path.to_owned(),
        holder: match holder.trim() {
            "" => "another process".to_owned(),
            id => format!("process {id}"),
        },
    }
}

impl StateLock {
    /// Locks a state folder, and writes the process's id into its file.
    fn take(state: &Path) -> Result<Self, JobStoreError> {
        let path = &state.join(LOCK);
        let folder = lock_folder(state, LOCK_TIMEOUT).map_err(|error| match error.kind() {
            std::io::ErrorKind::WouldBlock => held(path),
            _ => file(state, error),
        })?;
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true);
        let opened = with_mode(&mut options, 0o600).open(path);
        let mut lock = opened.map_err(|error| file(path, error))?;
        if !lock_within(&lock, LOCK_TIMEOUT).unwrap_or(false) {
            return Err(held(path));
        }
        lock.set_len(0)
            .and_then(|()| writeln!(lock, "{}", std::process::id()))
            .map_err(|error| file(path, error))?;
        Ok(Self {
            _file: lock,
            _folder: folder,
        })
    }
}

/// Returns whether a process has locked the journals of a state folder; also true if that cannot be determined.
fn has_holder(state: &Path) -> bool {
    if is_folder_locked(state) {
        return true;
    }
    match plain_file::open(state.join(LOCK)) {
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
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use crate::TipPlace;

    const DAY_MS: u64 = 24 * 3_600_000;

    /// Returns the time of a day in milliseconds since 1970.
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
        // Set back, and then corrected.
        assert_eq!(ages(&[years, years + 1, 0, 1], 2), [3, 2, 2, 1]);
        assert_eq!(ages(&[years, 0, 1], years + 2), [1, 1, 0]);
        // Wrong from the first job on, and then corrected.
        assert_eq!(ages(&[0, 1], years), [1, 0]);
        // Set ahead.
        assert_eq!(ages(&[0, 1], 1 + years), [1, 0]);
        assert_eq!(ages(&[], 7), [0; 0]);
        // If nothing is to be kept, an ordinary step still makes a job old.
        assert_eq!(ages_ms(&[5, 7], 9, 0), [4, 2]);
    }

    /// Keeps a job that ended like this, with the place of its tip if it moved.
    fn keep_job(jobs: &JobStore, arm: &str, state: &str, tip: Option<TipPlace>) {
        let accepted = AcceptedJob {
            id: jobs.next_id(),
            tool: "stroke".to_owned(),
            arm: arm.to_owned(),
            is_on_port: true,
            ..AcceptedJob::default()
        };
        let entry = jobs.begin(&accepted).unwrap();
        if tip.is_some() {
            entry.moving().unwrap();
        }
        entry.ended(state, "told", "{}", tip).unwrap();
        jobs.ended_with(&entry);
    }

    /// A planner that repeats a refused call must not make the node forget where a pen is, nor what was drawn.
    #[test]
    fn no_job_that_tells_of_an_arm_is_crowded_out() {
        let (folder, keep) = (
            tempfile::tempdir().unwrap(),
            RetentionPolicy {
                jobs: 3,
                bytes: 1 << 30,
                days: 30,
            },
        );
        let arm = ArmKey {
            name: "arm",
            is_on_port: true,
        };
        let jobs = JobStore::open(folder.path(), keep).unwrap();
        keep_job(&jobs, "arm", "reached", Some(TipPlace::Off));
        keep_job(&jobs, "arm", "faulted", Some(TipPlace::AtSheet));
        for _ in 0..12 {
            keep_job(&jobs, "arm", "refused", None);
        }
        drop(jobs);
        let jobs = JobStore::open(folder.path(), keep).unwrap();
        let id = |past: Option<PastJob>| past.map(|past| past.id).unwrap_or_default();
        assert_eq!(id(jobs.pen_left_down(arm)), "job-2");
        assert!(
            read_past(folder.path(), "job-1").is_ok(),
            "the older one moved too"
        );
        for _ in 0..9 {
            keep_job(&jobs, "other", "reached", Some(TipPlace::Off));
        }
        assert_eq!(id(jobs.pen_left_down(arm)), "job-2");
        assert_eq!(id(jobs.last_moved(arm)), "job-2");
        let left = past_jobs(folder.path()).unwrap();
        assert!(left.len() <= keep.jobs + 1, "{} jobs", left.len());
    }
}
