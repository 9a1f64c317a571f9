//! Certificate of a planner. It is bound to everything that it was examined with: any change voids it.

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
    /// The examined model, with its endpoint and settings.
    pub(crate) settings: PlannerSettings,
    /// Hash of the text before every question.
    pub(crate) prompt_hash: String,
    /// Hash of the list of tools as it was shown.
    pub(crate) tools_hash: String,
    /// Hash of the cases that the node asks.
    pub(crate) cases_hash: String,
    /// The program's version.
    pub(crate) version: String,
    /// Milliseconds since 1970.
    pub(crate) issued_ms: u64,
}

/// Conditions under which a node now asks a planner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExamConditions {
    /// Hash of the text before every question.
    pub(crate) prompt_hash: String,
    /// Hash of the list of tools.
    pub(crate) tools_hash: String,
    /// Hash of the cases: those that ship and fit, and the operator's own.
    pub(crate) cases_hash: String,
}

impl ExamConditions {
    /// Returns the conditions at a node with this preamble, these tools and these cases.
    pub(crate) fn of(preamble: &str, tools: &ExamToolbox, cases: &[ExamCase]) -> Self {
        Self {
            prompt_hash: prompt_hash(preamble),
            tools_hash: tools_hash(tools),
            cases_hash: cases_hash(cases),
        }
    }
}

impl PlannerCertificate {
    /// Creates the certificate of a run under these conditions.
    pub(crate) fn of(
        run: i64,
        conditions: &ExamConditions,
        settings: &PlannerSettings,
        level: Level,
        issued_ms: u64,
    ) -> Self {
        let ExamConditions {
            prompt_hash,
            tools_hash,
            cases_hash,
        } = conditions.clone();
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

    /// Reads a certificate from its signed text.
    pub(crate) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Returns its name.
    pub(crate) fn id(&self) -> String {
        Self::id_of(&self.text())
    }

    /// Returns the name of the certificate with this text: a hash of what is signed.
    pub(crate) fn id_of(text: &str) -> String {
        cut(&blake3::hash(text.as_bytes()).to_hex(), ID_DIGITS)
    }

    /// Returns the objections to the certificate at a node with these conditions that wants that level; empty if it is
    /// valid. `model_file` is the hash of the file that is now at the model's path, if anything can be read there.
    pub(crate) fn objections(
        &self,
        conditions: &ExamConditions,
        model_file: Option<&str>,
        required: Level,
    ) -> Vec<String> {
        let mut objections = Vec::new();
        if self.level < required {
            objections.push(format!(
                "it certifies level {}, but level {} is required",
                self.level.word(),
                required.word()
            ));
        }
        if self.version != env!("CARGO_PKG_VERSION") {
            objections.push(format!(
                "it was earned with version {} of the program, but this is {}",
                self.version,
                env!("CARGO_PKG_VERSION")
            ));
        }
        if self.tools_hash != conditions.tools_hash {
            objections.push("the list of tools has changed since then".to_owned());
        }
        if self.prompt_hash != conditions.prompt_hash {
            objections.push("the preamble of the questions has changed since then".to_owned());
        }
        if self.cases_hash != conditions.cases_hash {
            objections.push(
                "the cases have changed since then (the shipped ones or your own)".to_owned(),
            );
        }
        objections.extend(self.model_file_objection(model_file));
        objections
    }

    /// Returns the objection that the model's file has changed. A model without a named file is bound by its name alone.
    fn model_file_objection(&self, current: Option<&str>) -> Option<String> {
        let certified = self.settings.model_file.as_deref()?;
        let path = self.settings.model_path.as_deref().unwrap_or("unknown");
        match current {
            Some(current) if current == certified => None,
            Some(_) => Some(format!("the model's file {path} has changed since then")),
            None => Some(format!(
                "the model's file {path} can no longer be read and compared"
            )),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn current() -> ExamConditions {
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
        PlannerCertificate::of(7, &current(), &settings, Level::Align, 5)
    }

    #[test]
    fn it_holds_for_what_it_was_earned_with() {
        for level in [Level::Align, Level::Observe] {
            let found = certificate().objections(&current(), Some("f"), level);
            assert_eq!(found, [""; 0]);
        }
        let mut unbound = certificate();
        unbound.settings.model_file = None;
        assert_eq!(unbound.objections(&current(), None, Level::Align), [""; 0]);
    }

    #[test]
    fn every_change_voids_it_and_is_named() {
        let same = |_: &mut ExamConditions| ();
        let void = |change: fn(&mut ExamConditions), file, level| {
            let mut now = current();
            change(&mut now);
            certificate().objections(&now, file, level).join("; ")
        };
        assert!(void(same, Some("f"), Level::Stroke).contains("it certifies level align"));
        let align = Level::Align;
        assert!(void(|now| now.tools_hash.push('x'), Some("f"), align).contains("list of tools"));
        assert!(void(|now| now.prompt_hash.push('x'), Some("f"), align).contains("preamble"));
        assert!(void(|now| now.cases_hash.push('x'), Some("f"), align).contains("the cases have"));
        assert!(void(same, Some("g"), align).contains("file unknown has changed"));
        assert!(void(same, None, align).contains("can no longer be read"));
        let mut old = certificate();
        "0.0.0".clone_into(&mut old.version);
        let found = old.objections(&current(), Some("f"), align).join("; ");
        assert!(found.contains("with version 0.0.0"), "{found}");
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
