//! Ranks valid names by similarity to a received one. For display, never for choosing.

use super::{limits::VALID_MAX, name};

/// Longest name that is compared letter by letter; anything longer is a sentence, not a misspelling.
const COMPARED_CHARS_MAX: usize = 64;

/// Returns at most twelve of `candidates`, the nearest to `received` first; equally near ones keep their order.
#[must_use]
pub fn nearest<'a>(received: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let received: String = received.chars().take(COMPARED_CHARS_MAX).collect();
    let received = name::fold(&received);
    let ranked = candidates
        .into_iter()
        .map(|name| (rank(&received, name), name));
    let mut ranked: Vec<_> = ranked.collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    let nearest = ranked.into_iter().take(VALID_MAX);
    nearest.map(|(_, name)| name.to_owned()).collect()
}

fn rank(received: &str, name: &str) -> f64 {
    let name: String = name::fold(name).chars().take(COMPARED_CHARS_MAX).collect();
    let is_contained = !received.is_empty()
        && !name.is_empty()
        && (name.contains(received) || received.contains(&name));
    strsim::jaro_winkler(received, &name)
        .max(strsim::normalized_damerau_levenshtein(received, &name))
        + f64::from(u8::from(is_contained)) * 0.2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_comes_first() {
        let names = ["star", "koi", "tiger", "practice_skin", "default"];
        assert_eq!(
            nearest("tigger", names).first().map(String::as_str),
            Some("tiger")
        );
        assert_eq!(
            nearest("practice", names).first().map(String::as_str),
            Some("practice_skin")
        );
        assert_eq!(
            nearest("ko i!", names).first().map(String::as_str),
            Some("koi")
        );
        assert_eq!(nearest("", names).len(), 5);
    }

    #[test]
    fn shows_no_more_than_a_dozen() {
        let names: Vec<String> = (0..40).map(|i| format!("scene{i}")).collect();
        assert_eq!(
            nearest("scene", names.iter().map(String::as_str)).len(),
            VALID_MAX
        );
    }
}
