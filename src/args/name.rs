//! Names of tools, scenes, overlays and nodes: case, blanks, hyphens, underscores and camel case are form, all else is meaning.

use super::{nearest::nearest, vocabulary::vocabulary, word_table::FoldedText};
use call::is_invisible;
use unicode_normalization::UnicodeNormalization as _;

/// Result of looking up a received name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameResolution {
    /// Exactly one candidate; its position, and whether it was written to the letter.
    Resolved {
        /// Position among the candidates.
        index: usize,
        /// Written exactly as the candidate is.
        exact: bool,
    },
    /// Several candidates differ only in form.
    Ambiguous {
        /// Their names.
        among: Vec<String>,
    },
    /// None; the nearest are for showing.
    Unknown {
        /// At most a dozen, the nearest first.
        nearest: Vec<String>,
    },
}

/// Letters and digits in lower case and of usual width, without blanks, hyphens, underscores and invisible characters.
pub(super) fn fold(name: &str) -> String {
    let is_kept = |c: &char| {
        !c.is_whitespace() && !matches!(c, '-' | '_' | '‐' | '‑' | '–') && !is_invisible(*c)
    };
    if name.is_ascii() {
        let kept = name.chars().filter(is_kept);
        return kept.map(|c| c.to_ascii_lowercase()).collect();
    }
    name.nfkc()
        .filter(is_kept)
        .flat_map(char::to_lowercase)
        .collect()
}

/// A tool's name without quotes, brackets, namespaces and closing punctuation, folded.
#[must_use]
pub fn normalise(name: &str) -> String {
    fold(bare(name))
}

/// Returns `name` without the characters that callers put around it.
fn bare(name: &str) -> &str {
    let edge = |c: char| c.is_whitespace() || "\"'`“”.,;:*".contains(c);
    // `!` before a name is "not".
    let trimmed = |name| str::trim_matches(name, edge).trim_end_matches(|c| c == '!' || edge(c));
    let name = trimmed(name);
    let called = name
        .strip_suffix("()")
        .or_else(|| name.strip_suffix("({})"));
    let name = trimmed(called.unwrap_or(name));
    let inner = name.strip_prefix('<');
    inner
        .and_then(|inner| inner.strip_suffix('>'))
        .unwrap_or(name)
}

/// Longest name that is looked up other than to the letter.
const NAME_BYTES_MAX: usize = 256;

/// What parts a tool's name from the namespace before it.
const SEPARATORS: [&str; 5] = ["::", ".", "/", ":", "__"];

/// The namespace and the name in `server.tool`, `server/tool`, `server::tool` or `mcp__server__tool`.
fn parted(name: &str) -> Option<(&str, &str)> {
    let separators = SEPARATORS.iter();
    let parted = separators.filter_map(|separator| name.rsplit_once(separator));
    parted.min_by_key(|(_, last)| last.len())
}

/// Returns whether what stands before a tool's name only says where the tool is: `robot`, and neither `dry_run`, `slow`, `help`
/// or `stop` nor the name of another tool.
fn is_namespace<S: AsRef<str>>(words: &str, tool: &str, candidates: &[S]) -> bool {
    let (known, whole) = (vocabulary(), FoldedText::new(words));
    let is_another = |part: &str| {
        let part = fold(part);
        part != tool && candidates.iter().any(|name| fold(name.as_ref()) == part)
    };
    let is_plain = |part: &str| {
        let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        part.starts_with(char::is_alphanumeric) && part.chars().all(is_inside)
    };
    let says_where = |part: &str| {
        let folded = FoldedText::new(part);
        let says_how = known.is_dissent(&folded) || known.says_how(&folded);
        is_plain(part) && !is_another(part) && !says_how
    };
    let asks = known.dry_run.is_in_key(&whole)
        || known.negations.is_in(&whole)
        || known.conditions.is_in(&whole);
    let parts = words
        .split("::")
        .flat_map(|part| part.split(['.', '/', ':']));
    !asks && parts.flat_map(|part| part.split("__")).all(says_where)
}

/// Finds the candidate that `received` names: to the letter, else uniquely after normalising. Never by likeness.
#[must_use]
pub fn resolve<S: AsRef<str>>(received: &str, candidates: &[S]) -> NameResolution {
    if let Some(index) = candidates.iter().position(|name| name.as_ref() == received) {
        return NameResolution::Resolved { index, exact: true };
    }
    if received.len() > NAME_BYTES_MAX {
        let begin: String = received.chars().take(NAME_BYTES_MAX).collect();
        return NameResolution::Unknown {
            nearest: nearest(&begin, candidates.iter().map(AsRef::as_ref)),
        };
    }
    let whole = bare(received);
    let folded = fold(whole);
    let in_namespace = || {
        let (namespace, name) = parted(whole)?;
        let name = fold(name);
        by_form(&name, candidates).filter(|_| is_namespace(namespace, &name, candidates))
    };
    let found = by_form(&folded, candidates).or_else(in_namespace);
    found.unwrap_or_else(|| NameResolution::Unknown {
        nearest: nearest(&folded, candidates.iter().map(AsRef::as_ref)),
    })
}

fn by_form<S: AsRef<str>>(folded: &str, candidates: &[S]) -> Option<NameResolution> {
    let same = |name: &&S| !folded.is_empty() && fold(name.as_ref()) == folded;
    let mut found = candidates.iter().enumerate().filter(|(_, name)| same(name));
    let (index, _) = found.next()?;
    if found.next().is_none() {
        return Some(NameResolution::Resolved {
            index,
            exact: false,
        });
    }
    let among = candidates.iter().filter(same);
    Some(NameResolution::Ambiguous {
        among: among.map(|name| name.as_ref().to_owned()).collect(),
    })
}

/// Finds the value that `received` names among values, where namespaces and brackets are meaning.
pub(super) fn resolve_value(received: &str, known: &[String]) -> NameResolution {
    if let Some(index) = known.iter().position(|name| name == received) {
        return NameResolution::Resolved { index, exact: true };
    }
    let mut quotes = "\"'`“‘«".chars().zip("\"'`”’»".chars());
    let plain = quotes.find_map(|(open, close)| received.strip_prefix(open)?.strip_suffix(close));
    let plain = plain.unwrap_or(received);
    let unmarked = || plain.trim_end().trim_end_matches(['.', ',', '!']);
    by_form(&fold(plain), known)
        .or_else(|| by_form(&fold(unmarked()), known))
        .unwrap_or_else(|| NameResolution::Unknown {
            nearest: nearest(received, known.iter().map(String::as_str)),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: [&str; 7] = [
        "align",
        "robot_align",
        "reset",
        "sense",
        "stroke",
        "list_nodes",
        "stop",
    ];

    fn found(received: &str) -> Option<&'static str> {
        match resolve(received, &TOOLS) {
            NameResolution::Resolved { index, .. } => TOOLS.get(index).copied(),
            _ => None,
        }
    }

    #[test]
    fn form_is_forgiven() {
        for (received, want) in [
            ("align", "align"),
            ("robotAlign", "robot_align"),
            ("align()", "align"),
            ("tatbot.align", "align"),
            (" Reset. ", "reset"),
            ("sense.", "sense"),
            ("LIST-NODES", "list_nodes"),
            ("List Nodes", "list_nodes"),
            ("mcp__tatbot__list_nodes", "list_nodes"),
            ("functions.stroke:", "stroke"),
            ("`stop`", "stop"),
            ("ＳＴＯＰ", "stop"),
            ("listNodes", "list_nodes"),
            ("steadyhand/stroke", "stroke"),
        ] {
            assert_eq!(found(received), Some(want), "{received}");
        }
    }

    #[test]
    fn likeness_is_not() {
        for received in [
            "aline",
            "alig",
            "align2",
            "strokes",
            "list_nodes as the reference",
            "track_nodes",
            "",
            "()",
            "<function-name>",
            "align reset",
            "align.reset2",
        ] {
            assert_eq!(found(received), None, "{received}");
        }
        assert!(
            matches!(resolve("track_nodes", &TOOLS), NameResolution::Unknown { nearest } if nearest.first().is_some_and(|n| n == "list_nodes"))
        );
    }

    #[test]
    fn what_stands_before_a_name_is_no_namespace_if_it_says_something() {
        for received in [
            "dry_run.stroke",
            "simulate:stroke",
            "mcp__dry-run__stroke",
            "do_not.stroke",
            "not/stroke",
            "later::stroke",
            "align.stroke",
            "robot.align.stroke",
            "stop.stroke",
            "cancel.stroke",
            "halt:sense",
            "stop/reset",
            "test.stroke",
            "!stroke",
            "! stroke()",
            "plan.stroke",
            "virtual.stroke",
            "usage://stroke",
            "help.stroke",
            "should I call: stroke",
            "how_long:stroke",
            "wait.stroke",
            "erase/stroke",
            "5x:stroke",
            "slow.stroke",
            "mirror.stroke",
            "left_arm.stroke",
            "//stroke",
            "#.stroke",
            "🚫.stroke",
            "tools/list: stroke",
        ] {
            assert_eq!(found(received), None, "{received}");
        }
        for received in [
            "stroke!",
            "test-arm.stroke",
            "stroke.stroke",
            "arm1/stroke()!",
            "robot_arm.stroke",
            "mcp__pen-robot__stroke",
            "tools/call:stroke",
            "default_api.stroke",
        ] {
            assert_eq!(found(received), Some("stroke"), "{received}");
        }
    }

    #[test]
    fn two_that_differ_in_form_only_are_not_chosen_between() {
        assert!(
            matches!(resolve("goHome", &["go_home", "gohome"]), NameResolution::Ambiguous { among } if among.len() == 2)
        );
    }
}
