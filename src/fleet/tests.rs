//! Tests with simulated nodes that answer, hang, fail and come back, without a network.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Map, json};
use tokio::time::Instant;

use super::*;

/// Behaviour of each node, by name.
#[derive(Default)]
struct FakePeers {
    calls: AtomicU32,
    hangs: Mutex<bool>,
    /// Role of each call, in order.
    roles: Mutex<Vec<Option<String>>>,
}

fn answer(name: &str) -> ToolAnswer {
    let nodes = json!([{ "name": name, "this": true, "time_ms": 1_000 }, { "name": "other" }]);
    ToolAnswer {
        structured: Map::from_iter([("nodes".to_owned(), nodes)]),
        ..ToolAnswer::default()
    }
}

impl PeerTransport for FakePeers {
    fn peers(&self) -> Vec<FleetPeer> {
        ["well", "hanging", "dead", "odd"]
            .map(|name| FleetPeer {
                name: name.to_owned(),
                address: String::new(),
                tags: Vec::new(),
            })
            .to_vec()
    }

    fn send(
        &self,
        peer: &FleetPeer,
        call: OutgoingCall,
        _watch: RemoteCallWatch,
    ) -> BoxFuture<'static, Result<ToolAnswer, RemoteCallError>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.roles.lock().unwrap().push(call.hop.role);
        let hangs = *self.hangs.lock().unwrap();
        let name = peer.name.clone();
        Box::pin(async move {
            match name.as_str() {
                "hanging" if hangs => std::future::pending().await,
                "dead" => Err(RemoteCallError::Unreached("nobody listens".to_owned())),
                "odd" => Ok(ToolAnswer::default()),
                name => Ok(answer(name)),
            }
        })
    }
}

#[tokio::test]
async fn a_queue_calls_as_a_planner_whatever_its_token_may_do() {
    let peers = Arc::new(FakePeers::default());
    let fleet = Fleet::new("hub", Arc::clone(&peers) as _, policy());
    let peer = fleet.peer("well").unwrap();
    let tag = QueueTag {
        drawing: Some(1),
        ..QueueTag::reader()
    };
    fleet.ask_queue(&peer, tag.clone()).await;
    fleet.hand_out(&peer, tag, Map::new()).await;
    let roles = peers.roles.lock().unwrap();
    assert!(roles.len() >= 2);
    assert!(roles.iter().all(|role| role.as_deref() == Some("planner")));
}

#[tokio::test]
async fn two_nodes_of_one_name_are_sent_nothing_but_a_stop() {
    let peers = Arc::new(FakePeers::default());
    let fleet = Arc::new(Fleet::new("hub", Arc::clone(&peers) as _, policy()));
    fleet
        .presence()
        .replace(Some([("well".to_owned(), 2)].into()));
    let peer = fleet.peer("well").unwrap();
    let watch = RemoteCallWatch::unobserved();
    for (effect, calls) in [
        (ToolEffect::Reads, 0),
        (ToolEffect::Moves, 0),
        (ToolEffect::Stops, 1),
    ] {
        let call = OutgoingCall {
            tool: "sense".to_owned(),
            arguments: ReceivedArguments::Absent,
            hop: CallHop {
                from: "hub".to_owned(),
                called: "well".to_owned(),
                role: None,
                caller: "test".to_owned(),
                queue: None,
                order: None,
            },
        };
        let answer = fleet.forward(&peer, call, effect, &watch).await;
        assert_eq!(peers.calls.load(Ordering::SeqCst), calls, "{effect:?}");
        assert_eq!(
            answer.err() == Some(RemoteCallError::Ambiguous(2)),
            calls == 0
        );
    }
}

#[tokio::test]
async fn an_abandoned_stop_is_sent_again_and_an_abandoned_motion_is_not() {
    let patient = FleetPolicy {
        stop_within: Duration::from_secs(1),
        ..policy()
    };
    let (fleet, peers) = fleet_with(true, patient);
    let watch = RemoteCallWatch::unobserved();
    watch.cancelled.cancel();
    for (name, effect) in [("hanging", ToolEffect::Moves), ("dead", ToolEffect::Stops)] {
        let peer = fleet.peer(name).unwrap();
        let call = fleet.own_call(&peer, "stop", ReceivedArguments::Absent, "test".to_owned());
        let before = peers.calls.load(Ordering::SeqCst);
        let answer = fleet.forward(&peer, call, effect, &watch).await;
        let sent = peers.calls.load(Ordering::SeqCst) - before;
        let is_stop = effect == ToolEffect::Stops;
        let is_given_up = answer == Err(RemoteCallError::Cancelled);
        assert_eq!((sent > 1, is_given_up), (is_stop, !is_stop), "{answer:?}");
    }
    fleet.wait_for_stops().await;
}

fn policy() -> FleetPolicy {
    FleetPolicy {
        list_within: Duration::from_millis(900),
        list_cache: Duration::from_secs(3_600),
        list_keep: Duration::from_secs(3_600),
        read_within: Duration::from_millis(200),
        move_within: Duration::from_millis(400),
        stop_within: Duration::from_millis(100),
        read_retries: 2,
        retry_after: Duration::from_millis(10),
    }
}

fn fleet(hangs: bool) -> (Arc<Fleet>, Arc<FakePeers>) {
    fleet_with(hangs, policy())
}

fn fleet_with(hangs: bool, policy: FleetPolicy) -> (Arc<Fleet>, Arc<FakePeers>) {
    let peers = Arc::new(FakePeers::default());
    *peers.hangs.lock().unwrap() = hangs;
    let transport = Arc::clone(&peers) as Arc<dyn PeerTransport>;
    (Arc::new(Fleet::new("me", transport, policy)), peers)
}

fn find<'a>(list: &'a [PeerSighting], name: &str) -> &'a PeerSighting {
    list.iter().find(|one| one.peer.name == name).unwrap()
}

#[tokio::test]
async fn a_hanging_node_is_not_waited_for_twice() {
    let (fleet, _) = fleet(true);
    let began = Instant::now();
    let list = fleet.list().await;
    let first = began.elapsed();
    assert!(first >= Duration::from_millis(900), "{first:?}");
    assert!(find(&list, "well").unreached.is_none());
    let hanging = find(&list, "hanging").unreached.clone().unwrap();
    assert!(hanging.contains("answer within"), "{hanging}");
    assert!(find(&list, "hanging").report.is_none());
    let dead = find(&list, "dead").unreached.clone().unwrap();
    assert!(dead.contains("nobody listens"), "{dead}");
    let odd = find(&list, "odd").unreached.clone().unwrap();
    assert!(odd.contains("Steadyhand node"), "{odd}");
    let began = Instant::now();
    fleet.list().await;
    let second = began.elapsed();
    assert!(second < first / 2, "{second:?} after {first:?}");
}

#[tokio::test]
async fn an_old_report_is_shown_with_its_age_and_not_as_new() {
    let (keep, cache) = (Duration::from_millis(1_500), Duration::ZERO);
    let policy = FleetPolicy {
        list_keep: keep,
        list_cache: cache,
        ..policy()
    };
    let (fleet, peers) = fleet_with(false, policy);
    let list = fleet.list().await;
    assert!(find(&list, "hanging").unreached.is_none());
    assert!(find(&list, "hanging").offset.unwrap().ms < 0.0);
    *peers.hangs.lock().unwrap() = true;
    let list = fleet.list().await;
    let hanging = find(&list, "hanging");
    assert!(hanging.unreached.is_some() && hanging.report.is_some());
    assert!(hanging.age.unwrap() >= Duration::from_millis(900));
    base::task::pause(keep).await;
    assert!(find(&fleet.list().await, "hanging").report.is_none());
}

#[tokio::test]
async fn a_node_with_a_recent_report_is_not_asked_again() {
    let (fleet, peers) = fleet(false);
    fleet.list().await;
    let before = peers.calls.load(Ordering::SeqCst);
    let again = fleet.list().await;
    // The two nodes that failed are asked again.
    assert_eq!(peers.calls.load(Ordering::SeqCst), before + 2);
    assert!(find(&again, "well").unreached.is_none());
}

fn sense() -> OutgoingCall {
    OutgoingCall {
        tool: "sense".to_owned(),
        arguments: ReceivedArguments::Absent,
        hop: CallHop {
            from: "me".to_owned(),
            called: "dead".to_owned(),
            role: None,
            caller: "test".to_owned(),
            queue: None,
            order: None,
        },
    }
}

#[tokio::test]
async fn what_looks_is_sent_again_and_what_moves_is_not() {
    for (effect, calls) in [(ToolEffect::Reads, 3), (ToolEffect::Moves, 1)] {
        let (fleet, peers) = fleet(false);
        let dead = fleet.peer("dead").unwrap();
        let failed = fleet
            .forward(&dead, sense(), effect, &RemoteCallWatch::unobserved())
            .await;
        assert!(matches!(failed, Err(RemoteCallError::Unreached(_))));
        assert_eq!(peers.calls.load(Ordering::SeqCst), calls, "{effect:?}");
    }
}

/// A node that comes back late in the time of a stop is still told.
#[tokio::test]
async fn a_stop_is_sent_again_until_its_time_is_over() {
    let (fleet, peers) = fleet_with(
        false,
        FleetPolicy {
            stop_within: Duration::from_secs(4),
            retry_after: Duration::from_millis(100),
            ..policy()
        },
    );
    let dead = fleet.peer("dead").unwrap();
    let began = Instant::now();
    let nobody = RemoteCallWatch::unobserved();
    let failed = fleet.forward(&dead, sense(), ToolEffect::Stops, &nobody);
    assert!(matches!(failed.await, Err(RemoteCallError::Unreached(_))));
    let took = began.elapsed();
    assert!(took > Duration::from_millis(3_500), "{took:?}");
    assert!(peers.calls.load(Ordering::SeqCst) > 10);
}

#[tokio::test]
async fn every_kind_of_call_has_its_limit() {
    let (fleet, _) = fleet(true);
    let hanging = fleet.peer("hanging").unwrap();
    for (effect, ms) in [
        (ToolEffect::Reads, 200),
        (ToolEffect::Moves, 400),
        (ToolEffect::Stops, 100),
    ] {
        let failed = fleet
            .forward(&hanging, sense(), effect, &RemoteCallWatch::unobserved())
            .await;
        assert_eq!(
            failed,
            Err(RemoteCallError::Silent(Duration::from_millis(ms)))
        );
    }
}

#[tokio::test]
async fn a_caller_that_gives_up_is_answered_at_once() {
    let (fleet, _) = fleet(true);
    let hanging = fleet.peer("hanging").unwrap();
    let watch = RemoteCallWatch::unobserved();
    watch.cancelled.cancel();
    let failed = fleet
        .forward(&hanging, sense(), ToolEffect::Moves, &watch)
        .await;
    assert_eq!(failed, Err(RemoteCallError::Cancelled));
}
