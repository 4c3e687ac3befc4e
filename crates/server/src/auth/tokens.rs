//! Tokens: who may talk to Ward, and as whom.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use gate::{Actor, Agent};
use protocol::{Digest, Mode};
use serde::{Deserialize, Serialize};

use super::file::{self, Session, Stamp, TokensError, TokensFile, Written, WrittenToken};
use super::lent::Loan;
use super::secret::{self, Purpose};

/// The first person's own token, in the config folder.
const OWN: &str = "token";
/// The first person's name where the system tells none.
const OWNER: &str = "owner";
/// The shortest token that can be chosen by hand: whoever can reach the port can try.
pub(super) const MIN_CHOSEN: usize = 16;
const MAX_TOKENS: usize = 1000;
/// When a token was used is written this often, in milliseconds.
const USE_IS_OLD: u64 = 3_600_000;

/// A token as it is listed: all but its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenInfo {
    /// Its id, to revoke it by.
    pub id: String,
    /// The person's name, or what an agent or a runtime is called.
    pub name: String,
    /// Who has it.
    #[serde(flatten)]
    pub kind: TokenKind,
    /// When it was made, in milliseconds since 1970.
    pub created_at: u64,
    /// When it was last used, to the hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<u64>,
}

/// Who has a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TokenKind {
    /// A person: answers approvals, chooses role and mode, trusts workspaces.
    Person,
    /// An agent, bound to all of this.
    Agent {
        /// Who it is.
        role: String,
        /// The freest mode it may run in.
        mode: Mode,
        /// Where it works, by its real path.
        workspace: PathBuf,
        /// The person it works for.
        person: String,
    },
    /// A runtime: appends only what concerns its own executions.
    Runtime,
}

/// An agent that is to have a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAgent {
    /// What it is called.
    pub name: String,
    /// Who it is.
    pub role: String,
    /// The freest mode it may run in.
    pub mode: Mode,
    /// Where it works.
    pub workspace: PathBuf,
    /// The person it works for: who is asked.
    pub person: String,
}

/// The person whose Ward this is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstPerson {
    /// The token's id.
    pub id: String,
    /// The person's name.
    pub name: String,
    /// Where the token is.
    pub file: PathBuf,
    /// Whether it was made just now.
    pub made: bool,
}

/// Who a secret turned out to belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    /// Who it is.
    pub identity: Identity,
    /// What it was that let them in.
    pub pass: Pass,
    /// The token; none where it was chosen by hand.
    pub token: Option<String>,
    /// Whether the use should be written down: [`Tokens::used`].
    pub(crate) note: bool,
}

/// Who is talking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// A person or an agent: the gate knows them.
    Actor(Actor),
    /// A runtime.
    Runtime {
        /// The token's id.
        id: String,
        /// What it is called.
        name: String,
    },
    /// A runtime that Ward started itself, for one notebook.
    Lent {
        /// The person whose it is.
        person: String,
        /// The notebook.
        notebook: String,
    },
}

/// What let somebody in, so that it can be looked up again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pass {
    /// A token, by its hash.
    Token(Digest),
    /// A browser's cookie, by its hash.
    Session(Digest),
    /// One that was lent, by its hash.
    Lent(Digest),
    /// The token that was chosen by hand.
    Chosen,
}

/// All tokens. Reading the file again whenever it has changed, it also knows what another process
/// added or revoked.
#[derive(Debug)]
pub struct Tokens {
    config: PathBuf,
    file: TokensFile,
    chosen: Option<(Digest, String)>,
    known: Mutex<Known>,
    /// What tokens are lent for, by their hashes.
    pub(super) lent: Mutex<HashMap<Digest, Loan>>,
}

/// The file as it was last read.
#[derive(Debug, Default)]
pub(super) struct Known {
    stamp: Option<Stamp>,
    tokens: HashMap<Digest, Arc<TokenInfo>>,
    pub(super) sessions: HashMap<Digest, Session>,
}

impl Tokens {
    /// The tokens of a config folder. Nothing is made.
    pub fn open(config: &Path) -> Result<Self, TokensError> {
        let tokens = Self {
            config: config.to_owned(),
            file: TokensFile::of(config),
            chosen: None,
            known: Mutex::default(),
            lent: Mutex::default(),
        };
        drop(tokens.known()?);
        Ok(tokens)
    }

    /// Takes one more token of the first person's, which is kept nowhere.
    pub fn accept(&mut self, chosen: &str) -> Result<(), TokensError> {
        if chosen.chars().count() < MIN_CHOSEN {
            return Err(TokensError::TooShort);
        }
        let hash = secret::hash(chosen).ok_or(TokensError::TooShort)?;
        self.chosen = Some((hash, self.first_person()?.name));
        Ok(())
    }

    /// The person whose Ward this is: the first of all, who is made where there is none. The token
    /// is then in a file that only this user can read.
    pub fn first_person(&self) -> Result<FirstPerson, TokensError> {
        let user = std::env::var("USER").ok();
        let name = user.filter(|name| is_name(name));
        self.first_named(name.as_deref().unwrap_or(OWNER))
    }

    fn first_named(&self, name: &str) -> Result<FirstPerson, TokensError> {
        let file = self.config.join(OWN);
        let first = |written: &Written| {
            let persons = written.tokens.iter().map(|token| &token.info);
            let first = persons
                .filter(|info| info.kind == TokenKind::Person)
                .min_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)))?;
            Some(FirstPerson {
                id: first.id.clone(),
                name: first.name.clone(),
                file: file.clone(),
                made: false,
            })
        };
        self.change(|written| {
            if let Some(first) = first(written) {
                return Ok(first);
            }
            let (id, plain) = add(written, name, TokenKind::Person, Purpose::Person)?;
            // Before it counts: a token that nobody knows would be in the way.
            file::replace(&file, format!("{plain}\n").as_bytes())?;
            Ok(FirstPerson {
                id,
                name: name.to_owned(),
                file: file.clone(),
                made: true,
            })
        })
    }

    /// The first person's token, for a command of this user's that talks to Ward.
    pub fn own(config: &Path) -> Result<Option<String>, TokensError> {
        let path = config.join(OWN);
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(why) => Err(file::unusable(&path, why)),
        }
    }

    /// A token for a person, new or known. What is answered is shown once and kept nowhere.
    pub fn add_person(&self, name: &str) -> Result<(String, String), TokensError> {
        self.add(name, TokenKind::Person, Purpose::Person)
    }

    /// A token for an agent.
    pub fn add_agent(&self, agent: NewAgent) -> Result<(String, String), TokensError> {
        let bad = |why: String| TokensError::BadWorkspace {
            path: agent.workspace.clone(),
            why,
        };
        let workspace = agent
            .workspace
            .canonicalize()
            .map_err(|error| bad(error.to_string()))?;
        if !workspace.is_dir() {
            return Err(bad("it is no folder".into()));
        }
        if workspace.to_str().is_none() {
            return Err(bad("its path is not UTF-8".into()));
        }
        if !is_name(&agent.role) {
            return Err(TokensError::BadName(shown(&agent.role)));
        }
        let kind = TokenKind::Agent {
            role: agent.role,
            mode: agent.mode,
            workspace,
            person: agent.person.clone(),
        };
        let person = agent.person;
        self.change(|written| {
            let mut infos = written.tokens.iter().map(|token| &token.info);
            if !infos.any(|info| info.kind == TokenKind::Person && info.name == person) {
                return Err(TokensError::UnknownPerson(shown(&person)));
            }
            add(written, &agent.name, kind, Purpose::Agent)
        })
    }

    /// A token for a runtime.
    pub fn add_runtime(&self, name: &str) -> Result<(String, String), TokensError> {
        self.add(name, TokenKind::Runtime, Purpose::Runtime)
    }

    fn add(
        &self,
        name: &str,
        kind: TokenKind,
        purpose: Purpose,
    ) -> Result<(String, String), TokensError> {
        self.change(|written| add(written, name, kind, purpose))
    }

    /// All of them, the oldest first.
    pub fn list(&self) -> Result<Vec<TokenInfo>, TokensError> {
        let known = self.known()?;
        let mut infos: Vec<TokenInfo> =
            known.tokens.values().map(|info| (**info).clone()).collect();
        drop(known);
        infos.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(infos)
    }

    /// Takes a token back, and signs out the browsers that came in by it. When this returns it is
    /// refused.
    pub fn revoke(&self, id: &str) -> Result<TokenInfo, TokensError> {
        let own = self.config.join(OWN);
        let kept = Self::own(&self.config)?.and_then(|own| secret::hash(&own));
        self.change(|written| {
            let at = written.tokens.iter().position(|token| token.info.id == id);
            let Some(at) = at else {
                return Err(TokensError::UnknownToken(shown(id)));
            };
            let token = written.tokens.remove(at);
            written.sessions.retain(|session| session.token != id);
            if kept.as_ref() == Some(&token.hash) {
                std::fs::remove_file(&own).map_err(|why| file::unusable(&own, why))?;
            }
            Ok(token.info)
        })
    }

    /// Whose token this is. A person whose last token was revoked takes their agents along.
    #[must_use]
    pub fn authenticate(&self, secret: &str) -> Option<Passed> {
        let hash = secret::hash(secret)?;
        if let Some((chosen, person)) = &self.chosen
            && *chosen == hash
        {
            return Some(Passed {
                identity: Identity::Actor(Actor::Person(person.clone())),
                pass: Pass::Chosen,
                token: None,
                note: false,
            });
        }
        if let Some(Loan { person, notebook }) = self.lent_for(&hash) {
            return Some(Passed {
                identity: Identity::Lent { person, notebook },
                pass: Pass::Lent(hash),
                token: None,
                note: false,
            });
        }
        let known = self.known_or_none()?;
        let info = known.valid(&hash)?;
        Some(Passed {
            identity: identity(info),
            token: Some(info.id.clone()),
            note: info.last_used.is_none_or(|used| now() > used + USE_IS_OLD),
            pass: Pass::Token(hash),
        })
    }

    /// What a token was lent for, while the person is known.
    fn lent_for(&self, hash: &Digest) -> Option<Loan> {
        let lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        let loan = lent.get(hash).cloned()?;
        drop(lent);
        let known = self.known_or_none()?;
        known.has_person(&loan.person).then_some(loan)
    }

    /// Whether what let somebody in still would.
    #[must_use]
    pub fn holds(&self, pass: &Pass) -> bool {
        let Some(known) = self.known_or_none() else {
            return false;
        };
        match pass {
            Pass::Token(hash) => known.valid(hash).is_some(),
            Pass::Session(hash) => known.signed_in(hash).is_some(),
            Pass::Lent(hash) => {
                drop(known);
                self.lent_for(hash).is_some()
            }
            Pass::Chosen => true,
        }
    }

    /// Whether the agent of this id still has its token, and its person one.
    #[must_use]
    pub fn knows_agent(&self, id: &str) -> bool {
        let Some(known) = self.known_or_none() else {
            return false;
        };
        let mut all = known.tokens.iter();
        let found = all.find(|(_, info)| info.id == id);
        found.is_some_and(|(hash, _)| known.valid(hash).is_some())
    }

    /// Writes down that a token was used.
    pub fn used(&self, id: &str) -> Result<(), TokensError> {
        let now = now();
        self.change(|written| {
            let found = written.tokens.iter_mut().find(|token| token.info.id == id);
            if let Some(token) = found
                && token
                    .info
                    .last_used
                    .is_none_or(|used| now > used + USE_IS_OLD)
            {
                token.info.last_used = Some(now);
            }
            Ok(())
        })
    }

    pub(super) fn change<T>(
        &self,
        change: impl FnOnce(&mut Written) -> Result<T, TokensError>,
    ) -> Result<T, TokensError> {
        let value = self.file.change(change)?;
        drop(self.known()?);
        Ok(value)
    }

    /// The file as it is now.
    fn known(&self) -> Result<MutexGuard<'_, Known>, TokensError> {
        // Nothing panics while it is held.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = self.file.stamp().and_then(|stamp| {
            if stamp == known.stamp {
                return Ok(None);
            }
            // The stamp is older than what is read, or of the same moment: a change in between is
            // seen the next time.
            Ok(Some((stamp, self.file.read()?)))
        });
        match fresh {
            Ok(None) => {}
            Ok(Some((stamp, written))) => *known = Known::of(stamp, written),
            Err(error) => {
                // Nobody is let in by what was read before.
                *known = Known::default();
                return Err(error);
            }
        }
        Ok(known)
    }

    pub(super) fn known_or_none(&self) -> Option<MutexGuard<'_, Known>> {
        match self.known() {
            Ok(known) => Some(known),
            Err(error) => {
                tracing::error!(%error, "nobody can be let in");
                None
            }
        }
    }
}

impl Known {
    fn of(stamp: Option<Stamp>, written: Written) -> Self {
        let tokens = written.tokens.into_iter();
        let sessions = written.sessions.into_iter();
        Self {
            stamp,
            tokens: tokens
                .map(|WrittenToken { info, hash }| (hash, Arc::new(info)))
                .collect(),
            sessions: sessions
                .map(|session| (session.hash.clone(), session))
                .collect(),
        }
    }

    fn valid(&self, hash: &Digest) -> Option<&TokenInfo> {
        let info = self.tokens.get(hash)?;
        match &info.kind {
            TokenKind::Person | TokenKind::Runtime => Some(info),
            TokenKind::Agent { person, .. } => self.has_person(person).then_some(info),
        }
    }

    pub(super) fn signed_in(&self, hash: &Digest) -> Option<&TokenInfo> {
        let session = self.sessions.get(hash)?;
        if session.expires_at <= now() {
            return None;
        }
        let mut infos = self.tokens.values();
        let info = infos.find(|info| info.id == session.token)?;
        (info.kind == TokenKind::Person).then_some(info)
    }

    fn has_person(&self, name: &str) -> bool {
        let mut infos = self.tokens.values();
        infos.any(|info| info.kind == TokenKind::Person && info.name == name)
    }
}

fn add(
    written: &mut Written,
    name: &str,
    kind: TokenKind,
    purpose: Purpose,
) -> Result<(String, String), TokensError> {
    if !is_name(name) {
        return Err(TokensError::BadName(shown(name)));
    }
    if written.tokens.len() >= MAX_TOKENS {
        return Err(TokensError::TooMany(MAX_TOKENS));
    }
    let plain = secret::new(purpose)?;
    let id = secret::new_id()?;
    written.tokens.push(WrittenToken {
        info: TokenInfo {
            id: id.clone(),
            name: name.to_owned(),
            kind,
            created_at: now(),
            last_used: None,
        },
        hash: Digest::of(plain.as_bytes()),
    });
    Ok((id, plain))
}

pub(super) fn identity(info: &TokenInfo) -> Identity {
    match &info.kind {
        TokenKind::Person => Identity::Actor(Actor::Person(info.name.clone())),
        TokenKind::Agent {
            role,
            mode,
            workspace,
            person,
        } => Identity::Actor(Actor::Agent(Agent {
            id: info.id.clone(),
            person: person.clone(),
            role: role.clone(),
            mode: *mode,
            workspace: workspace.clone(),
        })),
        TokenKind::Runtime => Identity::Runtime {
            id: info.id.clone(),
            name: info.name.clone(),
        },
    }
}

/// Names are parts of stream names.
fn is_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

pub(super) fn shown(text: &str) -> String {
    text.escape_debug().take(80).collect()
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}
