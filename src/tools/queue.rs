//! Drawings that a queue hands to this node: which program may hand them out, which of them the node has, and how they begin.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::Node;
use super::dispatch::ToolContext;
use super::job_board::JobCard;
use super::motion_job::refresh_card;
use super::reply::{Reply, refused};
use call::read_ticket;
use fleet::QueueTag;
use fleet::draw_queue::DrawingStage;
use fleet::queue_desk::{BeginningDrawing, QueueRefusal};
use job::{NodeIdentity, OldTicket, PastJob};

/// A drawing of a queue as this node knows it.
struct KnownDrawing {
    ticket: String,
    stage: DrawingStage,
    job: Option<String>,
    text: String,
}

impl ToolContext<'_> {
    /// Takes the drawing that a queue hands out by this call; `None` if no queue makes the call.
    pub(super) fn queued_drawing(&self) -> Result<Option<BeginningDrawing>, Box<Reply>> {
        let Some(tag) = self.queue().filter(|tag| tag.drawing.is_some()) else {
            return Ok(None);
        };
        let node = self.node;
        let is_known = |ticket: &str| {
            let drawings = node.queued_jobs();
            let mut same = drawings.iter().filter(|known| known.ticket == ticket);
            node.job_store.has_old_ticket(ticket)
                || same.any(|known| known.stage != DrawingStage::WithoutInk)
        };
        let begun = node.queue_desk.begin(tag, Instant::now(), is_known);
        begun.map(Some).map_err(|e| refused(code(&e), e))
    }
}

const fn code(reason: &QueueRefusal) -> &'static str {
    match reason {
        QueueRefusal::HeldElsewhere { .. } => "queue_elsewhere",
        QueueRefusal::NotHeld => "queue_not_held",
        QueueRefusal::BegunBefore(_) => "queue_begun_before",
        QueueRefusal::TooMany => "queues_too_many",
    }
}

impl Node {
    /// Answers a queue's question, and renews its hold on the batch.
    pub(super) fn queue_report(&self, tag: &QueueTag) -> Value {
        if let Some(damaged) = self.job_store.damaged().first() {
            return json!({ "refused": format!("its drawings are unknown: {damaged}") });
        }
        let journals = match NodeIdentity::open(&self.state, &self.file.name) {
            Ok(identity) => identity.public_key(),
            Err(error) => return json!({ "refused": format!("its key cannot be used: {error}") }),
        };
        // Renewed first, so that the report covers everything that this queue may still begin.
        let renewed = (!tag.is_reader()).then(|| self.queue_desk.renew(tag, Instant::now()));
        let grant = match renewed.transpose() {
            Ok(grant) => grant,
            Err(error) => return json!({ "refused": error.to_string() }),
        };
        // Read in the order in which a drawing moves from one list to the next, so that one on its way is in both, not in neither.
        let beginning = self.queue_desk.beginning().into_iter();
        let mut drawings: Vec<_> = beginning.map(beginning_drawing).collect();
        let jobs = self.queued_jobs();
        let old = self.job_store.old_tickets(&tag.batch).into_iter();
        for drawing in jobs.into_iter().chain(old.map(forgotten_drawing)) {
            add_known(&mut drawings, drawing);
        }
        let drawings = drawings.iter().filter_map(|known| {
            let (batch, drawing) = read_ticket(&known.ticket)?;
            (tag.is_reader() || batch == tag.batch).then(|| {
                json!({
                    "batch": batch,
                    "drawing": drawing,
                    "stage": known.stage,
                    "job": known.job,
                    "words": known.text,
                })
            })
        });
        json!({
            "grant": grant,
            "journals": journals,
            "generation": tag.generation,
            "drawings": drawings.collect::<Vec<_>>(),
        })
    }

    /// Returns every queued drawing of which this node keeps a job, each once, without asking the queue desk.
    fn queued_jobs(&self) -> Vec<KnownDrawing> {
        let mut drawings = Vec::new();
        for arm in &self.arms {
            if let Some(job) = arm.board.under_way() {
                refresh_card(arm, &job);
                drawings.extend(drawing_under_way(&job.card()));
            }
        }
        let by_namesake = |past: &PastJob| {
            let mut arms = self.arms.iter().map(|arm| arm.key());
            arms.any(|arm| past.is_of(arm.namesake()))
        };
        // What was drawn in practice is not on the paper of an arm on a port.
        let queued = self.job_store.queued();
        for past in queued.iter().rev().filter(|past| !by_namesake(past)) {
            add_known(&mut drawings, ended_drawing(past));
        }
        drawings
    }
}

/// Adds a drawing. Of two jobs of one drawing the one that got farther counts, then the earlier one in the list.
fn add_known(drawings: &mut Vec<KnownDrawing>, drawing: KnownDrawing) {
    let rank = |stage: DrawingStage| match stage {
        DrawingStage::WithoutInk => 0,
        DrawingStage::LeftHalfDone => 1,
        DrawingStage::UnderWay | DrawingStage::AwaitsPerson => 2,
        DrawingStage::Drawn => 3,
    };
    let mut all = drawings.iter_mut();
    match all.find(|known| known.ticket == drawing.ticket) {
        Some(earlier) if rank(earlier.stage) < rank(drawing.stage) => *earlier = drawing,
        Some(_) => {}
        None => drawings.push(drawing),
    }
}

fn beginning_drawing(ticket: String) -> KnownDrawing {
    KnownDrawing {
        ticket,
        stage: DrawingStage::UnderWay,
        job: None,
        text: "accepted".to_owned(),
    }
}

fn drawing_under_way(card: &JobCard) -> Option<KnownDrawing> {
    let (stage, text) = match card.waiting_text() {
        Some(waits) => (DrawingStage::AwaitsPerson, waits),
        None => {
            let progress = card.progress_text();
            let text = format!("{} is {}, {progress}", card.id, card.state);
            (DrawingStage::UnderWay, text)
        }
    };
    Some(KnownDrawing {
        ticket: card.ticket.clone()?,
        stage,
        job: Some(card.id.clone()),
        text,
    })
}

fn forgotten_drawing(old: OldTicket) -> KnownDrawing {
    let (stage, text) = match old.is_drawn {
        true => (DrawingStage::Drawn, "drew it"),
        false => (DrawingStage::LeftHalfDone, "left it unfinished"),
    };
    KnownDrawing {
        text: format!("{} {text}, and its record was removed", old.job),
        ticket: old.ticket,
        stage,
        job: Some(old.job),
    }
}

fn ended_drawing(past: &PastJob) -> KnownDrawing {
    let id = &past.id;
    let (stage, text) = if past.is_on_sheet() {
        (DrawingStage::Drawn, format!("{id} drew it"))
    } else if past.may_have_inked() {
        let taken_over = match past.settled.as_str() {
            "" => String::new(),
            by => format!("; {by} has drawn since then"),
        };
        let text = format!("{id} {}: {}{taken_over}", past.state, past.summary());
        (DrawingStage::LeftHalfDone, text)
    } else {
        let text = format!("{id} {}: {}", past.state, past.message);
        (DrawingStage::WithoutInk, text)
    };
    KnownDrawing {
        ticket: past.ticket.clone(),
        stage,
        job: Some(id.clone()),
        text,
    }
}
