//! Stores tokens: each is made once, shown once, kept as a hash and looked up by every call.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use super::auth_backoff::FailedAttempts;
use super::{CallerRole, Principal};
use base::clock::NodeClock;
use base::disk;
use base::file_access::{self, FileStamp};
use base::file_lock::FolderLock;
use base::lock::MutexExt;
use base::plain_file;
use base::wording::with_statement;

/// Prefix of every token, by which people and scanners of leaked secrets recognise it.
const PREFIX: &str = "sth_";

/// Number of random bytes in a token's id and in its secret.
const ID_BYTES: usize = 6;
const SECRET_BYTES: usize = 32;

/// Longest text that can be a token.
const TOKEN_CHARS_MAX: usize = 128;

/// Longest name that fits into lists.
const NAME_CHARS_MAX: usize = 64;

/// 7 MiB and five rounds, as OWASP asks of small machines. A token is random, unlike a password.
const MEMORY_KIB: u32 = 7 * 1024;
const ROUNDS: u32 = 5;

/// The tokens of a node, in a file that only its user may read. Other processes may change the file;
/// each look-up sees the newest version. While the file cannot be read, its last readable contents count.
#[derive(Debug)]
pub struct TokenStore {
    path: PathBuf,
    /// Times the pauses after wrong secrets: the calendar may be set back.
    clock: NodeClock,
    cache: Mutex<TokenFileCache>,
}

/// The file as it was last read.
#[derive(Debug, Default)]
struct TokenFileCache {
    /// Stamp of the file that the records are from; `None` until a file was read.
    stamp: Option<TokenFileStamp>,
    /// Stamp of a file that could not be read, so that this is logged once.
    unread: Option<TokenFileStamp>,
    records: Vec<TokenRecord>,
    /// Fast hashes of verified tokens, by id, so that the slow hash is computed once.
    verified: HashMap<String, blake3::Hash>,
    /// Wrong secrets since the last right one, by id.
    wrong: HashMap<String, FailedAttempts>,
}

/// Attributes that change with the file or with its permissions; `None` without a file.
type TokenFileStamp = Option<FileStamp>;

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct TokenFile {
    #[serde(default)]
    tokens: Vec<TokenRecord>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct TokenRecord {
    name: String,
    role: CallerRole,
    calls_per_minute: u32,
    /// Time from which the token is no longer valid, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ends_ms: Option<u64>,
    /// Level that its holder must have reached before it may move anything, regardless of the node file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    qualified: Option<String>,
    /// The certificate that an operator has attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    certificate: Option<String>,
    id: String,
    hash: String,
}

/// A token's record, found without verifying the token.
struct TokenLookup {
    record: TokenRecord,
    /// Set if the token was verified before.
    is_verified: bool,
}

/// One token, as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TokenCard {
    /// Its name.
    pub name: String,
    /// Role of the holder.
    pub role: CallerRole,
    /// Calls per minute, not counting stops.
    pub calls_per_minute: u32,
    /// Time from which the token is no longer valid, in milliseconds since 1970; `None` until it is revoked.
    pub ends_ms: Option<u64>,
    /// The level that its holder must have reached in an exam before it may move anything.
    pub qualified: Option<String>,
    /// The certificate that is attached.
    pub certificate: Option<String>,
}

/// Reason why the token store cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read or written.
    #[error("cannot use the token file {}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error from the system.
        source: io::Error,
    },
    /// The file is not one of tokens.
    #[error("{} is damaged: {reason}. Next: put a copy back, or remove it and make new tokens", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Reason why it cannot be read.
        reason: String,
    },
    /// Others may write to the file.
    #[error("{} can be written by other users, who could give themselves access. Next: `chmod go-w` it", .0.display())]
    Open(PathBuf),
    /// The file belongs to another user.
    #[error("{} belongs to another user, who could have given themselves access. Next: check its lines and `chown` it to the folder's owner, or remove it and make new tokens", .0.display())]
    Foreign(PathBuf),
    /// A token of this name exists already.
    #[error(
        "there is already a token called {0:?}. Next: choose another name, or revoke that token"
    )]
    Twice(String),
    /// No token has this name.
    #[error("there is no token called {0:?}. Next: `steadyhand token list`")]
    None(String),
    /// The text cannot be a token's name.
    #[error("{0:?} cannot be a token's name. Next: use 1 to {NAME_CHARS_MAX} printable characters")]
    Name(String),
    /// The system gave no random bytes, or no memory to hash.
    #[error("cannot make a token: {0}")]
    Make(String),
}

/// Reason why access is denied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessDenied {
    /// It is not, or no longer, a token of this node.
    #[error(
        "this node does not know the token. Next: an operator makes one with `steadyhand token add`"
    )]
    Unknown,
    /// Its time is over.
    #[error("the token `{0}` has expired. Next: an operator revokes it and makes a new one")]
    Ended(String),
    /// Wrong secrets were sent too often for this token.
    #[error("too many wrong secrets were sent for this token. Next: try again in {0} s")]
    Paused(u64),
    /// Access is denied to all.
    #[error("tokens cannot be checked: {0}")]
    Closed(String),
}

impl TokenStore {
    /// Returns the store of a folder; without a file it is empty.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Self {
            path: folder.join("tokens.toml"),
            clock: NodeClock::real(),
            cache: Mutex::default(),
        }
    }

    /// Lists all tokens.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn list(&self) -> Result<Vec<TokenCard>, TokenError> {
        let file = self.load()?;
        let card = |record: TokenRecord| TokenCard {
            name: record.name,
            role: record.role,
            calls_per_minute: record.calls_per_minute,
            ends_ms: record.ends_ms,
            qualified: record.qualified,
            certificate: record.certificate,
        };
        Ok(file.tokens.into_iter().map(card).collect())
    }

    /// Requires a level in an exam of this token's holder, or removes the requirement.
    ///
    /// # Errors
    /// No token has this name, or the file cannot be changed.
    pub fn require_level(&self, name: &str, level: Option<&str>) -> Result<(), TokenError> {
        self.change(name, |token| token.qualified = level.map(str::to_owned))
    }

    /// Attaches a certificate in place of the previous one, or removes it.
    ///
    /// # Errors
    /// No token has this name, or the file cannot be changed.
    pub fn attach(&self, name: &str, certificate: Option<&str>) -> Result<(), TokenError> {
        self.change(name, |token| {
            token.certificate = certificate.map(str::to_owned);
        })
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut TokenRecord)) -> Result<(), TokenError> {
        let _lock = self.lock()?;
        let mut file = self.load()?;
        let found = file.tokens.iter_mut().find(|token| token.name == name);
        change(found.ok_or_else(|| TokenError::None(name.to_owned()))?);
        self.store(&file)
    }

    /// Makes a token and returns it. The token itself is not stored and cannot be shown again.
    ///
    /// # Errors
    /// A token of this name exists, the name is invalid, or the file cannot be changed.
    pub fn add(
        &self,
        name: &str,
        role: CallerRole,
        calls_per_minute: u32,
        ends_ms: Option<u64>,
    ) -> Result<String, TokenError> {
        check_name(name)?;
        let (id, secret) = (random_text::<ID_BYTES>()?, random_text::<SECRET_BYTES>()?);
        let token = format!("{PREFIX}{id}.{secret}");
        let hash = hash(&token)?;
        let _lock = self.lock()?;
        let mut file = self.load()?;
        if file.tokens.iter().any(|token| token.name == name) {
            return Err(TokenError::Twice(name.to_owned()));
        }
        file.tokens.push(TokenRecord {
            name: name.to_owned(),
            role,
            calls_per_minute,
            ends_ms,
            qualified: None,
            certificate: None,
            id,
            hash,
        });
        self.store(&file)?;
        Ok(token)
    }

    /// Revokes a token: it gives no access from now on.
    ///
    /// # Errors
    /// No token has this name, or the file cannot be changed.
    pub fn revoke(&self, name: &str) -> Result<(), TokenError> {
        let _lock = self.lock()?;
        let mut file = self.load()?;
        let before = file.tokens.len();
        file.tokens.retain(|token| token.name != name);
        if file.tokens.len() == before {
            return Err(TokenError::None(name.to_owned()));
        }
        self.store(&file)
    }

    /// Returns the holder of this token at `now_ms`, in milliseconds since 1970. Slow the first time, so not for a thread
    /// that others wait for.
    ///
    /// # Errors
    /// Unknown or expired token, or the token file has never been readable. Access is denied in all three cases.
    pub fn check(&self, token: &str, now_ms: u64) -> Result<Principal, AccessDenied> {
        let found = self.look_up(token)?;
        let record = match found.is_verified {
            true => found.record,
            false => self.verify(token, found.record)?,
        };
        record.principal_at(now_ms)
    }

    /// Does the same without a slow hash; `None` if [`Self::check`] has to verify the token.
    pub fn check_cached(
        &self,
        token: &str,
        now_ms: u64,
    ) -> Option<Result<Principal, AccessDenied>> {
        match self.look_up(token) {
            Ok(found) if !found.is_verified => None,
            found => Some(found.and_then(|found| found.record.principal_at(now_ms))),
        }
    }

    /// Looks up a token without verifying it.
    fn look_up(&self, token: &str) -> Result<TokenLookup, AccessDenied> {
        let id = id_of(token).ok_or(AccessDenied::Unknown)?;
        let mut cache = self.cache.locked();
        self.refresh(&mut cache)?;
        let record = cache.records.iter().find(|record| record.id == id);
        let record = record.cloned().ok_or(AccessDenied::Unknown)?;
        if cache.verified.get(id) == Some(&blake3::hash(token.as_bytes())) {
            return Ok(TokenLookup {
                record,
                is_verified: true,
            });
        }
        let failed = cache.wrong.get(id);
        match failed.map_or(Duration::ZERO, |failed| failed.remaining(self.clock.now())) {
            Duration::ZERO => Ok(TokenLookup {
                record,
                is_verified: false,
            }),
            pause => Err(AccessDenied::Paused(whole_seconds(pause))),
        }
    }

    fn verify(&self, token: &str, record: TokenRecord) -> Result<TokenRecord, AccessDenied> {
        let is_match = record.matches(token);
        let mut cache = self.cache.locked();
        if !is_match {
            let failed = cache.wrong.entry(record.id).or_default();
            failed.record(self.clock.now());
            return Err(AccessDenied::Unknown);
        }
        self.refresh(&mut cache)?;
        // The token may have been revoked during the slow hash.
        if !cache
            .records
            .iter()
            .any(|current| current.hash == record.hash)
        {
            return Err(AccessDenied::Unknown);
        }
        let fast_hash = blake3::hash(token.as_bytes());
        cache.verified.insert(record.id.clone(), fast_hash);
        cache.wrong.remove(&record.id);
        Ok(record)
    }

    /// Reads the file again if it has changed. An unreadable file is logged, and the last readable contents stay in force.
    fn refresh(&self, cache: &mut TokenFileCache) -> Result<(), AccessDenied> {
        let stamp = self.stamp();
        let current = stamp.as_ref().ok().copied();
        if current.is_some() && current == cache.stamp {
            return Ok(());
        }
        let current = current.flatten();
        match stamp.and_then(|stamp| Ok((stamp, self.load()?.tokens))) {
            Ok((stamp, records)) => {
                *cache = TokenFileCache {
                    stamp: Some(stamp),
                    unread: None,
                    ..std::mem::take(cache).with_records(records)
                };
                Ok(())
            }
            Err(error) if cache.stamp.is_none() => Err(AccessDenied::Closed(error.to_string())),
            Err(error) => {
                if cache.unread.replace(current) != Some(current) {
                    let still = "the tokens from the last reading stay valid";
                    tracing::error!("{}", with_statement(&error, still));
                }
                Ok(())
            }
        }
    }

    fn stamp(&self) -> Result<TokenFileStamp, TokenError> {
        let metadata = self.if_exists(std::fs::metadata(&self.path))?;
        Ok(metadata.as_ref().map(FileStamp::of))
    }

    fn load(&self) -> Result<TokenFile, TokenError> {
        let Some(about) = self.if_exists(std::fs::metadata(&self.path))? else {
            return Ok(TokenFile::default());
        };
        if file_access::mode(&about) & 0o022 != 0 {
            return Err(TokenError::Open(self.path.clone()));
        }
        if self.is_of_a_stranger(&about)? {
            return Err(TokenError::Foreign(self.path.clone()));
        }
        let Some(text) = self.if_exists(plain_file::read_text(&self.path))? else {
            return Ok(TokenFile::default());
        };
        // The text holds hashes: no error may quote it.
        let file = toml::from_str::<toml::Table>(&text).and_then(toml::Table::try_into);
        file.map_err(|error| TokenError::Damaged {
            path: self.path.clone(),
            reason: error.message().to_owned(),
        })
    }

    /// Returns whether the file belongs to another user than this one, root and the owner of its folder.
    fn is_of_a_stranger(&self, about: &std::fs::Metadata) -> Result<bool, TokenError> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let folder = std::fs::metadata(folder).map_err(|source| self.file_error(source))?;
        Ok(file_access::is_of_another_user(about) && !file_access::has_owner_of(about, &folder))
    }

    /// Keeps other processes from changing the file between a reading and a writing.
    fn lock(&self) -> Result<FolderLock, TokenError> {
        FolderLock::for_change_of(&self.path).map_err(|source| self.file_error(source))
    }

    fn store(&self, file: &TokenFile) -> Result<(), TokenError> {
        let text = toml::to_string(file).map_err(|error| TokenError::Make(error.to_string()))?;
        disk::put_secret(&self.path, &text).map_err(|source| self.file_error(source))
    }

    /// Returns the result of reading the file, or `None` if there is no file.
    fn if_exists<T>(&self, result: io::Result<T>) -> Result<Option<T>, TokenError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(self.file_error(source)),
        }
    }

    fn file_error(&self, source: io::Error) -> TokenError {
        TokenError::File {
            path: self.path.clone(),
            source,
        }
    }
}

impl TokenFileCache {
    /// Replaces the records. Verified tokens and failed attempts stay where the record is the same.
    fn with_records(mut self, records: Vec<TokenRecord>) -> Self {
        let is_kept = |id: &String| {
            let before = self.records.iter().find(|record| record.id == *id);
            let now = records.iter().find(|record| record.id == *id);
            matches!((before, now), (Some(before), Some(now)) if before.hash == now.hash)
        };
        self.verified.retain(|id, _| is_kept(id));
        self.wrong.retain(|id, _| is_kept(id));
        Self { records, ..self }
    }
}

impl TokenRecord {
    fn principal_at(self, now_ms: u64) -> Result<Principal, AccessDenied> {
        match self.ends_ms {
            Some(ends_ms) if now_ms >= ends_ms => Err(AccessDenied::Ended(self.name)),
            _ => Ok(Principal {
                name: self.name,
                role: self.role,
                calls_per_minute: self.calls_per_minute,
            }),
        }
    }

    fn matches(&self, token: &str) -> bool {
        let (argon2, token) = (Argon2::default(), token.as_bytes());
        PasswordHash::new(&self.hash).is_ok_and(|hash| argon2.verify_password(token, &hash).is_ok())
    }
}

/// Rounds a pause up.
fn whole_seconds(pause: Duration) -> u64 {
    pause.as_secs() + u64::from(pause.subsec_nanos() > 0)
}

fn check_name(name: &str) -> Result<(), TokenError> {
    let fits = (1..=NAME_CHARS_MAX).contains(&name.chars().count());
    if fits && !name.chars().any(char::is_control) {
        return Ok(());
    }
    Err(TokenError::Name(
        name.chars().take(NAME_CHARS_MAX).collect(),
    ))
}

/// Returns the part by which a token is found.
fn id_of(token: &str) -> Option<&str> {
    let (id, _) = token.strip_prefix(PREFIX)?.split_once('.')?;
    (token.len() <= TOKEN_CHARS_MAX).then_some(id)
}

fn random_text<const BYTES: usize>() -> Result<String, TokenError> {
    let mut bytes = [0_u8; BYTES];
    getrandom::fill(&mut bytes).map_err(|error| TokenError::Make(error.to_string()))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

fn hash(token: &str) -> Result<String, TokenError> {
    let make = || {
        let params = Params::new(MEMORY_KIB, ROUNDS, 1, None)?;
        let hasher = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let hash: PasswordHash = hasher.hash_password(token.as_bytes())?;
        Ok(hash.to_string())
    };
    make().map_err(|error: argon2::password_hash::Error| TokenError::Make(error.to_string()))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    #[cfg(unix)]
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::super::auth_backoff::{PAUSE, WRONG_FREE};
    use super::*;

    const NOW_MS: u64 = 1_800_000_000_000;

    fn empty_store() -> (tempfile::TempDir, TokenStore) {
        let folder = tempfile::tempdir().unwrap();
        let store = TokenStore::at(folder.path());
        (folder, store)
    }

    #[test]
    fn a_token_gives_access_until_it_is_revoked() {
        let (folder, store) = empty_store();
        let token = store.add("claude", CallerRole::Planner, 60, None).unwrap();
        let principal = store.check(&token, NOW_MS).unwrap();
        assert_eq!(
            (principal.name.as_str(), principal.role),
            ("claude", CallerRole::Planner)
        );
        // Another process revokes the token after this one has verified it.
        TokenStore::at(folder.path()).revoke("claude").unwrap();
        assert_eq!(store.check(&token, NOW_MS), Err(AccessDenied::Unknown));
    }

    #[test]
    fn a_token_with_an_end_time_ends() {
        let (_folder, store) = empty_store();
        let token = store
            .add("guest", CallerRole::Operator, 60, Some(NOW_MS + 1))
            .unwrap();
        store.check(&token, NOW_MS).unwrap();
        let ended = Err(AccessDenied::Ended("guest".to_owned()));
        assert_eq!(store.check(&token, NOW_MS + 1), ended);
        assert_eq!(
            store.list().unwrap().pop().unwrap().ends_ms,
            Some(NOW_MS + 1)
        );
    }

    #[test]
    fn level_and_certificate_are_gone_with_their_token() {
        let (_folder, store) = empty_store();
        store.add("a", CallerRole::Planner, 60, None).unwrap();
        store.require_level("a", Some("stroke")).unwrap();
        store.attach("a", Some("0123456789abcdef")).unwrap();
        let card = store.list().unwrap().pop().unwrap();
        assert_eq!(card.qualified.as_deref(), Some("stroke"));
        assert_eq!(card.certificate.as_deref(), Some("0123456789abcdef"));
        store.revoke("a").unwrap();
        store.add("a", CallerRole::Planner, 60, None).unwrap();
        let card = store.list().unwrap().pop().unwrap();
        assert_eq!((card.qualified, card.certificate), (None, None));
        assert!(matches!(store.attach("b", None), Err(TokenError::None(_))));
    }

    #[test]
    fn text_that_is_not_a_token_gives_no_access() {
        let (_folder, store) = empty_store();
        assert_eq!(store.check("", NOW_MS), Err(AccessDenied::Unknown));
        let token = store.add("a", CallerRole::Viewer, 60, None).unwrap();
        let mut wrong = token.clone();
        wrong.pop();
        for text in [
            wrong,
            format!("{token}x"),
            "sth_.".to_owned(),
            "x".repeat(1 << 20),
        ] {
            assert_eq!(store.check(&text, NOW_MS), Err(AccessDenied::Unknown));
        }
        store.check(&token, NOW_MS).unwrap();
        assert_eq!(
            store.check(&format!("{token}x"), NOW_MS),
            Err(AccessDenied::Unknown)
        );
    }

    #[cfg(unix)]
    #[test]
    fn the_file_holds_no_secret_and_only_its_owner_reads_it() {
        let (folder, store) = empty_store();
        let token = store.add("a", CallerRole::Viewer, 60, None).unwrap();
        let path = folder.path().join("tokens.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        let secret = token.split_once('.').unwrap().1;
        assert!(
            !text.contains(secret) && text.contains("$argon2id$"),
            "{text}"
        );
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn wrong_secrets_cause_a_pause_but_not_for_verified_tokens() {
        let (_folder, store) = empty_store();
        let clock = NodeClock::simulated();
        let wait = |pauses: u32| clock.jump_to(clock.now().after(PAUSE * pauses));
        let store = TokenStore {
            clock: clock.clone(),
            ..store
        };
        let token = store.add("a", CallerRole::Viewer, 60, None).unwrap();
        let other = store.add("b", CallerRole::Viewer, 60, None).unwrap();
        let wrong = format!("{token}x");
        for _ in 0..=WRONG_FREE {
            assert_eq!(store.check(&wrong, NOW_MS), Err(AccessDenied::Unknown));
        }
        // During the pause even the right secret of this token waits; other tokens do not.
        assert_eq!(
            store.check_cached(&wrong, NOW_MS),
            Some(Err(AccessDenied::Paused(1)))
        );
        assert_eq!(store.check(&token, NOW_MS), Err(AccessDenied::Paused(1)));
        store.check(&other, NOW_MS).unwrap();
        wait(1);
        assert_eq!(store.check(&wrong, NOW_MS), Err(AccessDenied::Unknown));
        // A calendar that is set back lengthens no pause, and one that is set forth ends none.
        for calendar_ms in [0, NOW_MS, 2 * NOW_MS] {
            let paused = Err(AccessDenied::Paused(2));
            assert_eq!(store.check(&token, calendar_ms), paused);
        }
        wait(2);
        store.check(&token, 0).unwrap();
        for _ in 0..=2 * WRONG_FREE {
            assert!(store.check(&wrong, NOW_MS).is_err());
        }
        store.check(&token, NOW_MS).unwrap();
        assert!(store.check_cached(&token, NOW_MS).unwrap().is_ok());
    }

    #[test]
    fn an_unreadable_file_leaves_the_last_contents_in_force() {
        let (folder, store) = empty_store();
        let token = store.add("a", CallerRole::Viewer, 60, None).unwrap();
        store.check(&token, NOW_MS).unwrap();
        let path = folder.path().join("tokens.toml");
        let contents = std::fs::read(&path).unwrap();
        std::fs::write(&path, "tokens = 3").unwrap();
        store.check(&token, NOW_MS).unwrap();
        std::fs::write(&path, contents).unwrap();
        // Adding a token leaves the others verified; revoking one takes effect at once.
        TokenStore::at(folder.path())
            .add("b", CallerRole::Viewer, 60, None)
            .unwrap();
        assert!(store.check_cached(&token, NOW_MS).unwrap().is_ok());
        TokenStore::at(folder.path()).revoke("a").unwrap();
        assert_eq!(
            store.check_cached(&token, NOW_MS),
            Some(Err(AccessDenied::Unknown))
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_root_writes_belongs_to_the_folders_owner() {
        const OTHER_USER: u32 = 54_321;
        let (folder, store) = empty_store();
        if !rustix::process::geteuid().is_root() {
            return;
        }
        std::os::unix::fs::chown(folder.path(), Some(OTHER_USER), Some(OTHER_USER)).unwrap();
        std::fs::write(folder.path().join("elsewhere"), "untouched").unwrap();
        let link = folder.path().join("tokens.toml.new");
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), link).unwrap();
        store.add("a", CallerRole::Viewer, 60, None).unwrap();
        let metadata = std::fs::metadata(folder.path().join("tokens.toml")).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (OTHER_USER, OTHER_USER));
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        let elsewhere = std::fs::read(folder.path().join("elsewhere")).unwrap();
        assert_eq!(elsewhere, b"untouched");
    }

    /// Only root can give files away: for other users this test checks nothing.
    #[cfg(unix)]
    #[test]
    fn a_file_of_another_user_gives_no_access() {
        const OTHER_USER: u32 = 54_321;
        let (folder, store) = empty_store();
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let token = store.add("a", CallerRole::Operator, 60, None).unwrap();
        let path = folder.path().join("tokens.toml");
        std::os::unix::fs::chown(&path, Some(OTHER_USER), None).unwrap();
        assert!(matches!(store.list(), Err(TokenError::Foreign(_))));
        assert!(matches!(
            store.check(&token, NOW_MS),
            Err(AccessDenied::Closed(_))
        ));
        // What the folder's owner could replace is theirs.
        std::os::unix::fs::chown(folder.path(), Some(OTHER_USER), None).unwrap();
        store.check(&token, NOW_MS).unwrap();
    }

    #[test]
    fn names_are_unique_and_a_damaged_file_gives_no_access() {
        let (folder, store) = empty_store();
        let token = store.add("a", CallerRole::Operator, 60, None).unwrap();
        assert!(matches!(
            store.add("a", CallerRole::Viewer, 1, None),
            Err(TokenError::Twice(_))
        ));
        assert!(matches!(
            store.add("\u{1b}[2J", CallerRole::Viewer, 1, None),
            Err(TokenError::Name(_))
        ));
        assert!(matches!(store.revoke("b"), Err(TokenError::None(_))));
        assert_eq!(store.list().unwrap().len(), 1);
        std::fs::write(folder.path().join("tokens.toml"), "tokens = 3").unwrap();
        assert!(matches!(
            store.check(&token, NOW_MS),
            Err(AccessDenied::Closed(_))
        ));
    }
}
