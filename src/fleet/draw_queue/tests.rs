//! Simulates programs, nodes and a network that fail in every way: no drawing is begun twice.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use call::QueueTag;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use tokio::time::Instant;

use super::*;
use crate::queue_desk::QueueDesk;

const NODES: usize = 3;
const DRAWINGS: u32 = 5;

/// A node. Its journal survives a restart, its queue desk does not.
#[derive(Default)]
struct FakeNode {
    desk: Arc<QueueDesk>,
    /// Drawings that were begun, in order; drawn one after the other.
    journal: Vec<(u32, DrawingStage)>,
}

impl FakeNode {
    fn report(&self, tag: &QueueTag, now: Instant) -> NodeReport {
        match self.desk.renew(tag, now) {
            Err(error) => NodeReport::Unavailable(error.to_string()),
            Ok(grant) => NodeReport::Held {
                grant,
                journals: "own".to_owned(),
                generation: tag.generation,
                drawings: self
                    .journal
                    .iter()
                    .map(|(drawing, stage)| ReportedDrawing {
                        drawing: *drawing,
                        stage: *stage,
                        words: String::new(),
                    })
                    .collect(),
                standing: Ok(()),
            },
        }
    }

    fn begin(&mut self, tag: &QueueTag, now: Instant) -> HandoutOutcome {
        let known: BTreeSet<u32> = self.journal.iter().map(|(drawing, _)| *drawing).collect();
        let drawing = tag.drawing.unwrap();
        match self.desk.begin(tag, now, |_| known.contains(&drawing)) {
            Ok(_) => {
                self.journal.push((drawing, DrawingStage::UnderWay));
                HandoutOutcome::Taken(String::new())
            }
            Err(error) => HandoutOutcome::NotNow(error.to_string()),
        }
    }

    fn draw_on(&mut self, breaks: bool) {
        let under_way = self
            .journal
            .iter_mut()
            .find(|(_, stage)| *stage == DrawingStage::UnderWay);
        if let Some((_, stage)) = under_way {
            *stage = match breaks {
                true => DrawingStage::LeftHalfDone,
                false => DrawingStage::Drawn,
            };
        }
    }
}

struct Program {
    name: String,
    queue: DrawQueue,
}

impl Program {
    fn new(name: String) -> Self {
        let nodes = (0..NODES).map(|index| (format!("node-{index}"), true, false));
        Self {
            name,
            queue: DrawQueue::new(nodes, DRAWINGS),
        }
    }

    fn tag(&self, node: usize, drawing: Option<u32>) -> QueueTag {
        QueueTag {
            batch: "b".to_owned(),
            holder: self.name.clone(),
            generation: self.queue.generation(node),
            drawing,
            grant: self.queue.grant(node),
        }
    }
}

/// Something that happens.
#[derive(Clone, Debug)]
enum Event {
    /// A program asks the nodes that it can reach, and hands out. Answers of the nodes in `deaf` are lost, and calls to those in
    /// `slow` arrive later. The nodes in `mute` receive its request, but their reports are lost.
    Round {
        program: usize,
        cut: u8,
        deaf: u8,
        slow: u8,
        mute: u8,
    },
    /// A program gives up a call that is still on the way.
    GivesUp(usize),
    /// A call that is on the way arrives. Its answer counts if the program still waits for it.
    Arrives(usize),
    /// Time passes.
    Passes(u64),
    /// A node's arm comes to the end of its drawing.
    Draws { node: usize, breaks: bool },
    /// A node is killed and started again.
    NodeRestarts(usize),
    /// A program is killed, and started again by a person.
    ProgramRestarts(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0..2_usize, any::<[u8; 4]>(), any::<[bool; 4]>()).prop_map(
            |(program, masks, is_used)| {
                let [cut, deaf, slow, mute] =
                    std::array::from_fn(|at| if is_used[at] { masks[at] } else { 0 });
                Event::Round { program, cut, deaf, slow, mute }
            }
        ),
        1 => any::<usize>().prop_map(Event::GivesUp),
        2 => any::<usize>().prop_map(Event::Arrives),
        3 => (1..40_u64).prop_map(Event::Passes),
        4 => (0..NODES, prop::bool::weighted(0.2))
            .prop_map(|(node, breaks)| Event::Draws { node, breaks }),
        1 => (0..NODES).prop_map(Event::NodeRestarts),
        1 => (0..2_usize).prop_map(Event::ProgramRestarts),
    ]
}

/// A call that hands a drawing out, between a program and a node.
struct CallOnTheWay {
    program: usize,
    handout: Handout,
    tag: QueueTag,
    is_awaited: bool,
}

struct World {
    now: Instant,
    nodes: Vec<FakeNode>,
    programs: Vec<Program>,
    on_the_way: Vec<CallOnTheWay>,
    started: u32,
}

impl World {
    fn new() -> Self {
        Self {
            now: Instant::now(),
            nodes: (0..NODES).map(|_| FakeNode::default()).collect(),
            programs: ["p0", "q0"]
                .map(|name| Program::new(name.to_owned()))
                .into(),
            on_the_way: Vec::new(),
            started: 0,
        }
    }

    fn apply(&mut self, event: &Event) {
        match *event {
            Event::Round {
                program,
                cut,
                deaf,
                slow,
                mute,
            } => self.round(program, [cut, deaf, slow, mute]),
            Event::GivesUp(index) => self.give_up_call(index),
            Event::Arrives(index) if !self.on_the_way.is_empty() => {
                let call = self.on_the_way.remove(index % self.on_the_way.len());
                let outcome = self.nodes[call.handout.node].begin(&call.tag, self.now);
                let program = &mut self.programs[call.program];
                if call.is_awaited && program.name == call.tag.holder {
                    program.queue.answered(call.handout, outcome);
                }
            }
            Event::Arrives(_) => {}
            Event::Passes(seconds) => self.now += Duration::from_secs(seconds),
            Event::Draws { node, breaks } => self.nodes[node].draw_on(breaks),
            Event::NodeRestarts(node) => self.nodes[node].desk = Arc::default(),
            Event::ProgramRestarts(program) => {
                self.started += 1;
                self.programs[program] = Program::new(format!("p{program}-{}", self.started));
            }
        }
    }

    fn give_up_call(&mut self, index: usize) {
        let mut awaited: Vec<_> = self
            .on_the_way
            .iter_mut()
            .filter(|call| call.is_awaited)
            .collect();
        if awaited.is_empty() {
            return;
        }
        let call = awaited.remove(index % awaited.len());
        call.is_awaited = false;
        let program = &mut self.programs[call.program];
        if program.name == call.tag.holder {
            program.queue.answered(call.handout, HandoutOutcome::Lost);
        }
    }

    fn round(&mut self, number: usize, [cut, deaf, slow, mute]: [u8; 4]) {
        let is_in = |mask: u8, node: usize| mask & (1 << node) != 0;
        let program = &mut self.programs[number];
        let reports = (0..NODES).map(|node| {
            if is_in(cut, node) {
                return NodeReport::Unavailable("cut".to_owned());
            }
            let report = self.nodes[node].report(&program.tag(node, None), self.now);
            match is_in(mute, node) {
                true => NodeReport::Unavailable("mute".to_owned()),
                false => report,
            }
        });
        program.queue.apply_reports(reports.collect());
        for handout in program.queue.hand_out() {
            let tag = program.tag(handout.node, Some(handout.drawing));
            if is_in(slow, handout.node) {
                self.on_the_way.push(CallOnTheWay {
                    program: number,
                    handout,
                    tag,
                    is_awaited: true,
                });
                continue;
            }
            let outcome = self.nodes[handout.node].begin(&tag, self.now);
            let outcome = match is_in(deaf, handout.node) {
                true => HandoutOutcome::Lost,
                false => outcome,
            };
            program.queue.answered(handout, outcome);
        }
    }

    fn begun_twice(&self) -> Option<u32> {
        let mut seen = BTreeSet::new();
        let mut begun = self.nodes.iter().flat_map(|node| &node.journal);
        begun
            .find(|(drawing, _)| !seen.insert(*drawing))
            .map(|(drawing, _)| *drawing)
    }
}

proptest! {
    #![proptest_config(Config { cases: 2_000, rng_seed: RngSeed::Fixed(26), ..Config::default() })]

    #[test]
    fn no_drawing_is_begun_twice_whatever_fails(events in prop::collection::vec(event(), 1..120)) {
        let mut world = World::new();
        for event in &events {
            world.apply(event);
            prop_assert_eq!(world.begun_twice(), None, "after {:?}", event);
        }
        // Once nothing fails any more, every drawing is drawn or waits for a person at a named node.
        while !world.on_the_way.is_empty() {
            world.apply(&Event::Arrives(0));
        }
        world.apply(&Event::Passes(60));
        for _ in 0..60 {
            world.round(0, [0; 4]);
            (0..NODES).for_each(|node| world.nodes[node].draw_on(false));
            world.apply(&Event::Passes(2));
        }
        prop_assert_eq!(world.begun_twice(), None);
        for drawing in 1..=DRAWINGS {
            match world.programs[0].queue.news(drawing) {
                DrawingNews::Drawn(_) => {}
                DrawingNews::Waits(reason) => prop_assert!(reason.contains("at node"), "{}", reason),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}

fn held(drawings: Vec<ReportedDrawing>) -> NodeReport {
    NodeReport::Held {
        grant: 1,
        journals: "own".to_owned(),
        generation: 0,
        drawings,
        standing: Ok(()),
    }
}

fn two_nodes(drawings: u32) -> DrawQueue {
    let nodes = ["left", "right"].map(|name| (name.to_owned(), true, false));
    DrawQueue::new(nodes, drawings)
}

#[test]
fn nothing_is_handed_out_before_every_node_was_asked() {
    let mut queue = two_nodes(1);
    queue.apply_reports(vec![
        held(Vec::new()),
        NodeReport::Unavailable("asleep".to_owned()),
    ]);
    assert_eq!(queue.hand_out(), []);
    assert!(queue.only_waits());
    let waits = "until every node has reported its drawings of this batch: right (asleep)";
    assert_eq!(queue.news(1), DrawingNews::Waits(waits.to_owned()));
    queue.apply_reports(vec![held(Vec::new()), held(Vec::new())]);
    assert_eq!(
        queue.hand_out(),
        [Handout {
            drawing: 1,
            node: 0
        }]
    );
}

#[test]
fn a_node_that_cannot_draw_a_drawing_leaves_it_to_another() {
    let mut queue = two_nodes(1);
    queue.apply_reports(vec![held(Vec::new()), held(Vec::new())]);
    for node in 0..2 {
        let handout = Handout { drawing: 1, node };
        assert_eq!(queue.hand_out(), [handout]);
        queue.answered(handout, HandoutOutcome::CannotDraw("too large".to_owned()));
    }
    assert_eq!(queue.hand_out(), []);
    assert!(queue.only_waits() && !queue.is_drawn());
    let waits = "left: too large; right: too large".to_owned();
    assert_eq!(queue.news(1), DrawingNews::Waits(waits));
}

#[test]
fn a_node_that_went_with_a_drawing_keeps_it() {
    let mut queue = two_nodes(2);
    queue.apply_reports(vec![held(Vec::new()), held(Vec::new())]);
    for handout in queue.hand_out() {
        queue.answered(handout, HandoutOutcome::Taken("job-1".to_owned()));
    }
    queue.apply_reports(vec![
        NodeReport::Unavailable("cut".to_owned()),
        held(vec![ReportedDrawing {
            drawing: 2,
            stage: DrawingStage::Drawn,
            words: "job-1".to_owned(),
        }]),
    ]);
    assert_eq!(queue.hand_out(), []);
    assert!(queue.only_waits());
    let waits =
        "for node left: it has started this drawing and no longer answers (job-1)".to_owned();
    assert_eq!(queue.news(1), DrawingNews::Waits(waits));
    assert_eq!(queue.news(2), DrawingNews::Drawn("right: job-1".to_owned()));
}

#[test]
fn a_report_from_before_a_loss_does_not_free_what_was_lost() {
    let mut queue = two_nodes(1);
    queue.apply_reports(vec![held(Vec::new()), held(Vec::new())]);
    let handout = Handout {
        drawing: 1,
        node: 0,
    };
    assert_eq!(queue.hand_out(), [handout]);
    queue.answered(handout, HandoutOutcome::Lost);
    queue.apply_reports(vec![held(Vec::new()), held(Vec::new())]);
    assert_eq!(queue.hand_out(), [], "the request was sent before the loss");
    let later = NodeReport::Held {
        grant: 1,
        journals: "own".to_owned(),
        generation: queue.generation(0),
        drawings: Vec::new(),
        standing: Ok(()),
    };
    queue.apply_reports(vec![later, held(Vec::new())]);
    assert_eq!(queue.hand_out(), [handout]);
}

#[test]
fn journals_that_were_replaced_free_no_drawing() {
    let mut queue = two_nodes(2);
    queue.apply_reports(vec![held(Vec::new()), held(Vec::new())]);
    for handout in queue.hand_out() {
        let outcome = match handout.node {
            0 => HandoutOutcome::Lost,
            _ => HandoutOutcome::Taken("job-1".to_owned()),
        };
        queue.answered(handout, outcome);
    }
    let another = || NodeReport::Held {
        grant: 2,
        journals: "another".to_owned(),
        generation: 1,
        drawings: Vec::new(),
        standing: Ok(()),
    };
    for _ in 0..3 {
        queue.apply_reports(vec![another(), another()]);
        assert_eq!(queue.hand_out(), []);
    }
    for drawing in 1..=2 {
        let DrawingNews::Waits(reason) = queue.news(drawing) else {
            unreachable!("{:?}", queue.news(drawing));
        };
        assert!(reason.contains("answer"), "{reason}");
    }
}

#[test]
fn ink_that_a_node_has_forgotten_is_not_drawn_anew() {
    for stage in [DrawingStage::Drawn, DrawingStage::LeftHalfDone] {
        let mut queue = two_nodes(1);
        let reported = ReportedDrawing {
            drawing: 1,
            stage,
            words: "job-1".to_owned(),
        };
        queue.apply_reports(vec![held(vec![reported]), held(Vec::new())]);
        queue.apply_reports(vec![held(Vec::new()), held(Vec::new())]);
        assert_eq!(queue.hand_out(), [], "{stage:?}");
    }
}
