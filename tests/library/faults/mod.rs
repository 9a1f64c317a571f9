//! The faults that users' arms suffer from, done to a simulated one in the middle of a stroke, and what
//! came of them; printed as `docs/faults.md`.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failing test may panic"
)]

mod case;
mod controller;
mod elsewhere;
mod host;
mod of_two;
mod outcome;
mod page;
mod servos;
mod setup;
mod wire;

use crate::far_end;
use case::{Case, Done, Row};
use elsewhere::ELSEWHERE;
use far_end::Family;
use outcome::carry_out;

/// Number of faults in the table.
const FAULTS: u32 = 25;

/// Every family.
const FAMILIES: [Family; 3] = [Family::Sts, Family::Dxl2, Family::Firmware];

fn rows() -> Vec<Row> {
    let mut rows = wire::rows();
    rows.extend(servos::rows());
    rows.extend(setup::rows());
    rows.extend(host::rows());
    rows.extend(elsewhere::rows());
    for (number, case) in controller::cases() {
        let row = rows.iter_mut().find(|row| row.number == number);
        row.unwrap().cases.push(case);
    }
    rows.sort_by_key(|row| row.number);
    rows
}

#[test]
fn every_fault_is_done_to_every_family_or_a_reason_is_given() {
    let rows = rows();
    let numbers: Vec<u32> = rows.iter().map(|row| row.number).collect();
    assert_eq!(numbers, (1..=FAULTS).collect::<Vec<_>>());
    for row in &rows {
        for family in FAMILIES {
            let done = row.cases.iter().any(|case| case.family == family);
            let is_elsewhere = ELSEWHERE
                .iter()
                .any(|one| one.number == row.number && one.families.contains(&family));
            assert!(
                done != is_elsewhere,
                "F{} {family:?}: {done} {is_elsewhere}",
                row.number
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_of_one_of_two_arms_ends_for_both_as_its_row_says() {
    let mut wrong = Vec::new();
    for row in rows() {
        let begun = row.cases.into_iter().map(|case| {
            let (family, done) = (case.family, case.done);
            (family, done, tokio::spawn(of_two::carry_out(case)))
        });
        for (family, done, carried) in begun.collect::<Vec<_>>() {
            if let Err(error) = carried.await {
                wrong.push(format!("F{} {family:?}, {done}: {error}", row.number));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_ends_as_its_row_says() {
    let mut all: Vec<(Row, Vec<Done>)> = Vec::new();
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
                Err(error) => wrong.push(format!("F{} {family:?}, {done}: {error}", row.number)),
            }
        }
        all.push((row, found));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    page::check(&page::page(&all));
}
