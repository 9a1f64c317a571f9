//! The certificate that a caller's token needs before it may move an arm, by the node file and by the token file.

use std::path::Path;
use std::sync::Arc;

use call::{Refusal, refusal};
use caller::{TokenCard, TokenStore};
use catalogue::KnownNames;
use config::{NodeFile, RequiredQualification};
use tools::CertificateChecker;

/// Checks certificates against what a node shows now.
pub trait CertificateCheck: Send + Sync {
    /// Checks that the certificate attached to this token is of at least this level and still valid.
    ///
    /// # Errors
    /// The reason why that is not proven.
    fn proves(
        &self,
        card: &TokenCard,
        level: RequiredQualification,
        here: &KnownNames,
    ) -> Result<(), Refusal>;
}

/// Decides for each motion whether the caller's token needs a certificate. Without a check, every token that needs one is refused.
pub(crate) struct QualificationPolicy {
    tokens: TokenStore,
    of_node: Option<RequiredQualification>,
    check: Option<Arc<dyn CertificateCheck>>,
}

impl QualificationPolicy {
    pub(crate) fn new(
        state: &Path,
        file: &NodeFile,
        check: Option<Arc<dyn CertificateCheck>>,
    ) -> Self {
        Self {
            tokens: TokenStore::at(state),
            of_node: file.qualified,
            check,
        }
    }

    /// Returns the stricter of the levels that the node and the token ask for.
    fn needed(&self, card: Option<&TokenCard>) -> Result<Option<RequiredQualification>, Refusal> {
        let own = card.and_then(|card| card.qualified.as_deref());
        let of_token = own.map(str::parse).transpose()?;
        Ok(self.of_node.max(of_token))
    }

    fn proves(
        &self,
        card: Option<&TokenCard>,
        level: RequiredQualification,
        here: &KnownNames,
    ) -> Result<(), Refusal> {
        let card = card
            .ok_or_else(|| refusal!("the caller has no token, so it cannot have a certificate"))?;
        let check = self.check.as_ref().ok_or_else(|| {
            refusal!("this program was built without the exam, so it cannot check certificates")
        })?;
        check.proves(card, level, here)
    }
}

impl CertificateChecker for QualificationPolicy {
    fn check_certificate(
        &self,
        token: Option<&str>,
        here: &KnownNames,
    ) -> Result<(), (String, String)> {
        // A token file or level that cannot be read proves nothing, so the strictest level is required.
        let strictest = |reason: String| (RequiredQualification::Stroke.word().to_owned(), reason);
        let cards = token.map_or(Ok(Vec::new()), |_| self.tokens.list());
        let cards = cards.map_err(|error| strictest(error.to_string()))?;
        let card = cards.iter().find(|card| Some(card.name.as_str()) == token);
        let Some(level) = self
            .needed(card)
            .map_err(|reason| strictest(reason.into()))?
        else {
            return Ok(());
        };
        let proven = self.proves(card, level, here);
        proven.map_err(|reason| (level.word().to_owned(), reason.into()))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use caller::CallerRole;

    use super::*;

    struct AcceptAll;

    impl CertificateCheck for AcceptAll {
        fn proves(
            &self,
            _: &TokenCard,
            _: RequiredQualification,
            _: &KnownNames,
        ) -> Result<(), Refusal> {
            Ok(())
        }
    }

    #[test]
    fn a_token_that_needs_a_certificate_is_refused_where_none_can_be_checked() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = TokenStore::at(folder.path());
        for (name, level) in [("free", None), ("bound", Some("align")), ("odd", Some("x"))] {
            tokens.add(name, CallerRole::Planner, 60, None).unwrap();
            tokens.require_level(name, level).unwrap();
        }
        let mut file = NodeFile::default();
        let level = |file: &NodeFile, check, token: &str| {
            QualificationPolicy::new(folder.path(), file, check)
                .check_certificate(Some(token), &KnownNames::default())
                .map_err(|(level, _)| level)
        };
        let accept_all = || Some(Arc::new(AcceptAll) as Arc<dyn CertificateCheck>);
        assert_eq!(level(&file, None, "free"), Ok(()));
        assert_eq!(level(&file, None, "bound"), Err("align".to_owned()));
        assert_eq!(level(&file, accept_all(), "bound"), Ok(()));
        assert_eq!(level(&file, accept_all(), "odd"), Err("stroke".to_owned()));
        file.qualified = Some(RequiredQualification::Home);
        assert_eq!(level(&file, None, "free"), Err("home".to_owned()));
        assert_eq!(level(&file, None, "bound"), Err("align".to_owned()));
        assert_eq!(level(&file, accept_all(), "nobody"), Err("home".to_owned()));
        std::fs::write(folder.path().join("tokens.toml"), "no tokens").unwrap();
        assert_eq!(level(&file, accept_all(), "free"), Err("stroke".to_owned()));
    }
}
