//! The book of tokens: made once, shown once, kept as hashes, looked up by every call.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use super::auth_backoff::FailedAttempts;
use super::{CallerRole, Principal};
use base::disk;
use base::file_access::{self, FileStamp};
use base::file_lock::FolderLock;
use base::lock::MutexExt;

/// Prefix of every token, by which people and scanners of leaked secrets recognise it.
const PREFIX: &str = "sth_";

/// Bytes of chance by which a token is found, and by which it is believed.
const ID_BYTES: usize = 6;
const SECRET_BYTES: usize = 32;

/// Longer texts are no tokens.
const TOKEN_CHARS_MAX: usize = 128;

/// Names longer than this do not fit into lists.
const NAME_CHARS_MAX: usize = 64;

/// 7 MiB and five rounds: what OWASP asks of small machines. A token is chance, not a word.
const MEMORY_KIB: u32 = 7 * 1024;
const ROUNDS: u32 = 5;

/// The tokens of a node, in a file that is its user's alone. Other processes may change the file;
/// each look-up sees the newest. One that cannot be read changes nothing: the last that could be counts.
#[derive(Debug)]
pub struct TokenStore {
    path: PathBuf,
    seen: Mutex<TokenFileCache>,
}

/// The file as it was last read.
#[derive(Debug, Default)]
struct TokenFileCache {
    /// Of the file that the records are from; nothing before the first was read.
    stamp: Option<TokenFileStamp>,
    /// Of a file that could not be read, so that this is logged once.
    unread: Option<TokenFileStamp>,
    records: Vec<TokenRecord>,
    /// Tokens that were believed, by id: the slow hash is done once.
    believed: HashMap<String, blake3::Hash>,
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
    /// Milliseconds since 1970; from then on it opens nothing.
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
    /// True if the token was believed before.
    is_believed: bool,
}

/// One token, as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TokenCard {
    /// Its name.
    pub name: String,
    /// Role of the holder.
    pub role: CallerRole,
    /// Calls a minute, stops aside.
    pub calls_per_minute: u32,
    /// Milliseconds since 1970 from which on it opens nothing; none: it is to be revoked.
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
    #[error("cannot use the file of tokens {}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error from the system.
        source: io::Error,
    },
    /// The file is not one of tokens.
    #[error("{} is damaged: {why}; put a copy back, or remove it and make new tokens", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Reason, in words.
        why: String,
    },
    /// Others may write to the file.
    #[error("{} may be written to by other users, who could give themselves access: `chmod go-w` ends that", .0.display())]
    Open(PathBuf),
    /// There is one of this name.
    #[error("there is a token called {0:?} already; revoke it first, or choose another name")]
    Twice(String),
    /// No token has this name.
    #[error("there is no token called {0:?}; see `steadyhand token list`")]
    None(String),
    /// It is no name.
    #[error("{0:?} cannot be a token's name; 1 to {NAME_CHARS_MAX} printable characters are")]
    Name(String),
    /// No chance to be had, or no memory to hash.
    #[error("cannot make a token: {0}")]
    Make(String),
}

/// Reason why access is denied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessDenied {
    /// It is no token of this node, or no longer.
    #[error("this token is not known here; an operator makes one with `steadyhand token add`")]
    Unknown,
    /// It was made to end by itself, and has.
    #[error("the token `{0}` has ended; an operator revokes it and makes a new one")]
    Ended(String),
    /// Its secret was sent wrongly too often.
    #[error("wrong secrets were sent for this token: the next is looked at in {0} s")]
    Paused(u64),
    /// Access is denied to all.
    #[error("tokens cannot be looked up: {0}")]
    Closed(String),
}

impl TokenStore {
    /// The book that is kept in this folder; without a file it is empty.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Self {
            path: folder.join("tokens.toml"),
            seen: Mutex::default(),
        }
    }

    /// All tokens.
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

    /// Makes a token and returns it: it is kept nowhere and cannot be shown again.
    ///
    /// # Errors
    /// There is one of this name, it is no name, or the file cannot be changed.
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

    /// Returns the holder of this token at `now_ms`, in milliseconds since 1970. Slow the first time: not for a thread that
    /// others wait for.
    ///
    /// # Errors
    /// Unknown or expired token, or the token file has never been readable. Access is denied in all three cases.
    pub fn check(&self, token: &str, now_ms: u64) -> Result<Principal, AccessDenied> {
        let found = self.look_up(token, now_ms)?;
        let record = match found.is_believed {
            true => found.record,
            false => self.prove(token, found.record, now_ms)?,
        };
        record.holds(now_ms)
    }

    /// The same where it takes no time; nothing where the token has to be proven by [`Self::check`].
    pub fn check_cached(
        &self,
        token: &str,
        now_ms: u64,
    ) -> Option<Result<Principal, AccessDenied>> {
        match self.look_up(token, now_ms) {
            Ok(found) if !found.is_believed => None,
            found => Some(found.and_then(|found| found.record.holds(now_ms))),
        }
    }

    /// Looks up a token without verifying it.
    fn look_up(&self, token: &str, now_ms: u64) -> Result<TokenLookup, AccessDenied> {
        let id = id_of(token).ok_or(AccessDenied::Unknown)?;
        let mut seen = self.seen.locked();
        self.refresh(&mut seen)?;
        let known = seen.records.iter().find(|record| record.id == id);
        let record = known.cloned().ok_or(AccessDenied::Unknown)?;
        if seen.believed.get(id) == Some(&blake3::hash(token.as_bytes())) {
            return Ok(TokenLookup {
                record,
                is_believed: true,
            });
        }
        let wrong = seen.wrong.get(id);
        match wrong.map_or(0, |wrong| wrong.remaining_ms(now_ms)) {
            0 => Ok(TokenLookup {
                record,
                is_believed: false,
            }),
            left_ms => Err(AccessDenied::Paused(left_ms.div_ceil(1_000))),
        }
    }

    fn prove(
        &self,
        token: &str,
        record: TokenRecord,
        now_ms: u64,
    ) -> Result<TokenRecord, AccessDenied> {
        let is_right = record.is_for(token);
        let mut seen = self.seen.locked();
        if !is_right {
            seen.wrong.entry(record.id).or_default().record(now_ms);
            return Err(AccessDenied::Unknown);
        }
        self.refresh(&mut seen)?;
        // It may have been revoked while it was hashed.
        if !seen.records.iter().any(|now| now.hash == record.hash) {
            return Err(AccessDenied::Unknown);
        }
        let quick = blake3::hash(token.as_bytes());
        seen.believed.insert(record.id.clone(), quick);
        seen.wrong.remove(&record.id);
        Ok(record)
    }

    /// Reads the file again if it has changed. An unreadable file is logged, and the last readable contents stay in force.
    fn refresh(&self, seen: &mut TokenFileCache) -> Result<(), AccessDenied> {
        let stamp = self.stamp();
        let now = stamp.as_ref().ok().copied();
        if now.is_some() && now == seen.stamp {
            return Ok(());
        }
        let now = now.flatten();
        match stamp.and_then(|stamp| Ok((stamp, self.load()?.tokens))) {
            Ok((stamp, records)) => {
                *seen = TokenFileCache {
                    stamp: Some(stamp),
                    unread: None,
                    ..std::mem::take(seen).with_records(records)
                };
                Ok(())
            }
            Err(error) if seen.stamp.is_none() => Err(AccessDenied::Closed(error.to_string())),
            Err(error) => {
                if seen.unread.replace(now) != Some(now) {
                    tracing::error!("{error}; the tokens as they were last read still count");
                }
                Ok(())
            }
        }
    }

    fn stamp(&self) -> Result<TokenFileStamp, TokenError> {
        let about = self.if_there(std::fs::metadata(&self.path))?;
        Ok(about.as_ref().map(FileStamp::of))
    }

    fn load(&self) -> Result<TokenFile, TokenError> {
        let Some(about) = self.if_there(std::fs::metadata(&self.path))? else {
            return Ok(TokenFile::default());
        };
        if file_access::mode(&about) & 0o022 != 0 {
            return Err(TokenError::Open(self.path.clone()));
        }
        let Some(text) = self.if_there(std::fs::read_to_string(&self.path))? else {
            return Ok(TokenFile::default());
        };
        // The text holds hashes: no error may quote it.
        let read = toml::from_str::<toml::Table>(&text).and_then(toml::Table::try_into);
        read.map_err(|error| TokenError::Damaged {
            path: self.path.clone(),
            why: error.message().to_owned(),
        })
    }

    /// Keeps other processes from changing the file between a reading and a writing.
    fn lock(&self) -> Result<FolderLock, TokenError> {
        FolderLock::for_change_of(&self.path).map_err(|source| self.refused(source))
    }

    fn store(&self, file: &TokenFile) -> Result<(), TokenError> {
        let text = toml::to_string(file).map_err(|error| TokenError::Make(error.to_string()))?;
        disk::put_secret(&self.path, &text).map_err(|source| self.refused(source))
    }

    /// Returns the result of reading the file, or `None` if there is no file.
    fn if_there<T>(&self, read: io::Result<T>) -> Result<Option<T>, TokenError> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(self.refused(source)),
        }
    }

    fn refused(&self, source: io::Error) -> TokenError {
        TokenError::File {
            path: self.path.clone(),
            source,
        }
    }
}

impl TokenFileCache {
    /// With other records: who was believed still is, where the record is the same.
    fn with_records(mut self, records: Vec<TokenRecord>) -> Self {
        let is_kept = |id: &String| {
            let before = self.records.iter().find(|record| record.id == *id);
            let now = records.iter().find(|record| record.id == *id);
            matches!((before, now), (Some(before), Some(now)) if before.hash == now.hash)
        };
        self.believed.retain(|id, _| is_kept(id));
        self.wrong.retain(|id, _| is_kept(id));
        Self { records, ..self }
    }
}

impl TokenRecord {
    fn holds(self, now_ms: u64) -> Result<Principal, AccessDenied> {
        match self.ends_ms {
            Some(ends_ms) if now_ms >= ends_ms => Err(AccessDenied::Ended(self.name)),
            _ => Ok(Principal {
                name: self.name,
                role: self.role,
                calls_per_minute: self.calls_per_minute,
            }),
        }
    }

    fn is_for(&self, token: &str) -> bool {
        let (argon2, token) = (Argon2::default(), token.as_bytes());
        PasswordHash::new(&self.hash).is_ok_and(|hash| argon2.verify_password(token, &hash).is_ok())
    }
}

fn check_name(name: &str) -> Result<(), TokenError> {
    let fits = (1..=NAME_CHARS_MAX).contains(&name.chars().count());
    if fits && !name.chars().any(char::is_control) {
        return Ok(());
    }
    let begin = name.chars().take(NAME_CHARS_MAX);
    Err(TokenError::Name(begin.collect()))
}

/// The part by which a token is found.
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
    let made = || {
        let params = Params::new(MEMORY_KIB, ROUNDS, 1, None)?;
        let hasher = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let hash: PasswordHash = hasher.hash_password(token.as_bytes())?;
        Ok(hash.to_string())
    };
    made().map_err(|error: argon2::password_hash::Error| TokenError::Make(error.to_string()))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::super::auth_backoff::{PAUSE_MS, WRONG_FREE};
    use super::*;

    const NOW_MS: u64 = 1_800_000_000_000;

    fn book() -> (tempfile::TempDir, TokenStore) {
        let folder = tempfile::tempdir().unwrap();
        let book = TokenStore::at(folder.path());
        (folder, book)
    }

    #[test]
    fn a_token_opens_until_it_is_revoked() {
        let (folder, book) = book();
        let token = book.add("claude", CallerRole::Planner, 60, None).unwrap();
        let standing = book.check(&token, NOW_MS).unwrap();
        assert_eq!(
            (standing.name.as_str(), standing.role),
            ("claude", CallerRole::Planner)
        );
        // Another process revokes it; this one has believed it already.
        TokenStore::at(folder.path()).revoke("claude").unwrap();
        assert_eq!(book.check(&token, NOW_MS), Err(AccessDenied::Unknown));
    }

    #[test]
    fn a_token_that_was_made_to_end_does() {
        let (_folder, book) = book();
        let token = book
            .add("guest", CallerRole::Operator, 60, Some(NOW_MS + 1))
            .unwrap();
        book.check(&token, NOW_MS).unwrap();
        let ended = Err(AccessDenied::Ended("guest".to_owned()));
        assert_eq!(book.check(&token, NOW_MS + 1), ended);
        assert_eq!(
            book.list().unwrap().pop().unwrap().ends_ms,
            Some(NOW_MS + 1)
        );
    }

    #[test]
    fn what_is_attached_to_a_token_goes_with_it() {
        let (_folder, book) = book();
        book.add("a", CallerRole::Planner, 60, None).unwrap();
        book.require_level("a", Some("stroke")).unwrap();
        book.attach("a", Some("0123456789abcdef")).unwrap();
        let card = book.list().unwrap().pop().unwrap();
        assert_eq!(card.qualified.as_deref(), Some("stroke"));
        assert_eq!(card.certificate.as_deref(), Some("0123456789abcdef"));
        book.revoke("a").unwrap();
        book.add("a", CallerRole::Planner, 60, None).unwrap();
        let card = book.list().unwrap().pop().unwrap();
        assert_eq!((card.qualified, card.certificate), (None, None));
        assert!(matches!(book.attach("b", None), Err(TokenError::None(_))));
    }

    #[test]
    fn what_is_not_a_token_opens_nothing() {
        let (_folder, book) = book();
        assert_eq!(book.check("", NOW_MS), Err(AccessDenied::Unknown));
        let token = book.add("a", CallerRole::Viewer, 60, None).unwrap();
        let mut wrong = token.clone();
        wrong.pop();
        for text in [
            wrong,
            format!("{token}x"),
            "sth_.".to_owned(),
            "x".repeat(1 << 20),
        ] {
            assert_eq!(book.check(&text, NOW_MS), Err(AccessDenied::Unknown));
        }
        book.check(&token, NOW_MS).unwrap();
        assert_eq!(
            book.check(&format!("{token}x"), NOW_MS),
            Err(AccessDenied::Unknown)
        );
    }

    #[test]
    fn the_file_holds_no_token_and_is_its_owners_alone() {
        let (folder, book) = book();
        let token = book.add("a", CallerRole::Viewer, 60, None).unwrap();
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
    fn wrong_secrets_have_to_wait_and_whoever_is_believed_does_not() {
        let (_folder, book) = book();
        let token = book.add("a", CallerRole::Viewer, 60, None).unwrap();
        let other = book.add("b", CallerRole::Viewer, 60, None).unwrap();
        let wrong = format!("{token}x");
        for _ in 0..=WRONG_FREE {
            assert_eq!(book.check(&wrong, NOW_MS), Err(AccessDenied::Unknown));
        }
        // Nothing is proven now: the right secret waits too, and only of this token.
        assert_eq!(
            book.check_cached(&wrong, NOW_MS),
            Some(Err(AccessDenied::Paused(1)))
        );
        assert_eq!(book.check(&token, NOW_MS), Err(AccessDenied::Paused(1)));
        book.check(&other, NOW_MS).unwrap();
        assert_eq!(
            book.check(&wrong, NOW_MS + PAUSE_MS),
            Err(AccessDenied::Unknown)
        );
        let paused = Err(AccessDenied::Paused(2));
        assert_eq!(book.check(&token, NOW_MS + PAUSE_MS), paused);
        // A calendar that was set back makes it wait no longer than ever.
        assert_eq!(book.check(&token, 0), Err(AccessDenied::Paused(8)));
        book.check(&token, NOW_MS + 3 * PAUSE_MS).unwrap();
        for _ in 0..=2 * WRONG_FREE {
            assert!(book.check(&wrong, NOW_MS).is_err());
        }
        book.check(&token, NOW_MS).unwrap();
        assert!(book.check_cached(&token, NOW_MS).unwrap().is_ok());
    }

    #[test]
    fn a_book_that_cannot_be_read_any_more_leaves_the_last_in_force() {
        let (folder, book) = book();
        let token = book.add("a", CallerRole::Viewer, 60, None).unwrap();
        book.check(&token, NOW_MS).unwrap();
        let path = folder.path().join("tokens.toml");
        let kept = std::fs::read(&path).unwrap();
        std::fs::write(&path, "tokens = 3").unwrap();
        book.check(&token, NOW_MS).unwrap();
        std::fs::write(&path, kept).unwrap();
        // A token that comes later leaves the others believed; one that is revoked counts at once.
        TokenStore::at(folder.path())
            .add("b", CallerRole::Viewer, 60, None)
            .unwrap();
        assert!(book.check_cached(&token, NOW_MS).unwrap().is_ok());
        TokenStore::at(folder.path()).revoke("a").unwrap();
        assert_eq!(
            book.check_cached(&token, NOW_MS),
            Some(Err(AccessDenied::Unknown))
        );
    }

    #[test]
    fn a_book_that_root_writes_is_its_folders_owners() {
        const SOMEBODY: u32 = 54_321;
        let (folder, book) = book();
        if !rustix::process::geteuid().is_root() {
            return;
        }
        std::os::unix::fs::chown(folder.path(), Some(SOMEBODY), Some(SOMEBODY)).unwrap();
        std::fs::write(folder.path().join("elsewhere"), "untouched").unwrap();
        let link = folder.path().join("tokens.toml.new");
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), link).unwrap();
        book.add("a", CallerRole::Viewer, 60, None).unwrap();
        let about = std::fs::metadata(folder.path().join("tokens.toml")).unwrap();
        assert_eq!((about.uid(), about.gid()), (SOMEBODY, SOMEBODY));
        assert_eq!(about.permissions().mode() & 0o777, 0o600);
        let elsewhere = std::fs::read(folder.path().join("elsewhere")).unwrap();
        assert_eq!(elsewhere, b"untouched");
    }

    #[test]
    fn names_are_told_apart_and_a_damaged_book_lets_nobody_in() {
        let (folder, book) = book();
        let token = book.add("a", CallerRole::Operator, 60, None).unwrap();
        assert!(matches!(
            book.add("a", CallerRole::Viewer, 1, None),
            Err(TokenError::Twice(_))
        ));
        assert!(matches!(
            book.add("\u{1b}[2J", CallerRole::Viewer, 1, None),
            Err(TokenError::Name(_))
        ));
        assert!(matches!(book.revoke("b"), Err(TokenError::None(_))));
        assert_eq!(book.list().unwrap().len(), 1);
        std::fs::write(folder.path().join("tokens.toml"), "tokens = 3").unwrap();
        assert!(matches!(
            book.check(&token, NOW_MS),
            Err(AccessDenied::Closed(_))
        ));
    }
}
