//! Tests that each state of an arm has its row in the table.

#![allow(clippy::unwrap_used, reason = "a failing test may panic")]

use super::*;
use permit::ActorRank;

fn job(state: &'static str) -> JobCard {
    JobCard {
        id: "job-3".to_owned(),
        tool: "stroke".to_owned(),
        scene: "koi".to_owned(),
        state,
        ..JobCard::default()
    }
}

fn facts(state: MotionState) -> ConditionFacts {
    ConditionFacts {
        state,
        arm: "arm".to_owned(),
        ..ConditionFacts::default()
    }
}

/// Returns facts, the expected kind, and the expected command of the next step.
fn rows() -> Vec<(ConditionFacts, ConditionKind, Option<&'static str>)> {
    use ConditionKind as Kind;
    use MotionState::{Detached, Faulted, Held, Holding, Moving, Stopped, Stopping};
    let latched = |latch| ConditionFacts {
        latched: Some(latch),
        ..facts(Stopped)
    };
    let with = |state, job| ConditionFacts {
        job: Some(job),
        ..facts(state)
    };
    let stopped = latched(StopLatch::Stopped(ActorRank::Operator));
    let to_enable = ConditionFacts {
        to_enable: Some(("short".to_owned(), None)),
        ..stopped.clone()
    };
    let limp = ConditionFacts {
        is_limp: true,
        ..facts(Holding)
    };
    let withheld = ConditionFacts {
        withheld: Some("read-only"),
        ..limp.clone()
    };
    let at_rest = ConditionFacts {
        is_at_rest: true,
        ..facts(Holding)
    };
    let interrupted = |is_at_rest| ConditionFacts {
        is_interrupted: true,
        is_at_rest,
        ..facts(Holding)
    };
    let approval = JobCard {
        awaits_approval: true,
        ..job("held")
    };
    let pen = JobCard {
        waits_for: Some("pen 2 `red`".to_owned()),
        ..job("waiting_for_pen")
    };
    vec![
        (
            latched(StopLatch::Emergency(ActorRank::Operator)),
            Kind::EmergencyStop,
            Some("clear"),
        ),
        (facts(Detached), Kind::NotConnected, Some("doctor")),
        (facts(Faulted), Kind::Fault, Some("reset")),
        (
            latched(StopLatch::Hot("servo 3".to_owned())),
            Kind::Fault,
            Some("reset"),
        ),
        (facts(Stopping), Kind::Stopping, None),
        (stopped, Kind::Stopped, Some("reset")),
        (
            to_enable,
            Kind::Stopped,
            Some("enable --scene short --for 30m"),
        ),
        (
            with(Holding, approval),
            Kind::WaitsForPerson,
            Some("approve job-3"),
        ),
        (with(Holding, pen), Kind::WaitsForPerson, Some("pen job-3")),
        (with(Held, job("held")), Kind::Held, Some("continue")),
        (
            with(Holding, job("planning")),
            Kind::Planning,
            Some("watch job-3"),
        ),
        (with(Moving, job("moving")), Kind::Moving, Some("hold")),
        (limp, Kind::Limp, Some("draw FILE")),
        (withheld, Kind::Limp, None),
        (at_rest, Kind::AtRest, Some("draw FILE")),
        (facts(Holding), Kind::Standing, Some("draw FILE")),
        (interrupted(false), Kind::Standing, Some("reset")),
        (interrupted(true), Kind::AtRest, Some("draw --resume")),
    ]
}

#[test]
fn each_state_has_one_kind_and_one_next_step() {
    for (facts, kind, command) in rows() {
        let condition = facts.condition();
        let next = condition.next.as_ref().map(|next| next.command.as_str());
        assert_eq!((condition.kind, next), (kind, command), "{facts:?}");
        assert!(!condition.sentence.is_empty(), "{facts:?}");
    }
}

#[test]
fn kinds_with_different_steps_differ_in_colour_or_shape() {
    let all = rows().into_iter().map(|(facts, ..)| facts.condition());
    let all: Vec<ArmCondition> = all.collect();
    for one in &all {
        for other in &all {
            let is_alike = (one.colour, one.shape) == (other.colour, other.shape);
            assert!(!is_alike || one.kind.look() == other.kind.look(), "{one:?}");
        }
    }
    let shapes: std::collections::BTreeSet<_> = all.iter().map(|one| one.shape).collect();
    assert_eq!(shapes.len(), 10, "{shapes:?}");
}
