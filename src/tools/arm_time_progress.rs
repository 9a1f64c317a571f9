//! Progress of a job in arm time, for callers that wait: seconds done of the seconds that the plan takes.

use super::RemoteCallWatch;
use super::job_board::JobCard;
use super::pen_change::continue_text;
use super::stroke::rounded;
use base::wording::seconds;
use plan::Plan;

impl JobCard {
    /// Marks the beginning of a motion that takes `motion_s` by its plan; a job may have several.
    pub(super) fn begins_motion(&mut self, motion_s: f64) {
        self.state = "moving";
        self.done = self.done_before;
        self.eta_s = motion_s;
        self.earlier_s += self.motion_s;
        self.motion_s = motion_s;
    }

    /// Shows the progress of planning, unless the card shows an earlier motion of the job.
    pub(super) fn plans(&mut self, done: usize, of: usize) {
        if self.state == "planning" {
            (self.done, self.of) = (done, of);
        }
    }

    /// Ends the progress of planning, and restores the counts that the job had `before`.
    pub(super) fn ends_planning(&mut self, before: &Self) {
        self.done = before.done;
        if before.of > 0 {
            self.of = before.of;
        }
    }

    /// Marks the end of a motion that did all of its plan.
    pub(super) fn ends_motion(&mut self, plan: &Plan) {
        self.eta_s = 0.0;
        let items = plan.trajectory.spans.iter().filter_map(|span| span.item);
        if let Some(last) = items.max().filter(|_| !self.is_uncounted) {
            self.done = (self.done_before + last + 1).min(self.of);
        }
    }

    /// Returns the time left of the whole job, if all of it is planned.
    pub(super) fn left_s(&self) -> Option<f64> {
        let is_planned = !matches!(self.state, "accepted" | "planning") && !self.has_later_motions;
        is_planned.then(|| rounded(self.eta_s))
    }

    /// Returns the arm time that has passed.
    pub(super) fn done_s(&self) -> f64 {
        self.earlier_s + (self.motion_s - self.eta_s).clamp(0.0, self.motion_s)
    }

    /// Returns the arm time of all motions that are planned so far.
    pub(super) fn total_s(&self) -> f64 {
        self.earlier_s + self.motion_s
    }

    /// Tells a waiting caller how far the job is.
    pub(super) fn report_to(&self, watch: &RemoteCallWatch) {
        watch.report(self.done_s(), self.total_s(), &self.progress_text());
    }

    /// Describes what the job waits for and who lets it go on; `None` for a job that plans or moves.
    pub(super) fn waiting_text(&self) -> Option<String> {
        let Self { id, waits_for, .. } = self;
        if let Some(awaited) = waits_for {
            let continue_text = continue_text(id, self.pauses);
            return Some(format!(
                "{id} waits for {awaited}: {continue_text}. A tool call cannot do that"
            ));
        }
        let reason = match self.awaits_approval {
            true => format!("waits for a person's approval: `steadyhand approve {id}`"),
            false => "is held, pen up: an operator continues with `steadyhand continue`".to_owned(),
        };
        (self.state == "held").then(|| format!("{id} {reason}"))
    }

    /// Returns the progress as a line for people.
    pub(super) fn progress_text(&self) -> String {
        let (scene, done, of) = (&self.scene, self.done, self.of);
        // Jobs such as a self-test have no count.
        let is_counted = of > 0;
        if let Some(awaited) = &self.waits_for {
            let done = is_counted.then(|| format!("; {done} of {of} done"));
            let next = continue_text(&self.id, self.pauses) + &done.unwrap_or_default();
            return format!("{scene}: waits for {awaited}; {next}");
        }
        let left = || format!("{} left", seconds(self.eta_s.round()));
        match (self.state, self.has_later_motions) {
            ("moving", true) if is_counted => format!("{scene}: {done} of {of} done"),
            ("moving", false) if is_counted => format!("{scene}: {done} of {of} done, {}", left()),
            ("moving", false) => format!("{scene}: moving, {}", left()),
            ("held", _) if self.awaits_approval => self.waiting_text().unwrap_or_default(),
            (state, _) if is_counted => format!("{scene}: {state}, {done} of {of}"),
            (state, _) => format!("{scene}: {state}"),
        }
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "whole seconds")]
mod tests {
    use super::JobCard;

    #[test]
    fn time_goes_on_from_one_motion_of_a_job_to_the_next() {
        let mut card = JobCard::default();
        assert_eq!((card.done_s(), card.total_s()), (0.0, 0.0));
        card.begins_motion(10.0);
        assert_eq!((card.done_s(), card.total_s()), (0.0, 10.0));
        card.eta_s = 4.0;
        assert_eq!((card.done_s(), card.total_s()), (6.0, 10.0));
        card.begins_motion(5.0);
        assert_eq!((card.done_s(), card.total_s()), (10.0, 15.0));
    }

    #[test]
    fn planning_and_waiting_are_told_in_words() {
        let mut card = JobCard {
            id: "job-3".to_owned(),
            scene: "koi".to_owned(),
            state: "planning",
            ..JobCard::default()
        };
        assert_eq!(card.progress_text(), "koi: planning");
        (card.state, card.done) = ("moving", 1);
        assert_eq!(card.progress_text(), "koi: moving, 0 s left");
        card.has_later_motions = true;
        assert_eq!(card.progress_text(), "koi: moving");
        card.state = "planning";
        (card.done, card.of) = (3, 12);
        assert_eq!(card.progress_text(), "koi: planning, 3 of 12");
        (card.state, card.awaits_approval) = ("held", true);
        assert!(card.progress_text().contains("`steadyhand approve job-3`"));
    }
}
