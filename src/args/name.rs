//! Matches names of tools, scenes, overlays and nodes, regardless of case, blanks, hyphens, underscores and camel case.

use base::nearest::nearest;
use unicode_normalization::UnicodeNormalization as _;

/// Result of looking up a received name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameResolution {
    /// Exactly one candidate.
    Resolved {
        /// Position among the candidates.
        index: usize,
        /// True if the name was written exactly as the candidate is.
        exact: bool,
    },
    /// Several candidates differ only in form.
    Ambiguous {
        /// Their names.
        among: Vec<String>,
    },
    /// No candidate; the nearest are only for display.
    Unknown {
        /// At most a dozen, the nearest first.
        nearest: Vec<String>,
    },
}

/// Returns a name in lower case and usual width, without blanks, hyphens, underscores and invisible characters.
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

/// Returns whether a character is a joiner, a direction mark or another invisible one.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{feff}' | '\u{180e}')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
}

/// Returns a tool's name, folded, without the quotes, brackets and punctuation around it.
#[must_use]
pub fn normalise(name: &str) -> String {
    fold(trim_marks(name))
}

/// Returns `name` without the characters that callers put around it.
fn trim_marks(name: &str) -> &str {
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

/// Longest name that is looked up other than exactly.
const NAME_BYTES_MAX: usize = 256;

/// Separators between a tool's namespace and its name.
const SEPARATORS: [&str; 5] = ["::", ".", "/", ":", "__"];

/// Splits `server.tool`, `server/tool`, `server::tool` or `mcp__server__tool` into namespace and name.
fn split_namespace(name: &str) -> Option<(&str, &str)> {
    let separators = SEPARATORS.iter();
    let splits = separators.filter_map(|separator| name.rsplit_once(separator));
    splits.min_by_key(|(_, last)| last.len())
}

/// Returns whether a namespace may stand before a tool's name: it is made of plain names, and none is another tool's.
fn is_namespace<S: AsRef<str>>(namespace: &str, tool: &str, candidates: &[S]) -> bool {
    let is_identifier = |part: &str| {
        let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        part.starts_with(char::is_alphanumeric) && part.chars().all(is_inside)
    };
    let is_another = |part: &str| {
        let part = fold(part);
        part != tool && candidates.iter().any(|name| fold(name.as_ref()) == part)
    };
    parts(namespace).all(|part| is_identifier(part) && !is_another(part))
}

/// Returns the parts of a namespace, which may itself have one.
fn parts(namespace: &str) -> impl Iterator<Item = &str> {
    let parts = namespace.split("::");
    let parts = parts.flat_map(|part| part.split(['.', '/', ':']));
    parts.flat_map(|part| part.split("__"))
}

/// Namespaces that clients and models write before every tool's name.
const NAMESPACES: [&str; 9] = [
    "functions",
    "function",
    "tools",
    "tool",
    "default_api",
    "api",
    "mcp",
    "multi_tool_use",
    "steadyhand",
];

/// Returns the namespace of a tool's name, unless it is one that every tool has, or this server's own, as `mcp__steadyhand__stroke`.
/// What another name says, such as `mcp__do_not__stroke`, is not known here.
#[must_use]
pub fn foreign_namespace<'a, S: AsRef<str>>(name: &'a str, candidates: &[S]) -> Option<&'a str> {
    let trimmed = trim_marks(name);
    if by_form(&fold(trimmed), candidates).is_some() {
        return None;
    }
    let (namespace, _) = split_namespace(trimmed)?;
    let server = namespace.strip_prefix("mcp__").unwrap_or(namespace);
    (!NAMESPACES.contains(&server)).then_some(server)
}

/// Finds the candidate that `received` names: exactly, or else uniquely after normalising. Never by similarity.
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
    let trimmed = trim_marks(received);
    let folded = fold(trimmed);
    let in_namespace = || {
        let (namespace, name) = split_namespace(trimmed)?;
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

/// Finds the value that `received` names. In values, unlike in tool names, namespaces and brackets matter.
pub(super) fn resolve_value(received: &str, known: &[String]) -> NameResolution {
    if let Some(index) = known.iter().position(|name| name == received) {
        return NameResolution::Resolved { index, exact: true };
    }
    let mut quotes = "\"'`“‘«".chars().zip("\"'`”’»".chars());
    let inner = quotes.find_map(|(open, close)| received.strip_prefix(open)?.strip_suffix(close));
    let inner = inner.unwrap_or(received);
    // A dash before a name may be "not", or strike it out.
    let denied = inner.strip_prefix(['-', '‐', '‑', '–']);
    if denied.is_some_and(|name| name.starts_with(char::is_alphanumeric)) {
        return NameResolution::Unknown {
            nearest: nearest(received, known.iter().map(String::as_str)),
        };
    }
    // One mark ends a sentence; more of them, as in `koi...`, trail off.
    let unmarked = || inner.trim_end().strip_suffix(['.', ',', '!']);
    by_form(&fold(inner), known)
        .or_else(|| by_form(&fold(unmarked()?), known))
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
    fn similarity_is_not() {
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
    fn a_namespace_of_another_tool_or_of_signs_is_none_and_any_other_is_told() {
        for received in [
            "align.stroke",
            "robot.align.stroke",
            "!stroke",
            "//stroke",
            "🚫.stroke",
        ] {
            assert_eq!(found(received), None, "{received}");
        }
        for (received, namespace) in [
            ("dry_run.stroke", Some("dry_run")),
            ("later::stroke", Some("later")),
            ("mcp__pen-robot__stroke", Some("pen-robot")),
            ("mcp__do_not__stroke", Some("do_not")),
            ("mcp__steadyhand__stroke", None),
            ("functions.stroke", None),
            ("stroke!", None),
        ] {
            assert_eq!(found(received), Some("stroke"), "{received}");
            assert_eq!(foreign_namespace(received, &TOOLS), namespace, "{received}");
        }
    }

    #[test]
    fn names_that_differ_in_form_only_are_ambiguous() {
        assert!(
            matches!(resolve("goHome", &["go_home", "gohome"]), NameResolution::Ambiguous { among } if among.len() == 2)
        );
    }
}
