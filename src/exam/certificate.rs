//! What a planner has earned, bound to everything that it was examined with: any change voids it.

use serde::{Deserialize, Serialize};

use super::{Exam, Level, Settings};

/// How many hexadecimal digits name a certificate.
const ID_DIGITS: usize = 16;

/// What a planner has earned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// The run in the record.
    pub run: i64,
    /// What was reached.
    pub level: Level,
    /// Which model was asked, where and how.
    pub settings: Settings,
    /// Of the words before every question.
    pub prompt_hash: String,
    /// Of the list of tools, as it was shown.
    pub tools_hash: String,
    /// Of the cases.
    pub cases_hash: String,
    /// The program's version.
    pub version: String,
    /// Milliseconds since 1970.
    pub issued_ms: u64,
}

/// What a node shows a planner now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Of the words before every question.
    pub prompt_hash: String,
    /// Of the list of tools.
    pub tools_hash: String,
}

impl Shown {
    /// What an exam shows.
    #[must_use]
    pub fn by(exam: &Exam) -> Self {
        Self {
            prompt_hash: exam.prompt_hash(),
            tools_hash: exam.tools_hash(),
        }
    }
}

impl Certificate {
    /// For a run of this exam.
    #[must_use]
    pub fn of(run: i64, exam: &Exam, settings: &Settings, level: Level, issued_ms: u64) -> Self {
        let Shown {
            prompt_hash,
            tools_hash,
        } = Shown::by(exam);
        Self {
            run,
            level,
            settings: settings.clone(),
            prompt_hash,
            tools_hash,
            cases_hash: exam.cases_hash(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            issued_ms,
        }
    }

    /// What is signed.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The certificate that was signed.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Its name: it follows from what is signed.
    #[must_use]
    pub fn id(&self) -> String {
        let digits = blake3::hash(self.text().as_bytes()).to_hex();
        digits.chars().take(ID_DIGITS).collect()
    }

    /// What stands against it at a node that shows this and wants that level; nothing, where it holds.
    #[must_use]
    pub fn against(&self, now: &Shown, wanted: Level) -> Vec<String> {
        let mut found = Vec::new();
        if self.level < wanted {
            found.push(format!(
                "it is for {}, and {} is wanted",
                self.level.word(),
                wanted.word()
            ));
        }
        if self.version != env!("CARGO_PKG_VERSION") {
            found.push(format!(
                "the program was {} then and is {} now",
                self.version,
                env!("CARGO_PKG_VERSION")
            ));
        }
        if self.tools_hash != now.tools_hash {
            found.push("the list of tools has changed since".to_owned());
        }
        if self.prompt_hash != now.prompt_hash {
            found.push("the words before every question have changed since".to_owned());
        }
        found
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::exam::Toolbox;

    fn exam() -> Exam {
        Exam {
            cases: Vec::new(),
            tools: Toolbox::default(),
            preamble: "You draw.".to_owned(),
            asked: None,
            notes: Vec::new(),
        }
    }

    fn certificate() -> Certificate {
        Certificate::of(
            7,
            &exam(),
            &Settings::new("http://a/v1", "m"),
            Level::Align,
            5,
        )
    }

    #[test]
    fn it_holds_for_what_it_was_earned_with() {
        let shown = Shown::by(&exam());
        assert_eq!(certificate().against(&shown, Level::Align), [""; 0]);
        assert_eq!(certificate().against(&shown, Level::Observe), [""; 0]);
    }

    #[test]
    fn every_change_voids_it_and_is_named() {
        let wanted = |change: fn(&mut Certificate), level| {
            let mut changed = certificate();
            change(&mut changed);
            changed.against(&Shown::by(&exam()), level).join("; ")
        };
        assert!(wanted(|_| (), Level::Stroke).contains("it is for align"));
        let version = |one: &mut Certificate| "0.0.0".clone_into(&mut one.version);
        assert!(wanted(version, Level::Align).contains("0.0.0 then"));
        let tools = |one: &mut Certificate| one.tools_hash.push('x');
        assert!(wanted(tools, Level::Align).contains("list of tools"));
        let prompt = |one: &mut Certificate| one.prompt_hash.push('x');
        assert!(wanted(prompt, Level::Align).contains("words before"));
    }

    #[test]
    fn its_name_follows_from_everything_it_says() {
        let one = certificate();
        let mut other = one.clone();
        other.settings.temperature += 0.1;
        assert_ne!(one.id(), other.id());
        assert_eq!(Certificate::read(&one.text()).unwrap(), one);
    }
}
