//! Ranks names by similarity to one that was received. For display, never for choosing.

use std::cmp::Reverse;

/// Number of names that one message lists.
pub const LISTED_MAX: usize = 12;

/// Longest name that is compared letter by letter; anything longer is a sentence, not a misspelling.
const COMPARED_CHARS_MAX: usize = 64;

/// What a name gains that is part of the received one, or has it as a part.
const OF_A_PART: f64 = 0.2;

/// Similarity from which on a name may be a misspelling of another.
const MISSPELT: f64 = 0.75;

/// Returns at most [`LISTED_MAX`] of `names`, the nearest to `received` first; equally near ones keep their order.
#[must_use]
pub fn nearest<'a>(received: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    sort(received, &mut names);
    names.truncate(LISTED_MAX);
    names
}

/// Sorts names, the nearest to `received` first; equally near ones keep their order.
pub fn sort<S: AsRef<str>>(received: &str, names: &mut [S]) {
    let received = letters(received);
    names.sort_by_cached_key(|name| Reverse(rank(&received, &letters(name.as_ref()))));
}

/// Returns whether a received name may be a misspelling of `name`.
#[must_use]
pub fn is_near(received: &str, name: &str) -> bool {
    similarity(&letters(received), &letters(name)) >= MISSPELT
}

/// Returns the letters and digits that are compared.
fn letters(name: &str) -> String {
    let kept = name.chars().filter(|c| c.is_alphanumeric());
    let kept = kept.flat_map(char::to_lowercase);
    kept.take(COMPARED_CHARS_MAX).collect()
}

/// Makes a similarity sortable: a millionth is no difference.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a similarity is from 0 to 1.2"
)]
fn rank(received: &str, name: &str) -> u32 {
    (similarity(received, name) * 1e6) as u32
}

fn similarity(received: &str, name: &str) -> f64 {
    let is_part = !received.is_empty()
        && !name.is_empty()
        && (name.contains(received) || received.contains(name));
    strsim::jaro_winkler(received, name).max(strsim::normalized_damerau_levenshtein(received, name))
        + if is_part { OF_A_PART } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_comes_first() {
        let names = ["star", "koi", "tiger", "practice_skin", "default"];
        for (received, expected) in [
            ("tigger", "tiger"),
            ("practice", "practice_skin"),
            ("ko i!", "koi"),
        ] {
            let first = nearest(received, names).into_iter().next();
            assert_eq!(first.as_deref(), Some(expected));
        }
        assert_eq!(nearest("", names), names);
    }

    #[test]
    fn shows_no_more_than_a_dozen() {
        let names: Vec<String> = (0..40).map(|i| format!("scene{i}")).collect();
        let names = names.iter().map(String::as_str);
        assert_eq!(nearest("scene", names).len(), LISTED_MAX);
    }

    #[test]
    fn a_misspelling_is_near_and_another_word_is_not() {
        for (received, name) in [
            ("scenne", "scene"),
            ("tokens_file", "tokens"),
            ("sceen", "scene"),
        ] {
            assert!(is_near(received, name), "{received}");
        }
        for (received, name) in [("colour", "scene"), ("baud", "name"), ("x", "scene")] {
            assert!(!is_near(received, name), "{received}");
        }
    }
}
