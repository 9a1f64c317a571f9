//! What users' arms suffer from, done to a simulated one in the middle of a stroke, and what came of
//! it; printed as `docs/faults.md`.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failing test may panic"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use firmware_protocol::Message;
use steadyhand::driver::BusCounts;
use steadyhand::motion::{Motion, Outcome};
use steadyhand::permit::{Denied, Latch, Who};
use steadyhand::sim::Fault;
use steadyhand::units::Joints;

mod far_end;

use far_end::{Family, Hands, Rig, Script};

/// A fault of the table.
struct Row {
    /// As the table numbers it; several rows may be one fault.
    number: &'static str,
    /// What users meet.
    meets: &'static str,
    cases: Vec<Case>,
}

/// A fault as it is done to one family.
struct Case {
    family: Family,
    /// What is done, in words.
    done: &'static str,
    /// Before the port is opened.
    before: Vec<Fault>,
    /// In the middle of the stroke.
    during: Option<Script>,
    /// Takes the fault away again.
    mend: Vec<Fault>,
    want: Want,
    /// Whether the lines are so long that a joint that stays behind is far behind.
    long: bool,
}

/// What must come of it.
enum Want {
    /// The stroke is drawn, and the bus counted this.
    Drawn(&'static str, fn(&BusCounts) -> u64),
    /// The stroke is drawn, and a warning says this.
    Warned(&'static str),
    /// A fault within so many milliseconds, whose words name all of these.
    Faulted(u64, &'static [&'static str]),
    /// Refused before anything moves, in words that name all of these.
    Refused(&'static [&'static str]),
    /// Torque and place of an arm that is found energised stay as they are.
    Untouched,
}

/// Family, what was done, what came of it.
type Done = (Family, &'static str, Found);

/// What came of it, for the page.
struct Found {
    short: String,
    words: Option<String>,
}

fn once(mut what: impl FnMut(&mut Hands<'_>) + Send + 'static) -> Option<Script> {
    Some(Box::new(move |number, hands| {
        if number == 0 {
            what(hands);
        }
    }))
}

/// The fault from the middle of the stroke on.
fn from_then(fault: Fault) -> Option<Script> {
    once(move |hands| hands.sim.break_it(fault.clone()))
}

fn case(family: Family, done: &'static str, during: Option<Script>, want: Want) -> Case {
    Case {
        family,
        done,
        before: Vec::new(),
        during,
        mend: Vec::new(),
        want,
        long: false,
    }
}

fn before(family: Family, done: &'static str, fault: &[Fault], want: Want) -> Case {
    Case {
        before: fault.to_vec(),
        ..case(family, done, None, want)
    }
}

impl Case {
    fn mended(mut self, by: &[Fault]) -> Self {
        self.mend = by.to_vec();
        self
    }

    fn long(self) -> Self {
        Self { long: true, ..self }
    }
}

fn each(of: impl Fn(Family) -> Case) -> Vec<Case> {
    Family::ALL.into_iter().map(of).collect()
}

fn retries(counts: &BusCounts) -> u64 {
    counts.servos.iter().map(|servo| servo.retries).sum()
}

fn corrupt(counts: &BusCounts) -> u64 {
    counts.corrupt
}

fn foreign(counts: &BusCounts) -> u64 {
    counts.foreign
}

fn echoes(counts: &BusCounts) -> u64 {
    counts.echoes
}

fn poke(id: u8, address: u16, value: u8) -> Fault {
    Fault::Register { id, address, value }
}

/// Three degrees are gone through in a second and a half; 300 ms of that are stalled.
fn obstacle(family: Family, names: &'static [&'static str]) -> Case {
    let case = case(
        family,
        "the first joint cannot pass where it is",
        block_where_it_goes(),
        Want::Faulted(1500, names),
    );
    let gone = Fault::Block {
        joint: 0,
        at_rad: None,
    };
    case.mended(&[gone]).long()
}

/// An obstacle right before the first joint, on the side to which it turns.
fn block_where_it_goes() -> Option<Script> {
    let mut before = None;
    Some(Box::new(move |number, hands| {
        let Some(now) = hands.sim.truth().first().copied() else {
            return;
        };
        let from: f64 = *before.get_or_insert(now);
        if number == 10 {
            let at_rad = Some(now + 1e-4_f64.copysign(now - from));
            hands.sim.break_it(Fault::Block { joint: 0, at_rad });
        }
    }))
}

/// Noise of the same bytes with every frame.
fn noise(bytes: &'static [u8]) -> Option<Script> {
    Some(Box::new(move |_, hands| {
        hands.sim.break_it(Fault::Noise(bytes.to_vec()));
    }))
}

/// The second joint's servo, by name.
fn second(family: Family) -> &'static [&'static str] {
    match family {
        Family::Sts => &["servo 2 (shoulder_lift)"],
        Family::Dxl2 => &["servo 2 (shoulder)"],
        Family::Firmware => &["shoulder_lift"],
    }
}

fn rows() -> Vec<Row> {
    let mut rows = wire_rows();
    rows.extend(servo_rows());
    rows.extend(setup_rows());
    rows.extend(host_rows());
    for (number, case) in controller_cases() {
        let row = rows.iter_mut().find(|row| row.number == number);
        row.unwrap().cases.push(case);
    }
    rows.sort_by_key(|row| row.number[1..].parse::<u32>().unwrap());
    rows
}

/// Bytes that are lost, damaged or not ours.
fn wire_rows() -> Vec<Row> {
    let row = |number, meets, cases| Row {
        number,
        meets,
        cases,
    };
    vec![
        row(
            "F1",
            "a reply is missing now and then",
            each(|family| {
                let want = Want::Drawn("replies asked for again", retries);
                case(
                    family,
                    "5 % of the replies are lost",
                    from_then(Fault::DropReplies(0.05)),
                    want,
                )
            }),
        ),
        row(
            "F2",
            "a reply is damaged",
            each(|family| {
                let fault = Fault::CorruptReplies {
                    share: 0.05,
                    bits: 2,
                };
                let want = Want::Drawn("wrong checksums dropped", corrupt);
                case(
                    family,
                    "two bits are flipped in 5 % of the replies",
                    from_then(fault),
                    want,
                )
            }),
        ),
        row(
            "F4",
            "two servos with one id",
            each(|family| {
                let want = Want::Faulted(200, second(family));
                case(
                    family,
                    "a second servo 2 speaks over the first",
                    from_then(Fault::Duplicate(2)),
                    want,
                )
            }),
        ),
        row(
            "F9",
            "an acknowledgement that nobody read comes late",
            each(|family| {
                let bytes: &[u8] = match family {
                    Family::Sts => &[0xFF, 0xFF, 3, 2, 0, 0xFA],
                    _ => &[0xFF, 0xFF, 0xFD, 0, 3, 4, 0, 0x55, 0, 0x52, 0x8C],
                };
                let want = Want::Drawn("foreign frames dropped", foreign);
                case(
                    family,
                    "an acknowledgement of servo 3 with every cycle",
                    noise(bytes),
                    want,
                )
            }),
        ),
        row(
            "F14",
            "an adapter that holds bytes for 16 ms",
            each(|family| {
                let late = Fault::LateReplies {
                    share: 1.0,
                    by: Duration::from_millis(16),
                };
                let want = Want::Warned("`latency_timer`");
                before(family, "every reply comes 16 ms late", &[late], want)
            }),
        ),
        row(
            "F16",
            "interference, before the line is lost",
            each(|family| {
                let want = Want::Warned("of the replies had to be asked for again");
                let fault = Fault::CorruptReplies {
                    share: 0.12,
                    bits: 3,
                };
                case(
                    family,
                    "three bits are flipped in 12 % of the replies",
                    from_then(fault),
                    want,
                )
            }),
        ),
        row(
            "F20",
            "another program writes to the port",
            each(|family| {
                let want = Want::Drawn("cycles", |counts| counts.cycles);
                case(
                    family,
                    "modem commands between the replies",
                    noise(b"AT\r\nAT+GCAP\r\n"),
                    want,
                )
            })
            .into_iter()
            .chain(each(|family| {
                let want = Want::Drawn("echoes dropped", echoes);
                let fault = Fault::Echo(true);
                case(
                    family,
                    "the adapter returns what it is sent",
                    from_then(fault),
                    want,
                )
            }))
            .collect(),
        ),
    ]
}

/// What happens in a servo.
fn servo_rows() -> Vec<Row> {
    let row = |number, meets, cases| Row {
        number,
        meets,
        cases,
    };
    vec![
        row(
            "F5",
            "an overload makes a servo limp, or silent",
            each(|family| {
                let bits = 32;
                let want = Want::Faulted(400, second(family));
                case(
                    family,
                    "servo 2 reports overload and lets go",
                    from_then(Fault::ErrorBits { id: 2, bits }),
                    want,
                )
                .mended(&[Fault::PowerCycle(2)])
            })
            .into_iter()
            .chain(each(|family| {
                let want = Want::Faulted(200, second(family));
                case(
                    family,
                    "servo 2 falls silent",
                    from_then(Fault::Silence(2)),
                    want,
                )
                .mended(&[Fault::Speak(2)])
            }))
            .collect(),
        ),
        row(
            "F6",
            "an obstacle stalls a joint",
            each(|family| {
                let joint: &[&str] = match family {
                    Family::Sts => &["shoulder_pan", "behind its goal"],
                    _ => &["waist", "behind its goal"],
                };
                obstacle(family, joint)
            }),
        ),
        row(
            "F10",
            "positions that wrap, count turns or change sign",
            [0, 4095, 0x8001, 32_767]
                .into_iter()
                .flat_map(|word| {
                    each(move |family| {
                        let done = match word {
                            0 => "servo 2 reports 0",
                            4095 => "servo 2 reports 4095",
                            0x8001 => "servo 2 reports the word 8001",
                            _ => "servo 2 reports 32767",
                        };
                        let fault = Fault::Position {
                            id: 2,
                            word: Some(word),
                        };
                        case(
                            family,
                            done,
                            from_then(fault),
                            Want::Faulted(200, second(family)),
                        )
                        .mended(&[Fault::Position { id: 2, word: None }])
                    })
                })
                .collect(),
        ),
        row(
            "F11",
            "a servo loses power for a moment",
            each(|family| {
                case(
                    family,
                    "servo 2 restarts",
                    from_then(Fault::PowerCycle(2)),
                    Want::Faulted(200, second(family)),
                )
            }),
        ),
        row(
            "F17",
            "the controller restarts silently",
            each(|family| {
                let all =
                    once(|hands| (1..=8).for_each(|id| hands.sim.break_it(Fault::PowerCycle(id))));
                case(
                    family,
                    "every servo restarts",
                    all,
                    Want::Faulted(200, &["servo 1", "restarted"]),
                )
            }),
        ),
    ]
}

/// What is wrong before anything moves.
fn setup_rows() -> Vec<Row> {
    let row = |number, meets, cases| Row {
        number,
        meets,
        cases,
    };
    vec![
        row(
            "F3",
            "a servo of another voltage or model",
            vec![
                before(
                    Family::Sts,
                    "servo 4 is another model",
                    &[poke(4, 3, 8)],
                    Want::Refused(&["servo 4 (wrist_flex)", "model is 776"]),
                ),
                before(
                    Family::Dxl2,
                    "servo 4 is another model",
                    &[poke(4, 0, 1)],
                    Want::Refused(&["servo 4 (elbow)", "model"]),
                ),
                before(
                    Family::Sts,
                    "servo 4 is made for 7.4 V",
                    &[poke(4, 14, 84)],
                    Want::Refused(&["servo 4 (wrist_flex)", "voltage"]),
                ),
                before(
                    Family::Dxl2,
                    "servo 4 is made for 7.4 V",
                    &[poke(4, 32, 84)],
                    Want::Refused(&["servo 4 (elbow)", "voltage"]),
                ),
            ],
        ),
        row(
            "F13",
            "a bus watchdog that trips, or moves on in extended mode",
            vec![
                before(
                    Family::Dxl2,
                    "servo 2 is in extended position mode",
                    &[poke(2, 11, 4)],
                    Want::Refused(&["servo 2 (shoulder)", "operating mode (register 11) is 4"]),
                ),
                case(
                    Family::Dxl2,
                    "the watchdog of servo 2 trips",
                    from_then(poke(2, 98, 0xFF)),
                    Want::Faulted(400, &["servo 2 (shoulder)", "watchdog"]),
                ),
            ],
        ),
        row(
            "F21",
            "ports are renumbered, arms are swapped",
            vec![
                before(
                    Family::Sts,
                    "servos with other registers answer",
                    &[poke(1, 3, 24), poke(1, 4, 4)],
                    Want::Refused(&["servo 1 (shoulder_pan)", "model"]),
                ),
                before(
                    Family::Dxl2,
                    "servos with other registers answer",
                    &[poke(1, 0, 9), poke(1, 1, 3)],
                    Want::Refused(&["servo 1 (waist)", "model"]),
                ),
            ],
        ),
        row(
            "F24",
            "servos that count otherwise",
            vec![
                before(
                    Family::Sts,
                    "servo 2 is of the SCS series",
                    &[poke(2, 3, 5), poke(2, 4, 5)],
                    Want::Refused(&["servo 2 (shoulder_lift)", "counts otherwise"]),
                ),
                before(
                    Family::Dxl2,
                    "servo 2 is an AX-12",
                    &[poke(2, 0, 12), poke(2, 1, 0)],
                    Want::Refused(&["servo 2 (shoulder)", "model is 12"]),
                ),
            ],
        ),
        row(
            "F25",
            "attaching to an energised arm drops it",
            each(|family| before(family, "the arm already holds", &[], Want::Untouched)),
        ),
    ]
}

/// What happens to the machine and its port.
fn host_rows() -> Vec<Row> {
    let row = |number, meets, cases| Row {
        number,
        meets,
        cases,
    };
    vec![
        row(
            "F12",
            "the adapter vanishes",
            each(|family| {
                case(
                    family,
                    "the cable is pulled",
                    from_then(Fault::Unplug),
                    Want::Faulted(20, &["unplugged", "reset"]),
                )
            }),
        ),
        row(
            "F15",
            "the machine does not run the node for 300 ms",
            each(|family| {
                let want = Want::Faulted(400, &["this machine did not run"]);
                case(family, "300 ms pass within a cycle", starved(), want)
            }),
        ),
        row(
            "F22",
            "the port takes no more bytes",
            each(|family| {
                let stuck = once(|hands| *hands.stuck = true);
                case(
                    family,
                    "nobody takes bytes from the port",
                    stuck,
                    Want::Faulted(200, &["while writing", "write"]),
                )
            }),
        ),
    ]
}

fn starved() -> Option<Script> {
    once(|hands| {
        let later = hands.clock.now().after(Duration::from_millis(300));
        hands.clock.jump_to(later);
    })
}

/// The same with a controller that somebody built.
fn controller_cases() -> Vec<(&'static str, Case)> {
    let own = |number, done, script, want| {
        let case = case(Family::Firmware, done, script, want);
        // A drive that failed is mended; other faults leave it as it is.
        (number, case.mended(&[Fault::ErrorBits { id: 2, bits: 0 }]))
    };
    let cycles = || Want::Drawn("cycles", |counts| counts.cycles);
    let late = Fault::LateReplies {
        share: 1.0,
        by: Duration::from_millis(16),
    };
    let noisy = Fault::CorruptReplies {
        share: 0.12,
        bits: 3,
    };
    let blind = |word| Fault::Position { id: 2, word };
    vec![
        ("F6", obstacle(Family::Firmware, &["shoulder_pan"])),
        (
            "F10",
            case(
                Family::Firmware,
                "a drive reports no position",
                from_then(blind(Some(0))),
                Want::Faulted(200, &["where its joints are"]),
            )
            .mended(&[blind(None)]),
        ),
        (
            "F14",
            before(
                Family::Firmware,
                "everything that it says comes 16 ms late",
                &[late],
                cycles(),
            ),
        ),
        own(
            "F15",
            "300 ms pass within a cycle",
            starved(),
            Want::Faulted(400, &["machine"]),
        ),
        own(
            "F16",
            "three bits are flipped in 12 % of what it says",
            from_then(noisy),
            Want::Drawn("wrong checksums dropped", corrupt),
        ),
        own(
            "F22",
            "nobody takes bytes from the port",
            once(|hands| *hands.stuck = true),
            Want::Faulted(200, &["while writing", "write"]),
        ),
        (
            "F25",
            before(
                Family::Firmware,
                "the arm already holds",
                &[],
                Want::Untouched,
            ),
        ),
        own(
            "F1",
            "5 % of what it says is lost",
            from_then(Fault::DropReplies(0.05)),
            cycles(),
        ),
        own(
            "F2",
            "two bits are flipped in 5 % of what it says",
            from_then(Fault::CorruptReplies {
                share: 0.05,
                bits: 2,
            }),
            Want::Drawn("wrong checksums dropped", corrupt),
        ),
        own(
            "F5",
            "its second drive fails",
            from_then(Fault::ErrorBits { id: 2, bits: 1 }),
            Want::Faulted(200, second(Family::Firmware)),
        ),
        own(
            "F12",
            "the cable is pulled",
            from_then(Fault::Unplug),
            Want::Faulted(20, &["unplugged", "reset"]),
        ),
        own(
            "F17",
            "it restarts",
            from_then(Fault::PowerCycle(1)),
            Want::Faulted(200, &["controller restarted", "supply", "reset"]),
        ),
        own(
            "F20",
            "modem commands between its frames",
            noise(b"AT\r\nAT+GCAP\r\n"),
            cycles(),
        ),
    ]
}

fn long_lines(scene: &mut toml::Table) {
    let design = "polylines = [[[0.0, 0.0], [80.0, 0.0]], [[80.0, 12.0], [0.0, 12.0]]]";
    let design: toml::Table = toml::from_str(design).unwrap();
    scene.insert("design".to_owned(), design.into());
}

/// Draws, breaks, and says what came of it.
async fn carry_out(case: Case) -> Found {
    let rig = if case.long {
        Rig::with(case.family, long_lines)
    } else {
        Rig::new(case.family)
    };
    for fault in &case.before {
        rig.sim.break_it(fault.clone());
    }
    if matches!(case.want, Want::Untouched) {
        return attach_to_energised(&rig).await;
    }
    let motion = match (rig.attach(), &case.want) {
        (Ok(motion), _) => motion,
        (Err(words), Want::Refused(names)) => return refused(&rig, &words, names),
        (Err(words), _) => panic!("{}: {words}", case.done),
    };
    let outcome = rig.draw(&motion, case.during).await;
    match (outcome, case.want) {
        (Outcome::Reached { .. }, Want::Drawn(what, of)) => {
            let count = of(&motion.snapshot().counts);
            assert!(count > 0, "{}: no {what} were counted", case.done);
            stayed_on_the_line(&rig);
            found(format!("drawn; {what} are counted"))
        }
        (Outcome::Reached { .. }, Want::Warned(words)) => {
            let said = motion.snapshot().warnings;
            let said = said.into_iter().find(|one| one.contains(words));
            let said = said.unwrap_or_else(|| panic!("{}: no warning", case.done));
            stayed_on_the_line(&rig);
            Found {
                short: "drawn; a warning says why it may not go on so".to_owned(),
                words: Some(said),
            }
        }
        (Outcome::Refused(words), Want::Refused(names)) => refused(&rig, &words, names),
        (Outcome::Faulted(words), Want::Faulted(within_ms, names)) => {
            faulted(&rig, &motion, &words, within_ms, names).await;
            after_a_fault(&rig, &motion, &words, &case.mend, case.done).await;
            Found {
                short: format!("fault within {within_ms} ms; it holds"),
                words: Some(words),
            }
        }
        (outcome, _) => panic!("{:?}: {}: {outcome:?}", case.family, case.done),
    }
}

fn found(short: String) -> Found {
    Found { short, words: None }
}

fn names_all(words: &str, names: &[&str]) {
    for name in names {
        assert!(words.contains(name), "{name:?} is not named in {words:?}");
    }
}

/// A damaged reading must not have bent the line.
fn stayed_on_the_line(rig: &Rig) {
    if rig.family == Family::Firmware {
        // Its segments are judged by the controller, in `firmware-protocol`.
        return;
    }
    let goals = rig.wire.goals(rig.family);
    assert!(goals.len() > 100);
    let steps = goals.windows(2).flat_map(|pair| {
        let pairs = pair[0].ticks.iter().zip(&pair[1].ticks);
        pairs.map(|(a, b)| (a.1 - b.1).abs()).collect::<Vec<_>>()
    });
    // 3 rad/s are 19.6 counts in 10 ms, and a dead band may be crossed.
    assert!(steps.max().unwrap() <= 23);
}

fn refused(rig: &Rig, words: &str, names: &[&str]) -> Found {
    names_all(words, names);
    assert!(
        rig.sim.truth().distance_max(&rig.scene.rest_rad) < 0.01,
        "it moved"
    );
    Found {
        short: "refused; nothing moves".to_owned(),
        words: Some(words.to_owned()),
    }
}

async fn faulted(rig: &Rig, motion: &Motion, words: &str, within_ms: u64, names: &[&str]) {
    names_all(words, names);
    let broken = rig.wire.state().broken_at.unwrap();
    let limit = Duration::from_millis(within_ms);
    let took = rig.wire.latched_after(rig.clock.now());
    assert!(took <= limit, "{took:?} for {words:?}");
    let told = rig.clock.now().since(broken);
    assert!(told <= limit + VERIFIED, "told after {told:?}: {words:?}");
    assert!(matches!(rig.permits.latched(), Some(Latch::Fault(_))));
    let mut snapshots = motion.watch();
    let told = snapshots.wait_for(|snapshot| snapshot.fault.as_deref() == Some(words));
    told.await.unwrap();
}

/// Nothing moves without a reset, whatever is mended; after it the arm is at rest.
async fn after_a_fault(rig: &Rig, motion: &Motion, words: &str, mend: &[Fault], done: &str) {
    never_let_go(rig);
    let denied = rig.permits.ask(&rig.scene, rig.clock.now());
    assert!(matches!(denied, Err(Denied::Fault(_))), "{denied:?}");
    let stands = last_goals(rig);
    let at = rig.sim.truth();
    mend.iter()
        .for_each(|fault| rig.sim.break_it(fault.clone()));
    let detached = words.contains("unplugged");
    if detached {
        rig.sim.break_it(Fault::Plug);
    }
    let mut verified = false;
    // As often as a standing arm is read on a real clock.
    for _ in 0..20 {
        let next = rig.clock.now().after(Duration::from_millis(50));
        rig.clock.jump_to(next);
        rig.sim.advance(next);
        verified = wake(motion).await;
    }
    assert_eq!(last_goals(rig), stands, "{done}: a goal after the fault");
    let moved = rig.sim.truth().distance_max(&at);
    assert!(moved < SETTLES_RAD, "{done}: {moved} rad after the fault");
    if detached || mend.is_empty() && !verified {
        return;
    }
    let outcome = rig.reset(motion, Who::Operator).await;
    assert!(
        matches!(outcome, Outcome::Reached { .. }),
        "{done}: after mending: {outcome:?}"
    );
    assert!(rig.sim.truth().distance_max(&rig.scene.rest_rad) < 0.02);
}

/// Nobody took torque off: the arm holds.
fn never_let_go(rig: &Rig) {
    let broken = rig.wire.state().broken_at.unwrap();
    let off = |message: &Message| matches!(message, Message::Torque(false) | Message::Park);
    let told = rig.wire.messages();
    assert!(
        !told
            .iter()
            .any(|(at, message)| *at >= broken && off(message))
    );
    let state = rig.wire.state();
    let after = state.sent.iter().filter(|(at, _)| *at >= broken);
    let torque_off = after
        .flat_map(|(_, bytes)| far_end::requests(rig.family, bytes))
        .flat_map(|request| far_end::writes(rig.family, &request))
        .filter(|write| write.address == torque_enable(rig.family) && write.data == [0]);
    assert_eq!(torque_off.count(), 0, "torque was taken off");
}

/// Its address by the manuals.
fn torque_enable(family: Family) -> u16 {
    if family == Family::Sts { 40 } else { 64 }
}

/// An arm that stands is read when somebody asks it to stop; whether it was read to stand.
async fn wake(motion: &Motion) -> bool {
    let ticket = motion.stop(Who::Node, false);
    motion.stopped(ticket).await.unwrap().verified
}

/// An arm behind its last goal still comes to it: no further than the leash.
const SETTLES_RAD: f64 = 0.45;

/// How long a fault may be read for standstill before it is told.
const VERIFIED: Duration = Duration::from_millis(1600);

fn last_goals(rig: &Rig) -> Option<Vec<(u8, i32)>> {
    if rig.family == Family::Firmware {
        return rig.wire.last_segment();
    }
    rig.wire.goals(rig.family).pop().map(|goals| goals.ticks)
}

async fn attach_to_energised(rig: &Rig) -> Found {
    let motion = rig.attach().unwrap();
    let outcome = rig.reset(&motion, Who::Operator).await;
    assert!(matches!(outcome, Outcome::Reached { .. }), "{outcome:?}");
    drop(motion);
    let (held, asked): (Joints, usize) = (rig.sim.truth(), rig.wire.state().sent.len());
    let motion = rig.attach().unwrap();
    let snapshot = motion.snapshot();
    assert!(snapshot.energised);
    let written = rig.wire.state().sent[asked..].iter().any(|(_, bytes)| {
        let requests = far_end::requests(rig.family, bytes);
        requests
            .iter()
            .any(|request| !far_end::writes(rig.family, request).is_empty())
    });
    assert!(!written, "attaching wrote something");
    let told = rig.wire.messages().into_iter().rev();
    let ours = told.take_while(|(_, message)| !matches!(message, Message::Hello(_)));
    let quiet = |message: &Message| matches!(message, Message::Beat(_) | Message::TimeReq(_));
    assert!(
        ours.map(|(_, message)| message)
            .all(|message| quiet(&message)),
        "attaching told the controller something"
    );
    rig.sim
        .advance(rig.clock.now().after(Duration::from_secs(1)));
    assert!(rig.sim.truth().distance_max(&held) < 0.002);
    found("found energised, left as it is: attaching writes nothing".to_owned())
}

const HEAD: &str = "# What an arm suffers, and what comes of it

Written by `cargo test --test faults`, which does each of these to a simulated arm in the middle of a stroke, at the far end of
the wire, and checks what is said here: `REWRITE_SNAPSHOTS=1 cargo test --test faults` writes this page anew.

*Drawn* means that the stroke was finished and no goal stepped further than a joint's speed allows. *Fault* means that the result
names the cause, within the time given, that nobody took torque off, that no goal leaves the port and nothing moves again without `reset`, and that after mending
`reset` brings the arm to rest. *Refused* means that the arm is not energised at all.

";

fn page(rows: &[(Row, Vec<Done>)]) -> String {
    let mut text = HEAD.to_owned();
    for (row, found) in rows {
        let _ = writeln!(
            text,
            "## {}: {}\n\n| family | what is done | what comes of it |\n|---|---|---|",
            row.number, row.meets
        );
        for (family, done, found) in found {
            let family = match family {
                Family::Sts => "Feetech STS",
                Family::Dxl2 => "Dynamixel X",
                Family::Firmware => "own controller",
            };
            let words = found
                .words
                .as_ref()
                .map(|words| format!(": \"{words}\""))
                .unwrap_or_default();
            let _ = writeln!(
                text,
                "| {family} | {done} | {}{} |",
                found.short,
                words.replace('|', "/")
            );
        }
        text.push('\n');
    }
    text.push_str(TAIL);
    text
}

const TAIL: &str = "## Elsewhere

* F7, one servo that fails while torque is taken off: every other one is still released, and the one is named (`src/driver/tests/faults.rs`).
* F8, torque off under a raised arm: no tool takes torque off. SIGTERM brings a raised arm to its rest pose and only then ends the node; what was stopped or is not enabled is not parked, and goes on holding where it stands (`tests/stop.rs`: `termination_parks_the_arm`, `termination_does_not_park_what_was_stopped`).
* F20, a second program that opens the port: it is refused, and told which program has it (`src/link/serial.rs`, `tests/doctor.rs`).
* F23, a port that reads nothing for ever: an unplugged port is not read in a loop (`tests/bus_pty.rs`).
* F18, spliced lines, and F19, a step rate that hangs the controller, are troubles of G-code controllers, which this node does not drive.
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_ends_as_its_row_says() {
    let mut all = Vec::new();
    let rows: Vec<(Row, Vec<Case>)> = rows()
        .into_iter()
        .map(|mut row| {
            let cases = std::mem::take(&mut row.cases);
            (row, cases)
        })
        .collect();
    let mut wrong = Vec::new();
    for (row, cases) in rows {
        let begun = cases.into_iter().map(|case| {
            let (family, done) = (case.family, case.done);
            (family, done, tokio::spawn(carry_out(case)))
        });
        let begun: Vec<_> = begun.collect();
        let mut found = Vec::new();
        for (family, done, carried) in begun {
            match carried.await {
                Ok(one) => found.push((family, done, one)),
                Err(error) => wrong.push(format!("{} {family:?}, {done}: {error}", row.number)),
            }
        }
        all.push((row, found));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    check_page(&page(&all));
}

fn check_page(text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/faults.md");
    if std::env::var_os("REWRITE_SNAPSHOTS").is_some_and(|set| set == "1") {
        std::fs::write(path, text).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    let differs = kept
        .lines()
        .zip(text.lines())
        .find(|(kept, now)| kept != now);
    assert!(
        kept == text,
        "docs/faults.md is not what it was: {differs:?}; read the difference after REWRITE_SNAPSHOTS=1"
    );
}
