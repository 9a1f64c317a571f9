//! The page `docs/faults.md`: what came of every fault.

use std::fmt::Write as _;
use std::path::Path;

use super::case::{Done, Found, Row};
use super::elsewhere::{ALSO, ELSEWHERE};
use super::far_end::Family;
use steadyhand::sim::SimulatedFault;

const HEAD: &str = "# Faults: what breaks, and what happens

Each fault was caused on a simulated arm in the middle of a stroke: with Feetech STS servos, Dynamixel X servos and a controller of your own. Look for the words of your message.

| outcome | means |
|---|---|
| *drawn* | the stroke was finished; a warning says what needs attention |
| *fault* | the result names the cause within the given time, and the arm holds. Remove the cause, then `reset` |
| *refused* | nothing moves and the arm's torque is off |

The same was done to one of two arms that draw together: what is drawn, both finish; a fault of one stops the other as a stop does.

To practise a fault, give the path of `steadyhand sim --pty` to a node as the arm's port. While the arm draws, type the line in brackets into the terminal of `sim`. `fault loss 0`, `fault speaks 2`, `fault block 1` and `fault position 2` end their faults. After `fault unplug`, start `sim` again.

| fault | family | what is done | what happens |
|---|---|---|---|
";

/// Faults that a technician can practise, and what to write for each to `sim --pty`.
const PRACTICE: &[(u32, &str)] = &[
    (1, "loss 0.05"),
    (2, "damage 0.05"),
    (3, "voltage 4 4.5"),
    (4, "two-on 2"),
    (5, "error 2 32"),
    (6, "block 1 0"),
    (7, "silent 2"),
    (10, "position 2 4095"),
    (11, "restart 2"),
    (12, "unplug"),
    (14, "late 1 16"),
    (16, "damage 0.3"),
    (23, "loss 1"),
];

/// What arms feel of whose servos and masses the figures are known.
const FELT: &str = "
## What an arm feels by itself

An arm notices a push if its file has `[[masses]]` and `[servo]` and its servos' gain P was read. It compares the load that its servos report with the load of its weight, its motion and the damping of its gears. Damping and unknown loads of a joint are learned in the air. A difference ends the motion if it lasts 30 ms and exceeds 0.45 N m (or 3.25 N at the tip where that is more) plus 0.5 N m for each rad/s. The arm brakes, moves its goals to where it is, and lifts.

A servo has no torque if its load stays below 0.4 % while it is 4 counts beyond its dead band (`dead_band_ticks`) from its goal and does not approach it, for 80 ms together. Readings near the goal count neither way. Other arms have simpler rules: 60 % load and 3° behind, the leash, and a reading that stands still.
";

/// The page, fault by fault.
pub(crate) fn page(rows: &[(Row, Vec<Done>)]) -> String {
    let mut text = HEAD.to_owned();
    for (row, found) in rows {
        let mut fault = format!("F{}: {}", row.number, row.meets);
        if let Some((_, words)) = PRACTICE.iter().find(|(number, _)| *number == row.number) {
            assert!(words.parse::<SimulatedFault>().is_ok(), "{words}");
            let _ = write!(fault, " (`fault {words}`)");
        }
        let mut rows: Vec<(Vec<Family>, String)> = Vec::new();
        for (family, done, found) in found {
            let rest = format!("{done} | {}", outcome_text(found));
            let is_same = |other: &str| {
                let other_done = other.split(" | ").next();
                other_done == Some(*done) && shape(other) == shape(&rest)
            };
            match rows.iter_mut().find(|(_, other)| is_same(other)) {
                Some((families, _)) => families.push(*family),
                None => rows.push((vec![*family], rest)),
            }
        }
        let rows = rows
            .into_iter()
            .map(|(families, rest)| format!("{} | {rest}", names(&families)));
        // A fault's name stands once, before its first row.
        for row in rows.chain(reasons(row.number)) {
            let _ = writeln!(text, "| {} | {row} |", std::mem::take(&mut fault));
        }
    }
    text.push_str(FELT);
    text
}

fn outcome_text(found: &Found) -> String {
    let text = found.message.as_ref();
    let text = text.map(|text| format!(": \"{}\"", beginning(&text.replace('|', "/"))));
    format!("{}{}", found.short, text.unwrap_or_default())
}

/// Returns a text without its numbers and the names in brackets, which differ between arms that say the same.
fn shape(text: &str) -> String {
    let mut depth = 0_usize;
    let mut kept = String::new();
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 && !c.is_ascii_digit() => kept.push(c),
            _ => {}
        }
    }
    kept
}

/// Leaves out the advice at a message's end, where what is left still says enough to be found: the message itself has it.
fn beginning(text: &str) -> String {
    match text.rsplit_once(": ") {
        Some((kept, _)) if kept.len() >= 30 => format!("{kept}: …"),
        _ => text.to_owned(),
    }
}

/// Returns the rows that say why a family has none of its own.
fn reasons(number: u32) -> impl Iterator<Item = String> {
    let elsewhere = ELSEWHERE.iter().filter(move |one| one.number == number);
    let elsewhere = elsewhere.map(|one| (names(one.families), one.reason));
    let also = ALSO.iter().filter(move |(of, _)| *of == number);
    let rows = elsewhere.chain(also.map(|(_, reason)| ("all".to_owned(), *reason)));
    rows.map(|(families, reason)| format!("{families} | | {}", without_places(reason)))
}

/// Leaves out the brackets that name tests and files: they are for those who read the code.
fn without_places(line: &str) -> String {
    let mut kept = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(" (") {
        let (inside, behind) = after.split_once(')').unwrap();
        kept.push_str(before);
        if !inside.contains(".rs`") {
            let _ = write!(kept, " ({inside})");
        }
        rest = behind;
    }
    kept + rest
}

fn names(families: &[Family]) -> String {
    let names: Vec<&str> = families.iter().copied().map(name).collect();
    match names.len() {
        3 => "all".to_owned(),
        _ => names.join(", "),
    }
}

const fn name(family: Family) -> &'static str {
    match family {
        Family::Sts => "Feetech",
        Family::Dxl2 => "Dynamixel",
        Family::Firmware => "own controller",
    }
}

/// Checks that the text is the page that is kept, or keeps it where that is asked for.
pub(crate) fn check(text: &str) {
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
