//! A queue of drawings for several nodes, as seen by the program that hands them out: which node has which drawing, which are on
//! the way, which are left, and what those wait for.
//!
//! The queue itself is not stored on disk; the nodes' journals are. A drawing that no node reports is handed out only by a program
//! that has asked every node and has held the batch on at least one of them since ([`super::queue_desk`]).

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

/// Number of reports after which a node that refused a drawing for now is asked again, even if its standing is unchanged.
const ASK_AGAIN_AFTER: u32 = 15;

/// Message about a node whose state folder was replaced while the queue ran.
const OTHER_JOURNALS: &str = "its state folder was replaced, so it no longer knows its drawings of this batch. Look at its sheet; start the queue again without the drawings that are on it";

/// A queue of drawings, counted from 1.
#[derive(Debug)]
pub struct DrawQueue {
    nodes: Vec<QueueNode>,
    drawings: Vec<DrawingPlace>,
    /// Reason why a node cannot draw a drawing, by drawing and node.
    unable: BTreeMap<(u32, usize), String>,
    /// Leases, by node, with which this program held the batch when every node was asked. While one of them lasts, no other program
    /// can have asked them all.
    anchors: HashMap<usize, u64>,
    /// True if all drawings that were ever begun are known.
    is_surveyed: bool,
}

/// A node, as the queue knows it.
#[derive(Debug)]
struct QueueNode {
    name: String,
    /// True if drawings are handed to it.
    draws: bool,
    /// True if a person has stated that it has none of these drawings.
    is_excused: bool,
    /// Incremented when a call to it is lost.
    generation: u32,
    /// Number of its lease, from its last report.
    grant: u64,
    /// The identity of its journals, from its first report.
    journals: Option<String>,
    /// Readiness from its last report, or the reason against it.
    standing: Result<(), String>,
    /// True if it answered the last round.
    is_reachable: bool,
    /// Its temporary refusal, its standing at that time, and the number of reports since.
    refusal: Option<(String, Result<(), String>, u32)>,
}

/// Report of one node.
#[derive(Clone, Debug)]
pub enum NodeReport {
    /// It did not answer, or does not let this program hold the batch.
    Unavailable(String),
    /// It lets this program hold the batch.
    Held {
        /// Number of the lease; it changes after a gap.
        grant: u64,
        /// The identity of its journals.
        journals: String,
        /// Generation that the request carried.
        generation: u32,
        /// Its drawings of the batch.
        drawings: Vec<ReportedDrawing>,
        /// Readiness of its arm to draw, or the reason against it.
        standing: Result<(), String>,
    },
}

/// A drawing that a node has.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ReportedDrawing {
    /// Number of the drawing, counted from 1.
    pub drawing: u32,
    /// Its stage.
    pub stage: DrawingStage,
    /// The job and its progress, for people.
    pub words: String,
}

/// Stage of a drawing on its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrawingStage {
    /// Its job is under way, or about to be.
    UnderWay,
    /// Its job waits for a person, and then continues.
    AwaitsPerson,
    /// All of it is on the sheet.
    Drawn,
    /// Its job broke off with ink on the sheet; a person must continue it there.
    LeftHalfDone,
    /// Its job ended before any ink.
    WithoutInk,
}

impl DrawingStage {
    /// Returns whether its job has not ended.
    fn has_open_job(self) -> bool {
        matches!(self, Self::UnderWay | Self::AwaitsPerson)
    }
}

/// The place of a drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
enum DrawingPlace {
    /// No node has it.
    Free,
    /// The call that hands it out is on the way; `is_lost` if the call failed and the node may have received it.
    Sent { node: usize, is_lost: bool },
    /// A node has it.
    At {
        node: usize,
        stage: DrawingStage,
        words: String,
    },
}

/// A drawing for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handout {
    /// The drawing, counted from 1.
    pub drawing: u32,
    /// The node, counted from 0.
    pub node: usize,
}

/// Outcome of handing a drawing out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandoutOutcome {
    /// The node has started a job for it; its next report says more.
    Taken(String),
    /// It cannot draw this drawing.
    CannotDraw(String),
    /// It draws nothing for now.
    NotNow(String),
    /// The answer was lost: the node may have begun.
    Lost,
}

/// State of a drawing, as the queue reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrawingNews {
    /// All of it is on a sheet.
    Drawn(String),
    /// Under way.
    UnderWay(String),
    /// A node that can draw it will come to it.
    Queued,
    /// It waits for a node or for a person.
    Waits(String),
}

impl DrawQueue {
    /// Creates a queue that knows nothing yet. `nodes` are all nodes that may have a drawing: the name of each, whether drawings are
    /// handed to it, and whether a person has stated that it has none.
    #[must_use]
    pub fn new(nodes: impl IntoIterator<Item = (String, bool, bool)>, drawings: u32) -> Self {
        let node = |(name, draws, is_excused)| QueueNode {
            name,
            draws,
            is_excused,
            generation: 0,
            grant: 0,
            journals: None,
            standing: Err("this node has not been asked yet".to_owned()),
            is_reachable: false,
            refusal: None,
        };
        Self {
            nodes: nodes.into_iter().map(node).collect(),
            drawings: (0..drawings).map(|_| DrawingPlace::Free).collect(),
            unable: BTreeMap::new(),
            anchors: HashMap::new(),
            is_surveyed: false,
        }
    }

    /// Returns the number that calls to a node carry from now on.
    #[must_use]
    pub fn generation(&self, node: usize) -> u32 {
        self.nodes.get(node).map_or(0, |node| node.generation)
    }

    /// Returns the number of the lease under which drawings are handed to a node from now on.
    #[must_use]
    pub fn grant(&self, node: usize) -> u64 {
        self.nodes.get(node).map_or(0, |node| node.grant)
    }

    /// Applies one report of every node, in their order.
    pub fn apply_reports(&mut self, reports: Vec<NodeReport>) {
        let mut all_held = true;
        let mut is_anchored = false;
        for (index, report) in reports.into_iter().enumerate() {
            let Some(node) = self.nodes.get_mut(index) else {
                continue;
            };
            match node.checked(report) {
                NodeReport::Unavailable(reason) => {
                    (node.standing, node.is_reachable) = (Err(reason), false);
                    all_held &= node.is_excused;
                }
                NodeReport::Held {
                    grant,
                    generation,
                    drawings,
                    standing,
                    ..
                } => {
                    (node.is_reachable, node.grant) = (true, grant);
                    node.set_standing(standing);
                    is_anchored |= self.anchors.get(&index) == Some(&grant);
                    let is_current = generation == node.generation;
                    self.apply_drawings(index, is_current, drawings);
                }
            }
        }
        if all_held {
            let reachable = self.nodes.iter().enumerate();
            let reachable = reachable.filter(|(_, node)| node.is_reachable);
            self.anchors = reachable.map(|(index, node)| (index, node.grant)).collect();
        }
        self.is_surveyed = all_held || is_anchored;
    }

    fn apply_drawings(&mut self, from: usize, is_current: bool, reported: Vec<ReportedDrawing>) {
        for place in &mut self.drawings {
            let is_freed = match place {
                // A drawing with ink on the sheet stays there, even if that node has forgotten it since.
                DrawingPlace::At { node, stage, .. } => *node == from && stage.has_open_job(),
                // A report of an older generation says nothing about the lost call.
                DrawingPlace::Sent { node, is_lost } => *node == from && *is_lost && is_current,
                DrawingPlace::Free => false,
            };
            if is_freed {
                *place = DrawingPlace::Free;
            }
        }
        for report in reported {
            let place = self.place_mut(report.drawing);
            // A job without ink does not hold the drawing: another node may draw it.
            let Some(place) = place.filter(|_| report.stage != DrawingStage::WithoutInk) else {
                continue;
            };
            let is_drawn = matches!(
                place,
                DrawingPlace::At {
                    stage: DrawingStage::Drawn,
                    ..
                }
            );
            if !is_drawn {
                *place = DrawingPlace::At {
                    node: from,
                    stage: report.stage,
                    words: report.words,
                };
            }
        }
    }

    /// Picks a drawing for each node that is free to draw. The caller sends each and reports its outcome to [`Self::answered`].
    pub fn hand_out(&mut self) -> Vec<Handout> {
        let mut handouts = Vec::new();
        for index in 0..self.nodes.len() {
            let Some(drawing) = self.drawing_for(index) else {
                continue;
            };
            if let Some(place) = self.place_mut(drawing) {
                *place = DrawingPlace::Sent {
                    node: index,
                    is_lost: false,
                };
            }
            handouts.push(Handout {
                drawing,
                node: index,
            });
        }
        handouts
    }

    fn drawing_for(&self, index: usize) -> Option<u32> {
        let node = self.nodes.get(index)?;
        let is_free = node.draws && node.is_reachable && node.is_free() && !self.has_work(index);
        if !is_free || !self.is_surveyed {
            return None;
        }
        let numbered = (1..).zip(&self.drawings);
        let mut free = numbered.filter(|(_, place)| **place == DrawingPlace::Free);
        free.find(|(drawing, _)| !self.unable.contains_key(&(*drawing, index)))
            .map(|(drawing, _)| drawing)
    }

    fn has_work(&self, index: usize) -> bool {
        self.drawings.iter().any(|place| match place {
            DrawingPlace::Sent { node, .. } => *node == index,
            DrawingPlace::At { node, stage, .. } => *node == index && stage.has_open_job(),
            DrawingPlace::Free => false,
        })
    }

    /// Records the outcome of a drawing that was handed out.
    pub fn answered(&mut self, handout: Handout, outcome: HandoutOutcome) {
        let Handout { drawing, node } = handout;
        let place = match outcome {
            HandoutOutcome::Taken(words) => DrawingPlace::At {
                node,
                stage: DrawingStage::UnderWay,
                words,
            },
            HandoutOutcome::CannotDraw(reason) => {
                self.unable.insert((drawing, node), reason);
                DrawingPlace::Free
            }
            HandoutOutcome::NotNow(reason) => {
                if let Some(node) = self.nodes.get_mut(node) {
                    node.refusal = Some((reason, node.standing.clone(), 0));
                }
                DrawingPlace::Free
            }
            HandoutOutcome::Lost => {
                if let Some(node) = self.nodes.get_mut(node) {
                    node.generation += 1;
                }
                DrawingPlace::Sent {
                    node,
                    is_lost: true,
                }
            }
        };
        // A report may have arrived before the answer.
        if let Some(current @ DrawingPlace::Sent { .. }) = self.place_mut(drawing) {
            *current = place;
        }
    }

    /// Returns whether all drawings that were ever begun are known.
    #[must_use]
    pub fn is_surveyed(&self) -> bool {
        self.is_surveyed
    }

    /// Returns whether every drawing is on a sheet.
    #[must_use]
    pub fn is_drawn(&self) -> bool {
        self.numbers()
            .all(|drawing| matches!(self.news(drawing), DrawingNews::Drawn(_)))
    }

    /// Returns the numbers of all drawings.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        1..=u32::try_from(self.drawings.len()).unwrap_or(u32::MAX)
    }

    /// Returns whether nothing is under way, and no drawing can be handed out now.
    #[must_use]
    pub fn only_waits(&self) -> bool {
        let is_under_way = |drawing| matches!(self.news(drawing), DrawingNews::UnderWay(_));
        !self.numbers().any(is_under_way)
            && (0..self.nodes.len()).all(|node| self.drawing_for(node).is_none())
    }

    /// Describes where a drawing, counted from 1, is, or what it waits for.
    #[must_use]
    pub fn news(&self, drawing: u32) -> DrawingNews {
        let place = usize::try_from(drawing)
            .ok()
            .and_then(|drawing| self.drawings.get(drawing.checked_sub(1)?));
        match place {
            None | Some(DrawingPlace::Free) if self.is_queued(drawing) => DrawingNews::Queued,
            None | Some(DrawingPlace::Free) => DrawingNews::Waits(self.waiting_reason(drawing)),
            Some(DrawingPlace::Sent { node, is_lost }) => match (self.name(*node), is_lost) {
                (name, false) => DrawingNews::UnderWay(format!("{name}: planning")),
                (name, true) => DrawingNews::Waits(format!(
                    "for node {name}: it does not answer and may have started this drawing"
                )),
            },
            Some(DrawingPlace::At { node, stage, words }) => self.news_at(*node, *stage, words),
        }
    }

    fn news_at(&self, node: usize, stage: DrawingStage, words: &str) -> DrawingNews {
        let name = self.name(node);
        let is_reachable = self.nodes.get(node).is_some_and(|node| node.is_reachable);
        match stage {
            DrawingStage::Drawn => DrawingNews::Drawn(format!("{name}: {words}")),
            DrawingStage::UnderWay | DrawingStage::AwaitsPerson if !is_reachable => {
                let reason = format!(
                    "for node {name}: it has started this drawing and no longer answers ({words})"
                );
                DrawingNews::Waits(reason)
            }
            DrawingStage::UnderWay => DrawingNews::UnderWay(format!("{name}: {words}")),
            DrawingStage::AwaitsPerson | DrawingStage::LeftHalfDone | DrawingStage::WithoutInk => {
                DrawingNews::Waits(format!("for a person at node {name}: {words}"))
            }
        }
    }

    /// Returns whether a node that can draw this drawing is free, or at work on another one of the queue.
    fn is_queued(&self, drawing: u32) -> bool {
        let will_draw = |(index, node): (usize, &QueueNode)| {
            let can_draw = node.draws && !self.unable.contains_key(&(drawing, index));
            can_draw && node.is_reachable && (node.is_free() || self.has_work(index))
        };
        self.is_surveyed && self.nodes.iter().enumerate().any(will_draw)
    }

    /// Explains why no node has a drawing.
    fn waiting_reason(&self, drawing: u32) -> String {
        if !self.is_surveyed {
            let missing = self.nodes.iter().filter(|node| !node.is_reachable);
            let missing = missing.filter(|node| !node.is_excused);
            let names = missing.map(|node| format!("{} ({})", node.name, node.hindrance()));
            let names = names.collect::<Vec<_>>().join(", ");
            return format!("until every node has reported its drawings of this batch: {names}");
        }
        let drawing_nodes = self.nodes.iter().enumerate().filter(|(_, node)| node.draws);
        let reasons = drawing_nodes.map(|(index, node)| {
            let unable = self.unable.get(&(drawing, index)).map(String::as_str);
            let refusal = node.refusal.as_ref().map(|(reason, _, _)| reason.as_str());
            let reason = unable.or(refusal).unwrap_or_else(|| node.hindrance());
            format!("{}: {reason}", node.name)
        });
        reasons.collect::<Vec<_>>().join("; ")
    }

    fn name(&self, node: usize) -> &str {
        self.nodes.get(node).map_or("", |node| &node.name)
    }

    fn place_mut(&mut self, drawing: u32) -> Option<&mut DrawingPlace> {
        let index = usize::try_from(drawing).ok()?.checked_sub(1)?;
        self.drawings.get_mut(index)
    }
}

impl QueueNode {
    /// Returns a report unchanged, unless the node's journals have been replaced: then it does not tell of all its drawings.
    fn checked(&mut self, report: NodeReport) -> NodeReport {
        if let NodeReport::Held { journals, .. } = &report
            && self.journals.get_or_insert_with(|| journals.clone()) != journals
        {
            return NodeReport::Unavailable(OTHER_JOURNALS.to_owned());
        }
        report
    }

    /// Returns why it is not ready; empty if it is.
    fn hindrance(&self) -> &str {
        self.standing.as_ref().err().map_or("", String::as_str)
    }

    /// Returns whether nothing prevents the node from drawing.
    fn is_free(&self) -> bool {
        self.standing.is_ok() && self.refusal.is_none()
    }

    /// Records a node's standing. If it has changed, an earlier refusal no longer counts.
    fn set_standing(&mut self, standing: Result<(), String>) {
        if let Some((_, old_standing, reports)) = &mut self.refusal {
            *reports += 1;
            if *old_standing != standing || *reports >= ASK_AGAIN_AFTER {
                self.refusal = None;
            }
        }
        self.standing = standing;
    }
}

#[cfg(test)]
mod tests;
