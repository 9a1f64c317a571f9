//! Certificate of a planner, bound to everything that it was examined with: any change voids it.

use serde::{Deserialize, Serialize};

use super::run::{cases_hash, prompt_hash, tools_hash};
use super::{ExamCase, ExamToolbox, Level, PlannerSettings};
use base::wording::cut;

/// Number of hexadecimal digits in a certificate's name.
const ID_DIGITS: usize = 16;

/// Certificate that a planner has earned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlannerCertificate {
    /// The run in the record.
    pub(crate) run: i64,
    /// Level that was reached.
    pub(crate) level: Level,
    /// The model that was asked, where and how.
    pub(crate) settings: PlannerSettings,
    /// Of the words before every question.
    pub(crate) prompt_hash: String,
    /// Of the list of tools, as it was shown.
    pub(crate) tools_hash: String,
    /// Of the cases that the node asks.
    pub(crate) cases_hash: String,
    /// The program's version.
    pub(crate) version: String,
    /// Milliseconds since 1970.
    pub(crate) issued_ms: u64,
}

/// Conditions under which a node now asks a planner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExamConditions {
    /// Of the words before every question.
    pub(crate) prompt_hash: String,
    /// Of the list of tools.
    pub(crate) tools_hash: String,
    /// Of the cases: those that ship and fit, and the operator's own.
    pub(crate) cases_hash: String,
}

impl ExamConditions {
    /// Of a node that shows these tools after these words, and asks these cases.
    pub(crate) fn of(preamble: &str, tools: &ExamToolbox, cases: &[ExamCase]) -> Self {
        Self {
            prompt_hash: prompt_hash(preamble),
            tools_hash: tools_hash(tools),
            cases_hash: cases_hash(cases),
        }
    }
}

impl PlannerCertificate {
    /// For a run at a node that shows and asks this.
    pub(crate) fn of(
        run: i64,
        now: &ExamConditions,
        settings: &PlannerSettings,
        level: Level,
        issued_ms: u64,
    ) -> Self {
        let ExamConditions {
            prompt_hash,
            tools_hash,
            cases_hash,
        } = now.clone();
        Self {
            run,
            level,
            settings: settings.clone(),
            prompt_hash,
            tools_hash,
            cases_hash,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            issued_ms,
        }
    }

    /// Returns the text that is signed.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The certificate that was signed.
    pub(crate) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Its name.
    pub(crate) fn id(&self) -> String {
        Self::id_of(&self.text())
    }

    /// The name of the certificate of this text: it follows from what is signed.
    pub(crate) fn id_of(text: &str) -> String {
        cut(&blake3::hash(text.as_bytes()).to_hex(), ID_DIGITS)
    }

    /// Returns the objections to the certificate at a node with these conditions that wants that level; empty if it is
    /// valid. `model_file` is the hash of the file that is now at the model's path, if anything can be read there.
    pub(crate) fn objections(
        &self,
        now: &ExamConditions,
        model_file: Option<&str>,
        wanted: Level,
    ) -> Vec<String> {
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
        if self.cases_hash != now.cases_hash {
            found.push(
                "the cases have changed since, those that ship or the operator's own".to_owned(),
            );
        }
        found.extend(self.against_file(model_file));
        found
    }

    /// A model whose file was not named is bound by its name alone.
    fn against_file(&self, now: Option<&str>) -> Option<String> {
        let then = self.settings.model_file.as_deref()?;
        let place = self.settings.model_path.as_deref().unwrap_or("unknown");
        match now {
            Some(now) if now == then => None,
            Some(_) => Some(format!("the model's file {place} has changed since")),
            None => Some(format!(
                "the model's file {place} cannot be read any more, so that nobody can say that it is the same"
            )),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn shown() -> ExamConditions {
        ExamConditions {
            prompt_hash: "p".to_owned(),
            tools_hash: "t".to_owned(),
            cases_hash: "c".to_owned(),
        }
    }

    fn certificate() -> PlannerCertificate {
        let settings = PlannerSettings {
            model_file: Some("f".to_owned()),
            ..PlannerSettings::new("http://a/v1", "m")
        };
        PlannerCertificate::of(7, &shown(), &settings, Level::Align, 5)
    }

    #[test]
    fn it_holds_for_what_it_was_earned_with() {
        for level in [Level::Align, Level::Observe] {
            let found = certificate().objections(&shown(), Some("f"), level);
            assert_eq!(found, [""; 0]);
        }
        let mut unbound = certificate();
        unbound.settings.model_file = None;
        assert_eq!(unbound.objections(&shown(), None, Level::Align), [""; 0]);
    }

    #[test]
    fn every_change_voids_it_and_is_named() {
        let same = |_: &mut ExamConditions| ();
        let void = |change: fn(&mut ExamConditions), file, level| {
            let mut now = shown();
            change(&mut now);
            certificate().objections(&now, file, level).join("; ")
        };
        assert!(void(same, Some("f"), Level::Stroke).contains("it is for align"));
        let align = Level::Align;
        assert!(void(|now| now.tools_hash.push('x'), Some("f"), align).contains("list of tools"));
        assert!(void(|now| now.prompt_hash.push('x'), Some("f"), align).contains("words before"));
        assert!(void(|now| now.cases_hash.push('x'), Some("f"), align).contains("the cases have"));
        assert!(void(same, Some("g"), align).contains("file unknown has changed"));
        assert!(void(same, None, align).contains("cannot be read any more"));
        let mut old = certificate();
        "0.0.0".clone_into(&mut old.version);
        let found = old.objections(&shown(), Some("f"), align).join("; ");
        assert!(found.contains("0.0.0 then"), "{found}");
    }

    #[test]
    fn its_name_follows_from_everything_it_says() {
        let one = certificate();
        let mut other = one.clone();
        other.settings.temperature += 0.1;
        assert_ne!(one.id(), other.id());
        assert_eq!(PlannerCertificate::read(&one.text()).unwrap(), one);
        assert_eq!(one.id(), PlannerCertificate::id_of(&one.text()));
    }
}
