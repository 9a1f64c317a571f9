//! Reads style sheets: rules of selectors and declarations. Unknown selectors and `@` rules are
//! refused, because it is not known which elements they apply to.

use std::borrow::Cow;

use usvg::roxmltree::Node;

use super::super::DesignError;
use super::super::design_error::quoted;
use super::cascade;

/// A property and its value, such as `stroke: red`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CssDeclaration {
    /// In lower case, unless it is a custom property (`--ink`).
    pub(super) name: String,
    pub(super) value: String,
    pub(super) is_important: bool,
}

/// Reads the declarations of a block or a `style` attribute; ignores other text, as browsers do.
pub(super) fn declarations(text: &str) -> Vec<CssDeclaration> {
    let text = without_comments(text);
    split(&text, ';').filter_map(declaration).collect()
}

fn declaration(text: &str) -> Option<CssDeclaration> {
    let (name, value) = text.split_once(':')?;
    let name = name.trim();
    let (value, is_important) = match value.rsplit_once('!') {
        Some((value, word)) if word.trim().eq_ignore_ascii_case("important") => (value, true),
        _ => (value, false),
    };
    let value = value.trim();
    if name.is_empty() || value.is_empty() {
        return None;
    }
    let name = match name.starts_with("--") {
        true => name.to_owned(),
        false => name.to_ascii_lowercase(),
    };
    Some(CssDeclaration {
        name,
        value: value.to_owned(),
        is_important,
    })
}

/// Splits a text at a character outside quotes and brackets.
pub(super) fn split(text: &str, at: char) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let (part, after) = split_at(text, find_outside_quotes(text, &[at]));
        rest = after.strip_prefix(at);
        Some(part)
    })
}

/// Splits a text at a byte index, or else at its end.
fn split_at(text: &str, at: Option<usize>) -> (&str, &str) {
    let halves = text.split_at_checked(at.unwrap_or(text.len()));
    halves.unwrap_or((text, ""))
}

/// Returns the index of the first of some characters outside quotes and brackets.
fn find_outside_quotes(text: &str, targets: &[char]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, _) if depth == 0 && targets.contains(&c) => return Some(at),
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
    }
    None
}

fn without_comments(text: &str) -> Cow<'_, str> {
    let mut parts = text.split("/*");
    let first = parts.next().unwrap_or("");
    if first.len() == text.len() {
        return Cow::Borrowed(text);
    }
    let mut stripped = first.to_owned();
    for part in parts {
        stripped.push(' ');
        stripped.push_str(part.split_once("*/").map_or("", |(_, after)| after));
    }
    Cow::Owned(stripped)
}

/// A rule for the elements that one selector matches.
pub(super) struct CssRule {
    pub(super) selector: CssSelector,
    /// Index of its block of declarations.
    pub(super) block: usize,
}

/// The rules of all style sheets of a file.
#[derive(Default)]
pub(super) struct CssRules {
    pub(super) rules: Vec<CssRule>,
    pub(super) blocks: Vec<Vec<CssDeclaration>>,
}

/// `@` rules that change no line, or (`@import`, `@keyframes`) are noted elsewhere.
const HARMLESS: [&str; 9] = [
    "charset",
    "counter-style",
    "font-face",
    "font-feature-values",
    "import",
    "keyframes",
    "-webkit-keyframes",
    "namespace",
    "page",
];

impl CssRules {
    /// Adds the rules of a sheet.
    pub(super) fn read(&mut self, sheet: &str) -> Result<(), DesignError> {
        let sheet = sheet.replace("<!--", "").replace("-->", "");
        let sheet = without_comments(&sheet);
        let mut rest: &str = &sheet;
        while let Some(end) = find_outside_quotes(rest, &['{', ';']) {
            let (prelude, after) = split_at(rest, Some(end));
            let prelude = prelude.trim();
            let Some(block) = after.strip_prefix('{') else {
                rest = after.get(1..).unwrap_or("");
                refuse_at_rule(prelude)?;
                continue;
            };
            let (inside, after) = split_at(block, find_outside_quotes(block, &['}']));
            rest = after.get(1..).unwrap_or("");
            if prelude.starts_with('@') {
                refuse_at_rule(prelude)?;
            } else {
                self.add_rule(prelude, inside)?;
            }
        }
        match rest.trim() {
            "" => Ok(()),
            rest => Err(rule_error(rest, "a style rule without a block")),
        }
    }

    fn add_rule(&mut self, prelude: &str, inside: &str) -> Result<(), DesignError> {
        if inside.contains('{') {
            return Err(rule_error(prelude, "a style rule with nested rules"));
        }
        let block = declarations(inside);
        let matters = block.iter().any(|one| cascade::matters(&one.name));
        for text in split(prelude, ',').map(str::trim) {
            match CssSelector::read(text) {
                Some(selector) => self.rules.push(CssRule {
                    selector,
                    block: self.blocks.len(),
                }),
                // Pseudo-elements such as `::before` do not exist in SVG.
                None if !matters || text.contains("::") => {}
                None => {
                    return Err(rule_error(text, "a style rule with an unknown selector"));
                }
            }
        }
        self.blocks.push(block);
        Ok(())
    }
}

/// Refuses `@` rules that may change a line. Rules for dark screens do not apply: the drawing is on
/// white paper.
fn refuse_at_rule(prelude: &str) -> Result<(), DesignError> {
    let Some(rule) = prelude.strip_prefix('@') else {
        return Ok(());
    };
    let (name, condition) = split_at(
        rule,
        rule.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-')),
    );
    let condition: String = condition.split_ascii_whitespace().collect();
    let is_dark = name == "media" && condition == "(prefers-color-scheme:dark)";
    if is_dark || HARMLESS.contains(&name) {
        return Ok(());
    }
    Err(rule_error(prelude, "a style rule with a condition"))
}

pub(super) fn rule_error(rule: &str, found: &str) -> DesignError {
    DesignError::unsupported(
        format!("{} in a style sheet", quoted(rule.trim())),
        found,
        "write its properties as attributes of the elements, or save the drawing as plain SVG",
    )
}

/// Condition on an element for a rule to apply to it.
pub(super) struct CssSelector {
    /// From the element outwards, each with the combinator to the next.
    parts: Vec<(CompoundSelector, Combinator)>,
    /// Numbers of ids, of classes and attributes, and of element names.
    pub(super) specificity: [usize; 3],
}

#[derive(Clone, Copy, PartialEq)]
enum Combinator {
    Descendant,
    Child,
    NextSibling,
}

#[derive(Default)]
struct CompoundSelector {
    tag: Option<String>,
    tests: Vec<ElementTest>,
}

enum ElementTest {
    Id(String),
    Class(String),
    Has(String),
    /// An attribute's name, the character before `=`, and the value.
    Is(String, char, String),
    Not(Box<CompoundSelector>),
    Root,
    FirstChild,
    /// States of links and pointers on screens.
    Never,
}

/// Result of matching: after `Nowhere`, no other ancestor needs to be tried.
#[derive(PartialEq)]
enum SelectorMatch {
    Yes,
    No,
    Nowhere,
}

impl CssSelector {
    /// Returns `None` for unknown syntax.
    fn read(text: &str) -> Option<Self> {
        let mut parts = Vec::new();
        let mut combinator = Combinator::Descendant;
        let spaced = text.replace(char::is_whitespace, " ");
        let spaced = spaced.replace('>', " > ").replace('+', " + ");
        for word in split(&spaced, ' ') {
            match word.trim() {
                "" => {}
                ">" => combinator = Combinator::Child,
                "+" => combinator = Combinator::NextSibling,
                word => {
                    parts.push((CompoundSelector::read(word)?, combinator));
                    combinator = Combinator::Descendant;
                }
            }
        }
        let tests = parts.iter().flat_map(|(part, _)| &part.tests);
        let (ids, others): (Vec<_>, Vec<_>) = tests.partition(|t| matches!(t, ElementTest::Id(_)));
        let tags = parts.iter().filter(|(part, _)| part.tag.is_some());
        let specificity = [ids.len(), others.len(), tags.count()];
        let is_outermost = |(_, from): &(_, Combinator)| *from == Combinator::Descendant;
        let is_complete =
            parts.first().is_some_and(is_outermost) && combinator == Combinator::Descendant;
        parts.reverse();
        is_complete.then_some(Self { parts, specificity })
    }

    /// Returns whether the selector matches `node`, and counts other elements examined in `steps`.
    pub(super) fn matches(&self, node: Node<'_, '_>, steps: &mut usize) -> bool {
        matches_from(node, &self.parts, steps) == SelectorMatch::Yes
    }
}

fn matches_from(
    node: Node<'_, '_>,
    parts: &[(CompoundSelector, Combinator)],
    steps: &mut usize,
) -> SelectorMatch {
    let Some(((part, combinator), outer)) = parts.split_first() else {
        return SelectorMatch::Yes;
    };
    if !part.matches(node) {
        return SelectorMatch::No;
    }
    if outer.is_empty() {
        return SelectorMatch::Yes;
    }
    let mut next = |node| {
        *steps += 1;
        matches_from(node, outer, steps)
    };
    match combinator {
        Combinator::Child => node.parent_element().map_or(SelectorMatch::Nowhere, next),
        Combinator::NextSibling => node.prev_sibling_element().map_or(SelectorMatch::No, next),
        Combinator::Descendant => {
            let ancestors = node.ancestors().skip(1).filter(Node::is_element);
            let found = ancestors
                .map(&mut next)
                .find(|found| *found != SelectorMatch::No);
            found.unwrap_or(SelectorMatch::Nowhere)
        }
    }
}

impl CompoundSelector {
    fn read(text: &str) -> Option<Self> {
        let (tag, mut rest) = split_name(text);
        let mut selector = Self {
            tag: (!tag.is_empty()).then(|| tag.to_owned()),
            tests: Vec::new(),
        };
        rest = match (tag, rest.strip_prefix('*')) {
            ("", Some(after)) => after,
            _ => rest,
        };
        while !rest.is_empty() {
            let kind = rest.chars().next()?;
            let after = rest.get(kind.len_utf8()..)?;
            if kind == '[' {
                let (inside, after) = after.split_once(']')?;
                selector.tests.push(attribute_test(inside)?);
                rest = after;
                continue;
            }
            if let Some(inside) = after.strip_prefix("not(").filter(|_| kind == ':') {
                let (other, after) = inside.split_once(')')?;
                let other = Box::new(Self::read(other.trim())?);
                selector.tests.push(ElementTest::Not(other));
                rest = after;
                continue;
            }
            let (word, after) = split_name(after);
            selector.tests.push(match (kind, word) {
                (_, "") => return None,
                ('#', id) => ElementTest::Id(id.to_owned()),
                ('.', class) => ElementTest::Class(class.to_owned()),
                (':', "root") => ElementTest::Root,
                (':', "first-child") => ElementTest::FirstChild,
                (':', "hover" | "active" | "focus" | "visited" | "link") => ElementTest::Never,
                _ => return None,
            });
            rest = after;
        }
        Some(selector)
    }

    fn matches(&self, node: Node<'_, '_>) -> bool {
        let tag = self.tag.as_deref();
        tag.is_none_or(|tag| tag == node.tag_name().name())
            && self.tests.iter().all(|test| test.matches(node))
    }
}

impl ElementTest {
    fn matches(&self, node: Node<'_, '_>) -> bool {
        match self {
            Self::Id(id) => node.attribute("id") == Some(id),
            Self::Class(class) => {
                let actual = node.attribute("class").unwrap_or("");
                actual.split_ascii_whitespace().any(|word| word == class)
            }
            Self::Has(name) => node.has_attribute(name.as_str()),
            Self::Is(name, operator, value) => {
                let actual = node.attribute(name.as_str());
                actual.is_some_and(|actual| attribute_matches(actual, *operator, value))
            }
            Self::Not(other) => !other.matches(node),
            Self::Root => node.parent_element().is_none(),
            Self::FirstChild => node.prev_sibling_element().is_none(),
            Self::Never => false,
        }
    }
}

fn attribute_test(inside: &str) -> Option<ElementTest> {
    let Some((name, value)) = inside.split_once('=') else {
        return Some(ElementTest::Has(inside.trim().to_owned()));
    };
    let operator = name.trim_end().chars().last()?;
    let name = name.trim_end().trim_end_matches(['^', '$', '*', '~', '|']);
    let value = value.trim().trim_matches(['"', '\'']);
    let (name, value) = (name.trim().to_owned(), value.to_owned());
    Some(ElementTest::Is(name, operator, value))
}

fn attribute_matches(actual: &str, operator: char, value: &str) -> bool {
    match operator {
        '^' => !value.is_empty() && actual.starts_with(value),
        '$' => !value.is_empty() && actual.ends_with(value),
        '*' => !value.is_empty() && actual.contains(value),
        '~' => actual.split_ascii_whitespace().any(|word| word == value),
        '|' => {
            let rest = actual.strip_prefix(value);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        }
        _ => actual == value,
    }
}

/// Splits a text into the name that it begins with, which may be empty, and the rest.
fn split_name(text: &str) -> (&str, &str) {
    let is_name_char = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_') || !c.is_ascii();
    split_at(text, text.find(|c: char| !is_name_char(c)))
}
