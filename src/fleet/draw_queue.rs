//! A queue of drawings for several nodes, as the program that hands them out knows it: what each node has, what is on the way,
//! what is left, and for whom that waits.
//!
//! Nothing of it is kept on a disk: the nodes' journals are. A drawing of which no node tells is handed out only by a program
//! that has asked every node, and holds the batch since on one of them at least ([`super::queue_desk`]).

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

/// Reports after which a node that refused a drawing for now is asked again, though it says the same of itself.
const ASK_AGAIN_AFTER: u32 = 15;

/// Said of a node whose state folder was replaced while the queue ran.
const OTHER_JOURNALS: &str = "its journals are not those that it had, so what it has drawn of this batch is forgotten there: look at its sheet, and begin the queue anew without what is on it";

/// A queue of drawings, counted from 1.
#[derive(Debug)]
pub struct DrawQueue {
    nodes: Vec<QueueNode>,
    drawings: Vec<DrawingPlace>,
    /// Reason why a node cannot draw a drawing, by drawing and node.
    unable: BTreeMap<(u32, usize), String>,
    /// Leases by which this program held the batch when every node was asked, by node: while one of them lasts, no other program
    /// can have asked them all.
    anchors: HashMap<usize, u64>,
    is_surveyed: bool,
}

/// A node, as the queue knows it.
#[derive(Debug)]
struct QueueNode {
    name: String,
    /// True if drawings are handed to it.
    draws: bool,
    /// True if a person says that it has none of these drawings.
    is_excused: bool,
    /// Raised when a call to it was lost.
    generation: u32,
    /// Number of the lease there, by its last report.
    grant: u64,
    /// The journals that it has, by its first report.
    journals: Option<String>,
    /// Its last report, without its drawings: ready, or why not.
    standing: Result<(), String>,
    /// True if the last report came from it.
    is_heard: bool,
    /// A refusal for now, with its standing then and the reports since.
    refusal: Option<(String, Result<(), String>, u32)>,
}

/// Report of one node.
#[derive(Clone, Debug)]
pub enum NodeReport {
    /// It did not answer, or does not let this program hold the batch.
    Unheard(String),
    /// It lets this program hold the batch.
    Held {
        /// Number of the lease: another one than before where there was a gap.
        grant: u64,
        /// The key beside its journals.
        journals: String,
        /// Number that the question carried.
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
    /// A job of it is under way, or about to be.
    UnderWay,
    /// Its job waits for a person, and goes on then.
    AwaitsPerson,
    /// It is on the sheet, all of it.
    Drawn,
    /// Its job broke off with ink on the sheet: a person goes on with it there.
    LeftHalfDone,
    /// Its job ended before any ink.
    WithoutInk,
}

impl DrawingStage {
    /// Returns whether a job of it has not ended.
    fn is_of_job(self) -> bool {
        matches!(self, Self::UnderWay | Self::AwaitsPerson)
    }
}

/// The place of a drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
enum DrawingPlace {
    /// No node has it.
    Free,
    /// The call that hands it out is on the way; `is_lost` if it broke and the node may have heard it.
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
    /// The node has a job of it: its next report says more.
    Taken(String),
    /// It cannot draw this drawing.
    CannotDraw(String),
    /// It draws nothing now.
    NotNow(String),
    /// The answer was lost: the node may have begun.
    Lost,
}

/// State of a drawing, as the queue reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrawingNews {
    /// On a sheet, all of it.
    Drawn(String),
    /// Under way.
    UnderWay(String),
    /// A node that can draw it comes to it.
    Queued,
    /// It waits for a node or for a person.
    Waits(String),
}

impl DrawQueue {
    /// Begins with nothing known. `nodes` are all that may have a drawing: each by its name, with whether drawings are handed
    /// to it and whether a person says that it has none.
    #[must_use]
    pub fn new(nodes: impl IntoIterator<Item = (String, bool, bool)>, drawings: u32) -> Self {
        let node = |(name, draws, is_excused)| QueueNode {
            name,
            draws,
            is_excused,
            generation: 0,
            grant: 0,
            journals: None,
            standing: Err("not asked yet".to_owned()),
            is_heard: false,
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

    /// Takes one report of every node, in their order.
    pub fn hear(&mut self, reports: Vec<NodeReport>) {
        let mut all_held = true;
        let mut is_anchored = false;
        for (index, report) in reports.into_iter().enumerate() {
            let Some(node) = self.nodes.get_mut(index) else {
                continue;
            };
            match node.believed(report) {
                NodeReport::Unheard(why) => {
                    (node.standing, node.is_heard) = (Err(why), false);
                    all_held &= node.is_excused;
                }
                NodeReport::Held {
                    grant,
                    generation,
                    drawings,
                    standing,
                    ..
                } => {
                    (node.is_heard, node.grant) = (true, grant);
                    node.hear_standing(standing);
                    is_anchored |= self.anchors.get(&index) == Some(&grant);
                    let is_current = generation == node.generation;
                    self.hear_drawings(index, is_current, drawings);
                }
            }
        }
        if all_held {
            let heard = self.nodes.iter().enumerate();
            let heard = heard.filter(|(_, node)| node.is_heard);
            self.anchors = heard.map(|(index, node)| (index, node.grant)).collect();
        }
        self.is_surveyed = all_held || is_anchored;
    }

    fn hear_drawings(&mut self, from: usize, is_current: bool, told: Vec<ReportedDrawing>) {
        for place in &mut self.drawings {
            let was_there = match place {
                // With ink on the sheet it stays where it is, whatever that node has forgotten since.
                DrawingPlace::At { node, stage, .. } => *node == from && stage.is_of_job(),
                // What was asked before the node refuses a lost call proves nothing.
                DrawingPlace::Sent { node, is_lost } => *node == from && *is_lost && is_current,
                DrawingPlace::Free => false,
            };
            if was_there {
                *place = DrawingPlace::Free;
            }
        }
        for one in told {
            let place = self.place_mut(one.drawing);
            // A job without ink holds no drawing: another node may have it.
            let Some(place) = place.filter(|_| one.stage != DrawingStage::WithoutInk) else {
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
                    stage: one.stage,
                    words: one.words,
                };
            }
        }
    }

    /// Picks a drawing for each node that is free to draw. Each is to be sent, and its outcome told by [`Self::answered`].
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
        let is_free = node.draws && node.is_heard && node.is_free() && !self.has_work(index);
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
            DrawingPlace::At { node, stage, .. } => *node == index && stage.is_of_job(),
            DrawingPlace::Free => false,
        })
    }

    /// Takes what came of a drawing that was handed out.
    pub fn answered(&mut self, handout: Handout, outcome: HandoutOutcome) {
        let Handout { drawing, node } = handout;
        let place = match outcome {
            HandoutOutcome::Taken(words) => DrawingPlace::At {
                node,
                stage: DrawingStage::UnderWay,
                words,
            },
            HandoutOutcome::CannotDraw(why) => {
                self.unable.insert((drawing, node), why);
                DrawingPlace::Free
            }
            HandoutOutcome::NotNow(why) => {
                if let Some(node) = self.nodes.get_mut(node) {
                    node.refusal = Some((why, node.standing.clone(), 0));
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
        // A report may have come before the answer.
        if let Some(known @ DrawingPlace::Sent { .. }) = self.place_mut(drawing) {
            *known = place;
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

    /// The numbers of all drawings.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        1..=u32::try_from(self.drawings.len()).unwrap_or(u32::MAX)
    }

    /// Returns whether nothing is under way, and nothing is left that a node could be given now.
    #[must_use]
    pub fn only_waits(&self) -> bool {
        let is_under_way = |drawing| matches!(self.news(drawing), DrawingNews::UnderWay(_));
        !self.numbers().any(is_under_way)
            && (0..self.nodes.len()).all(|node| self.drawing_for(node).is_none())
    }

    /// Says where a drawing, counted from 1, is, or for whom it waits.
    #[must_use]
    pub fn news(&self, drawing: u32) -> DrawingNews {
        let place = usize::try_from(drawing)
            .ok()
            .and_then(|drawing| self.drawings.get(drawing.checked_sub(1)?));
        match place {
            None | Some(DrawingPlace::Free) if self.comes_to(drawing) => DrawingNews::Queued,
            None | Some(DrawingPlace::Free) => DrawingNews::Waits(self.why_free(drawing)),
            Some(DrawingPlace::Sent { node, is_lost }) => match (self.name(*node), is_lost) {
                (name, false) => DrawingNews::UnderWay(format!("{name}: planning")),
                (name, true) => DrawingNews::Waits(format!(
                    "for node {name}, which may have begun it and does not answer"
                )),
            },
            Some(DrawingPlace::At { node, stage, words }) => self.news_at(*node, *stage, words),
        }
    }

    fn news_at(&self, node: usize, stage: DrawingStage, words: &str) -> DrawingNews {
        let name = self.name(node);
        let is_heard = self.nodes.get(node).is_some_and(|node| node.is_heard);
        match stage {
            DrawingStage::Drawn => DrawingNews::Drawn(format!("{name}: {words}")),
            DrawingStage::UnderWay | DrawingStage::AwaitsPerson if !is_heard => {
                let why =
                    format!("for node {name}, which has begun it and does not answer ({words})");
                DrawingNews::Waits(why)
            }
            DrawingStage::UnderWay => DrawingNews::UnderWay(format!("{name}: {words}")),
            DrawingStage::AwaitsPerson | DrawingStage::LeftHalfDone | DrawingStage::WithoutInk => {
                DrawingNews::Waits(format!("for a person at node {name}: {words}"))
            }
        }
    }

    /// Returns whether a node that may be given this drawing is free, or at work on another of the queue.
    fn comes_to(&self, drawing: u32) -> bool {
        let comes = |(index, node): (usize, &QueueNode)| {
            let may = node.draws && !self.unable.contains_key(&(drawing, index));
            may && node.is_heard && (node.is_free() || self.has_work(index))
        };
        self.is_surveyed && self.nodes.iter().enumerate().any(comes)
    }

    /// Says why no node has a drawing.
    fn why_free(&self, drawing: u32) -> String {
        if !self.is_surveyed {
            let unheard = self.nodes.iter().filter(|node| !node.is_heard);
            let unheard = unheard.filter(|node| !node.is_excused);
            let named = unheard.map(|node| format!("{} ({})", node.name, node.why_not()));
            let named = named.collect::<Vec<_>>().join(", ");
            return format!("until every node has said what it has of this batch: {named}");
        }
        let takers = self.nodes.iter().enumerate().filter(|(_, node)| node.draws);
        let why = takers.map(|(index, node)| {
            let unable = self.unable.get(&(drawing, index)).map(String::as_str);
            let refusal = node.refusal.as_ref().map(|(why, _, _)| why.as_str());
            let why = unable.or(refusal).unwrap_or_else(|| node.why_not());
            format!("{}: {why}", node.name)
        });
        why.collect::<Vec<_>>().join("; ")
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
    /// Returns a report as it came, unless it is of other journals than those that the node had: what those tell of is not known then.
    fn believed(&mut self, report: NodeReport) -> NodeReport {
        if let NodeReport::Held { journals, .. } = &report
            && self.journals.get_or_insert_with(|| journals.clone()) != journals
        {
            return NodeReport::Unheard(OTHER_JOURNALS.to_owned());
        }
        report
    }

    /// Returns why it is not ready; empty if it is.
    fn why_not(&self) -> &str {
        self.standing.as_ref().err().map_or("", String::as_str)
    }

    /// Returns whether nothing at the node stands in the way of a drawing.
    fn is_free(&self) -> bool {
        self.standing.is_ok() && self.refusal.is_none()
    }

    /// Takes what a node says of itself; where that is news, an earlier refusal no longer counts.
    fn hear_standing(&mut self, standing: Result<(), String>) {
        if let Some((_, then, reports)) = &mut self.refusal {
            *reports += 1;
            if *then != standing || *reports >= ASK_AGAIN_AFTER {
                self.refusal = None;
            }
        }
        self.standing = standing;
    }
}

#[cfg(test)]
mod tests;
