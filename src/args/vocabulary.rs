//! The words that the reader knows, from `vocabulary.txt`: closed lists of keys, and words in the languages that callers use.

use super::word_table::{FoldedText, WordTable};
use std::{collections::HashMap, sync::LazyLock};

/// Everything in the file.
pub(super) struct ReaderVocabulary {
    /// Keys that frameworks and language-model APIs add: harmless regardless of their value.
    framework: Vec<String>,
    /// Keys of presentation and transport.
    presentation: Vec<String>,
    /// Words of keys that withhold the act unless they are true: `confirm`, `execute`.
    assents: Vec<String>,
    /// Whole keys that withhold the act if they are denied: `start`, `is_armed`. In a longer key they mean anything.
    assents_alone: Vec<String>,
    /// Words of keys that withhold the act unless they are false: `cancel`, `test_mode`.
    dissents: Vec<String>,
    /// Words of keys that withhold the act together with one of `acts`: `do_not_draw`, `plan_only`.
    limits: Vec<String>,
    acts: Vec<String>,
    /// Acts in other languages.
    acts_abroad: WordTable,
    /// Words of keys that together withhold the act until a person agrees: `requires_confirmation`, `wait_for_approval`.
    gates: Vec<String>,
    consents: Vec<String>,
    /// Words of keys that say when or on what condition.
    when_keys: Vec<String>,
    /// Words of keys for something physical: how far, how fast, how often, with what.
    physical: Vec<String>,
    /// Physical words that only name a thing, and so ask for nothing in a value.
    objects: Vec<String>,
    /// Words of keys whose texts explain or identify, in English and in other languages; and last words of keys whose texts
    /// ask for something all the same: `title_request`.
    remarks: Vec<String>,
    remarks_abroad: WordTable,
    wishes: Vec<String>,
    /// Words of keys that say whose something is, and those that may stand beside them: `for_whom`, `user_role`; and what
    /// a person does in a key with `by`: `requested_by`.
    whose: Vec<String>,
    whose_fillers: Vec<String>,
    doers: Vec<String>,
    /// Physical words that say in a longer key what was chosen, and ask for nothing: `selected_scene`.
    choices: Vec<String>,
    /// Words of a sentence that name nothing.
    nameless: Vec<String>,
    /// Physical words in other languages.
    physical_abroad: WordTable,
    /// Words of keys under which a number counts or names something of the caller's own, such as `step` and `user_id`; and
    /// the words that may stand beside them.
    counters: Vec<String>,
    counter_fillers: Vec<String>,
    /// Requests for a dry run, in a key or in text.
    pub(super) dry_run: WordTable,
    /// Whole values that ask for a dry run.
    dry_run_values: Vec<String>,
    /// Whole keys that ask for a dry run if true, such as `sim` and `is_draft`; and the words that may stand beside them.
    dry_run_if_true: Vec<String>,
    dry_run_fillers: Vec<String>,
    /// Words that make up names of a dry run.
    dry_run_flags: Vec<String>,
    /// Words that turn a key about a dry run into its opposite, or into what comes after it: `no_dry_run`, `dry_run_done`.
    reversals: Vec<String>,
    /// Acts other than drawing, as values of `mode_keys`.
    other_acts: Vec<String>,
    /// Words of flags that ask for help, or say that all is done, and those that may stand beside them.
    inquiries: Vec<String>,
    inquiry_fillers: Vec<String>,
    /// Words that are not misspellings of a parameter's name: `note` is not `node`.
    ordinary: Vec<String>,
    /// Words that ask, or name another act, in the place of a tool's namespace; and those that are names of places there.
    questions: Vec<String>,
    places: Vec<String>,
    /// Words for yes.
    yes: Vec<String>,
    /// Keys whose value names the act: `mode`, `action`.
    mode_keys: Vec<String>,
    /// Keys whose value "nothing" asks for no act at all.
    act_keys: Vec<String>,
    /// Negations and refusals.
    pub(super) negations: WordTable,
    /// Words for arguments: "no arguments" denies only those.
    argument_words: Vec<String>,
    /// Conditions, times and limits: words that make it anything other than "now, and all of it".
    pub(super) conditions: WordTable,
    /// Other names of parameters, translated or paraphrased, by parameter name.
    meanings: Vec<(String, Vec<String>)>,
    /// Words around a call that mean nothing; `{}` is the tool's name.
    pub(super) lead_ins: Vec<Vec<String>>,
    /// Names that code fences carry.
    pub(super) fence_names: Vec<String>,
    /// Words that make up the special tokens of chat templates.
    pub(super) token_words: Vec<String>,
}

/// Returns the vocabulary, which is read once.
pub(super) fn vocabulary() -> &'static ReaderVocabulary {
    static VOCABULARY: LazyLock<ReaderVocabulary> =
        LazyLock::new(|| ReaderVocabulary::new(&sections(include_str!("vocabulary.txt"))));
    &VOCABULARY
}

/// Returns the entries of each section by its name.
fn sections(file: &'static str) -> HashMap<&'static str, Vec<String>> {
    let parts = file.split("\n[").skip(1);
    let section = |part: &'static str| {
        let (name, body) = part.split_once("]\n")?;
        let lines: Vec<&str> = body.lines().filter(|line| !line.starts_with('#')).collect();
        let text = lines.join(" ");
        let entries = text.split(',').map(str::trim);
        let entries = entries.filter(|entry| !entry.is_empty());
        Some((name, entries.map(str::to_owned).collect()))
    };
    parts.filter_map(section).collect()
}

impl ReaderVocabulary {
    fn new(sections: &HashMap<&str, Vec<String>>) -> Self {
        let list = |name: &str| sections.get(name).cloned().unwrap_or_default();
        let table = |name: &str| WordTable::new(&list(name));
        let meaning = |(name, words): (&&str, &Vec<String>)| {
            let words = words.iter().map(|word| FoldedText::new(word).letters());
            let name = name.strip_prefix("meaning ")?;
            Some((name.to_owned(), words.collect()))
        };
        let phrase = |word: &String| FoldedText::new(word).phrase();
        let folded = |name: &str| list(name).iter().map(phrase).collect();
        // `sin` and `sans` alone may be a wave and a font.
        let acts = [list("acts"), list("acts_abroad")].concat();
        let without_act = |act: &String| [format!("sin {act}"), format!("sans {act}")];
        let latin = acts.iter().filter(|act| !act.starts_with('*'));
        let negations = [list("negations"), latin.flat_map(without_act).collect()].concat();
        let words = |phrase: &String| phrase.split(' ').map(str::to_owned).collect();
        Self {
            framework: list("framework_keys"),
            presentation: list("presentation_keys"),
            assents: list("assents"),
            assents_alone: list("assents_alone"),
            dissents: list("dissents"),
            limits: list("limits"),
            acts: list("acts"),
            acts_abroad: table("acts_abroad"),
            gates: list("gates"),
            consents: list("consents"),
            when_keys: list("when_keys"),
            physical: list("physical"),
            objects: list("objects"),
            remarks: list("remarks"),
            remarks_abroad: table("remarks_abroad"),
            wishes: list("wishes"),
            whose: list("whose"),
            whose_fillers: list("whose_fillers"),
            doers: list("doers"),
            choices: list("choices"),
            nameless: list("nameless"),
            physical_abroad: table("physical_abroad"),
            counters: list("counters"),
            counter_fillers: list("counter_fillers"),
            dry_run: table("dry_run"),
            dry_run_values: folded("dry_run_values"),
            dry_run_if_true: folded("dry_run_if_true"),
            dry_run_fillers: list("dry_run_fillers"),
            dry_run_flags: list("dry_run_flags"),
            reversals: list("reversals"),
            other_acts: folded("other_acts"),
            inquiries: folded("inquiries"),
            inquiry_fillers: list("inquiry_fillers"),
            ordinary: list("ordinary"),
            questions: list("questions"),
            places: list("places"),
            yes: folded("yes"),
            mode_keys: list("mode_keys"),
            act_keys: list("act_keys"),
            negations: WordTable::new(&negations),
            argument_words: list("argument_words"),
            conditions: table("conditions"),
            meanings: sections.iter().filter_map(meaning).collect(),
            lead_ins: list("lead_ins").iter().map(words).collect(),
            fence_names: list("fence_names"),
            token_words: list("token_words"),
        }
    }

    /// Returns whether a value asks for a dry run.
    pub(super) fn asks_for_dry_run(&self, value: &FoldedText) -> bool {
        self.dry_run.is_in(value) || self.is_dry_run_value(value)
    }

    /// Returns whether a text asks for a dry run and says nothing else: `just a dry-run`, `do not draw, please`.
    pub(super) fn is_dry_run_alone(&self, text: &FoldedText) -> bool {
        /// Most fillers at either end of an entry: `keep the pen up`.
        const ENTRY_FILLERS_MAX: usize = 4;
        let is_said = |word: &&str| {
            !holds(&self.dry_run_fillers, word) && !matches!(*word, "a" | "an" | "the" | "please")
        };
        let words: Vec<&str> = text.words().collect();
        let ends = words.iter().position(is_said);
        // No entry is made of fillers alone.
        let Some((first, last)) = ends.zip(words.iter().rposition(is_said)) else {
            return false;
        };
        let is_entry = |part: &[&str]| {
            let part = FoldedText::new(&part.join(" "));
            self.dry_run.is_entry(&part) || self.is_dry_run_value(&part)
        };
        let mut starts = first.saturating_sub(ENTRY_FILLERS_MAX)..=first;
        starts.any(|start| {
            let mut ends = (last..words.len()).take(1 + ENTRY_FILLERS_MAX);
            ends.any(|end| words.get(start..=end).is_some_and(is_entry))
        })
    }

    /// Returns whether a key names the act or says what is wanted: `mode`, `instruction`, `user_request`.
    pub(super) fn asks_in_words(&self, key: &FoldedText) -> bool {
        let is_wish = |word: &str| holds(&self.wishes, word);
        self.mode_keys.contains(&key.letters()) || key.words().last().is_some_and(is_wish)
    }

    fn is_dry_run_value(&self, value: &FoldedText) -> bool {
        self.dry_run_values.contains(&value.phrase())
    }

    /// Returns whether words around arguments ask for a dry run, or deny something.
    pub(super) fn says_no(&self, words: &FoldedText) -> bool {
        self.dry_run.is_near(words) || self.is_dry_run_value(words) || self.negations.is_in(words)
    }

    /// Returns whether a text without arguments denies more than the existence of arguments: `don't`, `not now`.
    pub(super) fn declines(&self, text: &FoldedText) -> bool {
        if !self.negations.is_in(text) {
            return false;
        }
        // Denied arguments, as in `no valid parameters`, do not count; any other denial is a refusal.
        let words: Vec<&str> = text.words().collect();
        let is_about =
            |word: Option<&&str>| word.is_some_and(|word| holds(&self.argument_words, word));
        let denies_arguments = |at: usize| {
            let is_quantity = matches!(words.get(at), Some(&("no" | "any" | "without")));
            is_about(words.get(at + 1)) || (is_quantity && is_about(words.get(at + 2)))
        };
        let others = words
            .iter()
            .enumerate()
            .filter(|(at, _)| !denies_arguments(*at));
        let others: Vec<&str> = others.map(|(_, word)| *word).collect();
        self.negations.is_in(&FoldedText::new(&others.join(" ")))
    }

    /// Returns whether a key is one that frameworks add, or one of presentation and transport.
    pub(super) fn is_harmless(&self, key: &FoldedText) -> bool {
        self.framework.contains(&key.letters()) || self.is_presentation(key)
    }

    /// Returns whether a key is one of presentation or transport.
    pub(super) fn is_presentation(&self, key: &FoldedText) -> bool {
        self.presentation.contains(&key.letters())
    }

    /// Returns whether a key withholds the act if its value is false.
    pub(super) fn withholds_if_false(&self, key: &FoldedText) -> bool {
        has_word(key, &self.assents)
    }

    /// Returns whether a key is nothing but a word for the act or for leave to act: `start`, `is_armed`, `pen_down`.
    pub(super) fn is_assent_alone(&self, key: &FoldedText) -> bool {
        is_name_of(key, &[&self.assents_alone], &self.dry_run_fillers)
    }

    /// Returns whether a key withholds the act unless its value is false.
    pub(super) fn withholds_unless_false(&self, key: &FoldedText) -> bool {
        self.awaits_consent(key) || self.names_dissent(key) || self.forbids_act(key)
    }

    /// Returns whether a word of a key withholds the act: `stop`, `emergency_stop`.
    pub(super) fn names_dissent(&self, key: &FoldedText) -> bool {
        let is_locked = |word: &str| word == "locked";
        let is_dissent = |word: &str| holds(&self.dissents, word) && !is_locked(word);
        // `aspect_ratio_locked` locks no arm.
        let locks_act = || {
            let is_other = |word: &str| !is_locked(word) && !holds(&self.dry_run_fillers, word);
            let mut others = key.words().filter(|word| is_other(word));
            key.words().any(is_locked) && others.all(|word| holds(&self.acts, word))
        };
        key.words().any(is_dissent) || holds(&self.dissents, &key.letters()) || locks_act()
    }

    fn awaits_consent(&self, key: &FoldedText) -> bool {
        has_word(key, &self.gates) && has_word(key, &self.consents)
    }

    /// Returns whether a key says that no consent is needed, which a false under it denies: `no_approval_required`.
    pub(super) fn waives_consent(&self, key: &FoldedText) -> bool {
        self.awaits_consent(key) && self.negations.is_in(key)
    }

    /// Returns whether a key asks for consent and says nothing else, so that a false under it asks for nothing:
    /// `requires_approval`.
    pub(super) fn is_consent_flag(&self, key: &FoldedText) -> bool {
        self.awaits_consent(key)
            && is_made_of(key, &[&self.gates, &self.consents], &self.dry_run_fillers)
    }

    /// Returns whether a key forbids or limits an act in words: `do_not_draw`, `plan_only`, `nicht_malen`.
    pub(super) fn forbids_act(&self, key: &FoldedText) -> bool {
        let names_act = has_word(key, &self.acts) || self.acts_abroad.is_in(key);
        let begins_with_without = matches!(key.words().next(), Some("sin" | "sans"));
        names_act && (begins_with_without || self.limits_act(key) || self.negations.is_in(key))
    }

    /// Returns whether a word of a key limits an act. Behind another word a block is a thing: `stroke_block`.
    fn limits_act(&self, key: &FoldedText) -> bool {
        let is_limit =
            |(at, word): (usize, &str)| holds(&self.limits, word) && (at == 0 || word != "block");
        key.words().enumerate().any(is_limit) || holds(&self.limits, &key.letters())
    }

    /// Returns whether a key ends like the number of something: `pen_no`.
    pub(super) fn ends_with_number(&self, key: &FoldedText) -> bool {
        key.words().count() > 1 && key.words().last() == Some("no")
    }

    /// Returns whether a tool's namespace says how or whether to call the tool, not where it is: `slow`, `help`.
    pub(super) fn says_how(&self, namespace: &FoldedText) -> bool {
        let lists = [&self.physical, &self.dry_run_if_true, &self.questions];
        let is_manner = |word: &str| lists.iter().any(|list| holds(list, word));
        let mut words = namespace.words();
        words.any(|word| is_manner(word) && !holds(&self.places, word))
    }

    /// Returns whether a word alone withholds the act: `stop`, `test`.
    pub(super) fn is_dissent(&self, word: &FoldedText) -> bool {
        self.dissents.contains(&word.letters())
    }

    /// Returns whether a key asks for a dry run if its value is true: `sim`, `is_draft`, `planOnly`.
    pub(super) fn asks_if_true(&self, key: &FoldedText) -> bool {
        is_name_of(key, &[&self.dry_run_if_true], &self.dry_run_fillers)
    }

    /// Returns whether a key begins with a verb of doing, so that a false under it may deny the act: `run_plan`, `use_draft`.
    pub(super) fn begins_with_doing(&self, key: &FoldedText) -> bool {
        let first = key.words().next();
        first.is_some_and(|word| matches!(word, "run" | "use" | "do"))
    }

    /// Returns whether a key is nothing but a name of a dry run: `simulate`, `previewOnly`.
    pub(super) fn is_dry_run_flag(&self, key: &FoldedText) -> bool {
        is_made_of(key, &[&self.dry_run_flags], &self.dry_run_fillers)
    }

    /// Returns whether a key about a dry run denies it or names what comes after it, so that neither true nor false under it
    /// is clear: `no_dry_run`, `skipPreview`, `execute_after_dry_run`.
    pub(super) fn reverses_dry_run(&self, key: &FoldedText) -> bool {
        let is_reversal = |word: &str| {
            holds(&self.reversals, word) || self.negations.is_in(&FoldedText::new(word))
        };
        let (reversals, rest): (Vec<&str>, Vec<&str>) =
            key.words().partition(|word| is_reversal(word));
        let is_dry_run = |text: &str| self.dry_run.is_in_key(&FoldedText::new(text));
        if !reversals.is_empty() {
            return is_dry_run(&rest.join(" "));
        }
        let letters = key.letters();
        let mut ends = self.reversals.iter();
        ends.any(|word| {
            let rest = letters.strip_prefix(word.as_str());
            let rest = rest.or_else(|| letters.strip_suffix(word.as_str()));
            rest.is_some_and(|rest| self.dry_run.is_in(&FoldedText::new(rest)))
        })
    }

    /// Returns whether a key for the act names another act than drawing: `"op": "delete"`.
    pub(super) fn is_other_act(&self, key: &FoldedText, value: &FoldedText) -> bool {
        self.mode_keys.contains(&key.letters()) && self.other_acts.contains(&value.phrase())
    }

    /// Returns whether a flag asks for help or for another act, or says that all is done: `help`, `align`, `already_done`.
    pub(super) fn asks_otherwise(&self, flag: &FoldedText) -> bool {
        is_made_of(
            flag,
            &[&self.inquiries, &self.other_acts],
            &self.inquiry_fillers,
        )
    }

    /// Returns whether a folded key is an ordinary word, and so not a misspelling.
    pub(super) fn is_ordinary(&self, key: &str) -> bool {
        holds(&self.ordinary, key)
    }

    /// Returns whether a value is a word for yes.
    pub(super) fn is_yes(&self, value: &FoldedText) -> bool {
        self.yes.contains(&value.phrase())
    }

    /// Returns whether a key and its value name a mode in which nothing moves: `"mode": "test"`, `"action": "stop"`,
    /// `"mode": "dri_run"`.
    pub(super) fn is_still_mode(&self, key: &FoldedText, value: &FoldedText) -> bool {
        let words = [self.dry_run_if_true.as_slice(), &self.dissents];
        self.mode_keys.contains(&key.letters())
            && (is_name_of(value, &words, &self.dry_run_fillers) || self.dry_run.is_near(value))
    }

    /// Returns whether a key names the act: `action`, `do`.
    pub(super) fn says_act(&self, key: &FoldedText) -> bool {
        self.act_keys.contains(&key.letters())
    }

    /// Returns whether a name is that of another tool of this program: `reset`, `robot_align`, `functions.sense`.
    pub(super) fn is_other_tool(&self, name: &str) -> bool {
        let name = name.rsplit(['.', '/', ':']).next().unwrap_or(name);
        let phrase = FoldedText::new(name).phrase();
        let phrase = phrase.strip_prefix("robot ").unwrap_or(&phrase);
        holds(&self.other_acts, phrase)
    }

    /// Returns whether a key states a time or a condition.
    pub(super) fn is_conditional(&self, key: &FoldedText) -> bool {
        has_word(key, &self.when_keys) || self.conditions.is_in(key)
    }

    /// Returns whether a key refers to something physical.
    pub(super) fn is_physical(&self, key: &FoldedText) -> bool {
        has_word(key, &self.physical) || self.physical_abroad.is_in(key)
    }

    /// Returns whether a text says how, how much or where to draw: `slowly`, `the left half`. `is_named` tells which words
    /// are only the name of something that is used.
    pub(super) fn instructs(&self, text: &str, is_named: impl Fn(&str) -> bool) -> bool {
        if self.physical_abroad.is_in(&FoldedText::new(text)) {
            return true;
        }
        let is_manner = |word: &str| holds(&self.physical, word) && !holds(&self.objects, word);
        let clauses: Vec<FoldedText> = text.split(CLAUSE_ENDS).map(FoldedText::new).collect();
        let with_comma = |clause| FoldedText::words(clause).chain([","]);
        let words: Vec<&str> = clauses.iter().flat_map(with_comma).collect();
        let instructs = |(at, word): (usize, &&str)| {
            is_manner(word) && !is_named(word) && !self.is_idle(&words, at)
        };
        words.iter().enumerate().any(instructs)
    }

    /// Returns whether a physical word has another meaning among its neighbours: `on the sheet`, `first try`, `at last`.
    fn is_idle(&self, words: &[&str], at: usize) -> bool {
        let is_word = |word: &&&str| **word != ",";
        let (earlier, later) = words.split_at_checked(at).unwrap_or_default();
        let later = later.get(1..).unwrap_or_default();
        let before = earlier.iter().rfind(is_word).copied();
        let mut near = later.iter().filter(is_word).take(2).copied().peekable();
        let after = near.peek().copied();
        let is_physical = |word: &str| holds(&self.physical, word);
        match words.get(at).copied().unwrap_or_default() {
            "sheet" => matches!(before, Some("the" | "a" | "this" | "my" | "your" | "paper")),
            "write" | "writing" => {
                matches!(
                    after,
                    None | Some("a" | "an" | "the" | "it" | "this" | "on")
                )
            }
            "first" | "last" => {
                let is_chosen = matches!(before, Some("the" | "only" | "just"));
                let is_idiom = after.is_some() || before == Some("at");
                !is_chosen && is_idiom && !near.any(is_physical)
            }
            "left" => matches!(before, Some("i" | "we" | "you" | "they" | "was" | "were")),
            "right" => is_idle_right(earlier, later),
            _ => false,
        }
    }

    /// Returns whether the only physical words of a key say what was chosen, and it has others: `selected_scene`.
    pub(super) fn names_choice(&self, key: &FoldedText) -> bool {
        let is_other = |word: &str| !holds(&self.choices, word);
        key.words().any(is_other) && self.is_choice(key)
    }

    /// Returns whether the only physical words of a key say what was chosen: `selected`, `writing`.
    pub(super) fn is_choice(&self, key: &FoldedText) -> bool {
        let is_choice = |word: &str| holds(&self.choices, word);
        let mut physical = key.words().filter(|word| holds(&self.physical, word));
        !self.physical_abroad.is_in(key) && physical.all(is_choice)
    }

    /// Returns whether the text under a key explains the call or says whose it is: `reason`, `title`, `user`, `requested_by`;
    /// not so a wish, whosever it is: `user_request`, `step_details`.
    pub(super) fn is_remark(&self, key: &FoldedText) -> bool {
        let explains = has_word(key, &self.remarks) || self.remarks_abroad.is_in(key);
        // The subject of `reason_for_request` is the reason.
        let subject = key
            .words()
            .take_while(|word| !matches!(*word, "for" | "of"));
        let is_wish = subject.last().is_some_and(|word| holds(&self.wishes, word));
        let is_done_by = key.words().last() == Some("by") && has_word(key, &self.doers);
        (explains && !is_wish) || is_done_by || is_made_of(key, &[&self.whose], &self.whose_fillers)
    }

    /// Returns whether a key consists of a counter's words only: `step_number`, `current_step`.
    pub(super) fn counts(&self, key: &FoldedText) -> bool {
        is_made_of(key, &[&self.counters], &self.counter_fillers)
    }

    /// Returns whether a number under this key counts or names something of the caller's own.
    pub(super) fn is_counter(&self, key: &FoldedText) -> bool {
        has_word(key, &self.counters)
    }

    /// Returns whether a word of a sentence, in lower case, names no scene, arm or node: `now`, `please`, `on`.
    pub(super) fn names_nothing(&self, word: &str) -> bool {
        holds(&self.nameless, word)
    }

    /// Returns whether a key means the parameter of this name in another language.
    pub(super) fn means(&self, key: &FoldedText, name: &str) -> bool {
        let letters = key.letters();
        let mut meanings = self.meanings.iter();
        meanings.any(|(known, words)| known == name && words.contains(&letters))
    }
}

/// Marks that end a clause.
pub(super) const CLAUSE_ENDS: [char; 7] = [',', ';', '.', ':', '!', '?', '\n'];

/// Returns whether `right`, between these words, is no side: `right now`, `all right`, `you are right`, `Right, drawing`.
fn is_idle_right(earlier: &[&str], later: &[&str]) -> bool {
    let (earlier, is_all) = match earlier {
        [earlier @ .., "all"] => (earlier, true),
        earlier => (earlier, false),
    };
    let ends_clause = matches!(later, [",", ..]);
    match earlier {
        _ if matches!(later, ["now" | "away", ..]) => true,
        [] => {
            // Without a comma, `right drawing` and `right here` are places.
            let goes_on = match later {
                [",", word, ..] => CONTINUATIONS.contains(word) || ACTS_AFTER_RIGHT.contains(word),
                [word, ..] => CONTINUATIONS.contains(word),
                [] => false,
            };
            goes_on || (is_all && ends_clause)
        }
        [.., "looks" | "seems" | "thats" | "its" | "youre"]
        | [
            ..,
            "it" | "that" | "this" | "everything" | "you" | "we" | "they" | "user",
            "is" | "are" | "was",
        ] => ends_clause,
        _ => false,
    }
}

/// Words by which a text goes on after "right" or "all right".
const CONTINUATIONS: [&str; 8] = ["i", "ill", "we", "well", "lets", "so", "now", "then"];

/// Words by which a text goes on after "right" and a comma.
const ACTS_AFTER_RIGHT: [&str; 3] = ["here", "drawing", "starting"];

/// Returns whether a text has no other words than `words` and `fillers`, and at least one of `words`.
fn is_made_of(text: &FoldedText, words: &[&[String]], fillers: &[String]) -> bool {
    let is_known = |word: &str| words.iter().any(|list| holds(list, word));
    let is_either = |word: &str| is_known(word) || holds(fillers, word);
    text.words().any(is_known) && text.words().all(is_either)
}

/// As [`is_made_of`], or whether the whole text is one of `words`, which may be several in one: `view_only`.
fn is_name_of(text: &FoldedText, words: &[&[String]], fillers: &[String]) -> bool {
    let letters = text.letters();
    is_made_of(text, words, fillers) || words.iter().any(|list| holds(list, &letters))
}

fn holds(list: &[String], word: &str) -> bool {
    list.iter().any(|known| known == word)
}

fn has_word(key: &FoldedText, words: &[String]) -> bool {
    key.words().any(|word| holds(words, word)) || holds(words, &key.letters())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    #[test]
    fn every_section_is_read() {
        let sections = sections(include_str!("vocabulary.txt"));
        for name in [
            "framework_keys",
            "presentation_keys",
            "assents",
            "dissents",
            "limits",
            "acts",
            "when_keys",
            "physical",
            "physical_abroad",
            "counters",
            "dry_run",
            "yes",
            "negations",
            "conditions",
            "lead_ins",
            "fence_names",
            "token_words",
        ] {
            assert!(sections.get(name).unwrap().len() > 10, "{name}");
        }
        assert!(sections.get("meaning scene").unwrap().len() > 20);
        assert!(
            sections.keys().all(|name| name.len() < 20),
            "{:?}",
            sections.keys()
        );
    }

    /// An instruction under a word for the scene would be left out.
    #[test]
    fn no_other_name_of_a_parameter_is_a_remark() {
        for (name, words) in &vocabulary().meanings {
            let mut words = words.iter();
            let remark = words.find(|word| vocabulary().is_remark(&FoldedText::new(word)));
            assert_eq!(remark, None, "{name}");
        }
    }

    /// A lead-in that made a request would hide it.
    #[test]
    fn no_lead_in_asks_for_anything() {
        for words in &vocabulary().lead_ins {
            let text = FoldedText::new(&words.join(" "));
            let vocab = vocabulary();
            assert!(!vocab.dry_run.is_near(&text), "{words:?}");
            assert!(!vocab.negations.is_in(&text), "{words:?}");
        }
    }

    #[test]
    fn no_harmless_key_asks_for_a_dry_run() {
        let vocab = vocabulary();
        for key in vocab.framework.iter().chain(&vocab.presentation) {
            assert!(
                !vocabulary().dry_run.is_in_key(&FoldedText::new(key)),
                "{key}"
            );
        }
    }
}
