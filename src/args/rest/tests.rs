//! What is consumed and what is left over are the whole source, at every level.
#![allow(clippy::indexing_slicing, reason = "a failing test may panic")]

use super::super::{
    candidates,
    doubt_tests::{FORMS, TOKENS, insertions},
};
use super::*;
use proptest::{
    prelude::*,
    sample::{Index, select},
};

/// A word that no list holds.
const WORD: &str = "qx[a-z]{1,6}";

fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// What one walk has done with its text.
#[derive(Default)]
struct Walked {
    consumed: String,
    thought: String,
    left: String,
}

/// Walks over a text step by step; fails if a step leads nowhere.
fn walked(scan: &mut SourceScan<'_>) -> Result<Walked, TestCaseError> {
    let (source, mut walked) = (scan.text, Walked::default());
    while scan.at < source.len() {
        let (begin, thoughts) = (scan.at, scan.thoughts.len());
        let is_consumed = scan.consume();
        if !is_consumed {
            scan.leave();
        }
        prop_assert!(begin < scan.at, "the walk stands at {begin} of {source:?}");
        let span = &source[begin..scan.at];
        match is_consumed {
            true if thoughts < scan.thoughts.len() => walked.thought.push_str(span),
            true => walked.consumed.push_str(span),
            false => walked.left.push_str(span),
        }
    }
    prop_assert_eq!(scan.at, source.len());
    Ok(walked)
}

/// Checks the walks over each level of each reading of a text.
fn check(text: &str, word: &str) -> Result<(), TestCaseError> {
    let tools = ["stroke".to_owned()];
    for candidate in candidates::of_text(text) {
        let mut atoms = Vec::new();
        gather(&candidate.node, &mut atoms);
        let is_argument = atoms
            .iter()
            .any(|atom| matches!(atom, ReadAtom::Text(text) if text.contains(word)))
            || candidate
                .tool
                .as_ref()
                .is_some_and(|tool| tool.contains(word));
        for level in &candidate.levels {
            let source = level.read_source(&candidate);
            let scans = || level.scans(&source, &candidate, &tools);
            let parts: String = scans().iter().map(|scan| scan.text).collect();
            let decoded = level.decoded.as_deref().unwrap_or_default();
            prop_assert_eq!(parts.len() + decoded.len(), source.len(), "{:?}", source);
            for (mut scan, same) in scans().into_iter().zip(scans()) {
                let walked = walked(&mut scan)?;
                let is_overlooked = walked.consumed.contains(word) && !is_argument;
                prop_assert!(!is_overlooked, "{word:?} of {text:?}");
                let mut left = letters(&walked.left);
                if scan.next < scan.stated {
                    left += &letters(&walked.thought);
                }
                prop_assert_eq!(left, letters(&same.pieces().concat()), "{:?}", text);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(insertions())]

    #[test]
    fn consumed_and_left_over_are_the_whole_source(form in select(FORMS.to_vec()), token in select(TOKENS.to_vec()), word in WORD, places in any::<[Index; 2]>()) {
        let mut text = form.to_owned();
        for (inserted, at) in [format!(" {word} "), token.to_owned()].iter().zip(places) {
            text.insert_str(text.floor_char_boundary(at.index(text.len() + 1)), inserted);
        }
        check(&text, &word)?;
    }
}
