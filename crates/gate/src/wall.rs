//! A wall hit becomes a question: a host while the connection is held, a path once the command has
//! ended. Never the whole sandbox off.

use std::path::Path;
use std::sync::{Arc, Weak};

use policy::{Decision, Verb, Verdict};
use protocol::approval::{AnswerScope, Approval, Resolution, Subject};
use protocol::facts::{Access, EntryKind, PathFact};
use protocol::sandbox::{SandboxReport, StoppedAccess};
use protocol::wall::{WallAskParams, WallAskResult, Widen, WidenAccess};
use protocol::{ActionName, Digest, ErrorKind, Facts, Failure};
use serde::Deserialize;
use serde_json::Value;
use store::Store;

use crate::again::Seen;
use crate::clock::now;
use crate::files::Files;
use crate::gate::Inner;
use crate::job::{Job, written};
use crate::live::{Live, State};
use crate::named::Named;
use crate::path::{Decided, Done, TRIES, unwritten};
use crate::record::Record;
use crate::request::Ask;
use crate::runtime::{Waiting, Wall};

/// Paths that one question is about at most.
const MAX_PATHS: usize = 16;

/// Answers for the gate when a command wants to reach a host.
pub(crate) struct Keeper<S: Store>(pub(crate) Weak<Inner<S>>);

impl<S: Store> Wall for Keeper<S> {
    fn ask(&self, asked: WallAskParams) -> Waiting<'_, WallAskResult> {
        Box::pin(async move {
            let Some(gate) = self.0.upgrade() else {
                return no("Ward is ending".to_owned());
            };
            let answer = match asked.again {
                true => gate.has_leave(&asked),
                false => gate.ask_for_host(asked).await,
            };
            match answer {
                Ok(()) => WallAskResult {
                    allow: true,
                    reason: None,
                },
                Err(failure) => no(failure.message.trim_end_matches('.').to_owned()),
            }
        })
    }
}

fn no(reason: String) -> WallAskResult {
    WallAskResult {
        allow: false,
        reason: Some(reason),
    }
}

impl<S: Store> Inner<S> {
    /// May a command of one of these actions reach this host?
    async fn ask_for_host(&self, asked: WallAskParams) -> Result<(), Failure> {
        let job = asked.actions.iter().rev();
        let job = job.into_iter().find_map(|id| self.jobs.get(id));
        let Some(job) = job else {
            return Err(Failure::new(
                ErrorKind::Denied,
                "Ward does not know whose connection this is.",
            ));
        };
        // One question for a host at a time: a program that opens ten connections asks once.
        let host = job.host(&asked.host);
        let _turn = host.turn.lock().await;
        let mut seen: Option<Seen> = None;
        for _ in 0..TRIES {
            let answered = host.answered();
            if let Some(Err(no)) = answered {
                return Err(no);
            }
            let reach = self.reach(&job, &asked.host)?;
            let Reach {
                book,
                facts,
                written,
                decision,
                digest,
            } = &reach;
            // A yes is for what was shown: under another policy it is another question.
            if decision.verdict == Verdict::Ask
                && let Some(Ok(approved)) = &answered
                && approved == digest
            {
                return Ok(());
            }
            let mut record = Record::of(&job, &self.redactor, now());
            record.decision(decision, facts, written, digest, &book.version);
            record
                .write(self)
                .await
                .map_err(|error| unwritten(&error))?;
            match (decision.verdict, job.ask) {
                (Verdict::Allow, _) => return Ok(()),
                (Verdict::Deny, _) => return Err(crate::path::denied(decision)),
                (Verdict::Ask, Ask::Deny) => return Err(crate::asking::nobody(decision)),
                (Verdict::Ask, Ask::Wait) => {}
            }
            let changed = seen.as_ref().map(|seen| {
                let workspace = &job.workspace.real;
                seen.again(facts, decision.mode, &book.version, 0, workspace)
            });
            let live = self.actions.get(&job.id);
            let subject = Subject::Host {
                host: asked.host.clone(),
            };
            let answer = self
                .ask(
                    &job,
                    live.as_deref(),
                    subject,
                    facts,
                    decision,
                    digest,
                    changed,
                )
                .await?;
            seen = Some(Seen::new(answer.approval(), Some(&book.version), 0));
            let held = Held {
                gate: Weak::clone(&self.me),
                person: job.person.clone(),
                approval: answer.approval().clone(),
            };
            let said = self.wait(answer).await;
            drop(held);
            if let Some(live) = live {
                live.back_to_work();
            }
            // Whatever was said, it is decided once more: the policy may have changed meanwhile, and
            // what was granted for longer is looked up each time, so that it can be revoked.
            match said {
                Ok(AnswerScope::Once) => host.answer(Ok(digest.clone())),
                Ok(AnswerScope::Session | AnswerScope::Workspace) => {}
                Err(failure) => host.answer(Err(failure)),
            }
        }
        Err(Failure::new(
            ErrorKind::Changed,
            "What decides about this host changed again and again while it was asked about.",
        ))
    }

    /// What is decided now about a host that a command of this job wants to reach.
    fn reach(&self, job: &Job, host: &str) -> Result<Reach, Failure> {
        self.is_on_the_roll(&job.actor)?;
        let book = job.workspace.policy(&self.options.config)?;
        let facts = Facts {
            hosts: vec![host.to_owned()],
            ..Facts::default()
        };
        let grants = self.grants.current(&job.person);
        let confinement = job.workspace.runtime.confinement();
        let decision = job.decide(&book, Verb::Net, &facts, confinement, &grants)?;
        let written = written(&facts)?;
        let digest = job.digest(&written, decision.mode, &book, &[])?;
        Ok(Reach {
            book,
            facts,
            written,
            decision,
            digest,
        })
    }

    /// Whether a connection that is open may stay so: some action that it can belong to has leave
    /// still, by an answer that was for this action, or by a rule or a grant that holds now.
    fn has_leave(&self, asked: &WallAskParams) -> Result<(), Failure> {
        for job in asked.actions.iter().filter_map(|id| self.jobs.get(id)) {
            let is_answered = || matches!(job.host(&asked.host).answered(), Some(Ok(_)));
            let is_let = match self.reach(&job, &asked.host)?.decision.verdict {
                Verdict::Allow => true,
                Verdict::Ask => is_answered(),
                Verdict::Deny => false,
            };
            if is_let {
                return Ok(());
            }
        }
        Err(Failure::new(
            ErrorKind::Denied,
            "The leave for this host was taken back.",
        ))
    }

    /// Looks whether a command failed at the wall, and asks whether to run it again with the wall
    /// widened by exactly what stopped it. Where the answer is yes, the wall is, and the policy under
    /// which it was asked is answered.
    pub(crate) async fn wall_hit(
        &self,
        job: &Arc<Job>,
        live: &Live,
        decided: &Decided,
        done: &Done,
        widen: &mut Vec<Widen>,
    ) -> Result<Option<Arc<Files>>, Failure> {
        // An editor's command has no wall that could be widened: it ends as it did.
        if job.runtime.is_some() {
            return Ok(None);
        }
        let stopped = stopped(job, done, widen);
        if stopped.widen.is_empty() {
            return Ok(None);
        }
        Box::pin(self.ask_to_widen(job, live, decided, stopped, widen, None)).await
    }

    /// Asks whether the wall may be widened by what a command was stopped at, and the command run
    /// again; `seen` is what was answered before. It is widened where the answer is yes, and that is
    /// still what would happen.
    async fn ask_to_widen(
        &self,
        job: &Arc<Job>,
        live: &Live,
        decided: &Decided,
        hit: Hit,
        widen: &mut Vec<Widen>,
        mut seen: Option<Seen>,
    ) -> Result<Option<Arc<Files>>, Failure> {
        let mut wider = widen.clone();
        wider.extend(hit.widen.iter().cloned());
        for _ in 0..TRIES {
            let Again {
                book,
                facts,
                written,
                decision,
                digest,
            } = self.again(job, &decided.facts, &hit, &wider).await?;
            let mut record = Record::of(job, &self.redactor, now());
            record.decision(&decision, &facts, &written, &digest, &book.version);
            record
                .write(self)
                .await
                .map_err(|error| unwritten(&error))?;
            // Also what a rule allows is asked about: running it again is part of the question.
            if decision.verdict == Verdict::Deny || job.ask == Ask::Deny {
                return Ok(None);
            }
            let subject = Subject::Again {
                widen: hit.widen.clone(),
                wanted: hit.wanted.clone(),
            };
            let changed = seen.as_ref().map(|seen| {
                let workspace = &job.workspace.real;
                seen.again(&facts, decision.mode, &book.version, wider.len(), workspace)
            });
            let answer = self
                .ask(
                    job,
                    Some(live),
                    subject,
                    &facts,
                    &decision,
                    &digest,
                    changed,
                )
                .await?;
            let version = Some(&book.version);
            seen = Some(Seen::new(answer.approval(), version, wider.len()));
            // On a no the command has ended as it did; that is its outcome.
            if self.answered(live, answer).await.is_err() {
                return Ok(None);
            }
            if self
                .fits(job, &decided.facts, &hit, &wider, &digest)
                .await?
            {
                *widen = wider;
                return Ok(Some(book));
            }
        }
        Ok(None)
    }

    /// A yes that came after a restart: asks once more where running the command again is no longer
    /// what it was about. Answers the policy that it was asked under, if it had to.
    pub(crate) async fn once_more(
        &self,
        job: &Arc<Job>,
        live: &Live,
        decided: &Decided,
        before: Before,
        widen: &mut Vec<Widen>,
    ) -> Result<Option<Arc<Files>>, Failure> {
        let Before { hit, digest, seen } = before;
        if self.fits(job, &decided.facts, &hit, widen, &digest).await? {
            return Ok(None);
        }
        widen.retain(|known| !hit.widen.contains(known));
        let seen = Some(seen);
        let asked = self.ask_to_widen(job, live, decided, hit, widen, seen);
        // What came of it the first time is known no more.
        asked.await?.map(Some).ok_or_else(|| {
            Failure::new(
                ErrorKind::Denied,
                "The command was not run again with a wider wall.",
            )
        })
    }

    /// Whether running a command again is still what a yes with this digest was about.
    async fn fits(
        &self,
        job: &Job,
        command: &Facts,
        hit: &Hit,
        wider: &[Widen],
        digest: &Digest,
    ) -> Result<bool, Failure> {
        let now = self.again(job, command, hit, wider).await?;
        Ok(now.digest == *digest)
    }

    /// The question as it would be asked now: what runs again is what is in the scripts now, under
    /// the policy of now, and the answer is about that too.
    async fn again(
        &self,
        job: &Job,
        command: &Facts,
        hit: &Hit,
        wider: &[Widen],
    ) -> Result<Again, Failure> {
        let book = job.workspace.policy(&self.options.config)?;
        let mut facts = facts_of(&hit.widen);
        let grants = self.grants.current(&job.person);
        let confinement = job.workspace.runtime.confinement();
        let decision = job.decide(&book, Verb::Wall, &facts, confinement, &grants)?;
        let named = self.with_files(job, command, decision.mode).await?;
        Named::of(&named.unwrap_or_default()).put_into(&mut facts);
        let written = written(&facts)?;
        let digest = job.digest(&written, decision.mode, &book, wider)?;
        Ok(Again {
            book,
            facts,
            written,
            decision,
            digest,
        })
    }

    /// What grants for single files and folders widen the wall by, from the start.
    pub(crate) fn granted_paths(&self, job: &Job, book: &Files) -> Result<Vec<Widen>, Failure> {
        if job.name != ActionName::TerminalRun && job.name != ActionName::TerminalOpen {
            return Ok(Vec::new());
        }
        let grants = self.grants.current(&job.person);
        let mut widen = Vec::new();
        for grant in grants.iter() {
            let Some((path, is_deep)) = single_path(grant.pattern.as_str(), &job.workspace.real)
            else {
                continue;
            };
            if is_deep && !self.grants.is_about_walls(&grant.id) {
                continue;
            }
            let path = vec![Widen {
                path,
                access: WidenAccess::Write,
            }];
            // What is gone, or leads elsewhere by now, is nothing that can be opened.
            if led_away(&path).is_some() {
                continue;
            }
            let confinement = job.workspace.runtime.confinement();
            let one = std::slice::from_ref(grant);
            let decision = job.decide(book, Verb::Wall, &facts_of(&path), confinement, one)?;
            let by_grant = decision.because.kind == policy::decision::Kind::Grant;
            if decision.verdict == Verdict::Allow && by_grant {
                widen.extend(path);
            }
        }
        Ok(widen)
    }
}

/// The one file that a pattern like `fs.write(/var/log/app.log)` is about, or the one folder of
/// `fs.write(/var/log/**)`; and whether it is about all that is in it.
fn single_path(pattern: &str, workspace: &Path) -> Option<(String, bool)> {
    let path = pattern.strip_prefix("fs.write(")?.strip_suffix(')')?;
    let (path, is_deep) = match path.strip_suffix("/**") {
        Some(folder) => (folder, true),
        None => (path, false),
    };
    if path.is_empty() || path.contains(['*', '?', '[', '{', '\\']) || path.starts_with('~') {
        return None;
    }
    let path = workspace.join(path).to_str()?.to_owned();
    Some((path, is_deep))
}

pub(crate) fn facts_of(widen: &[Widen]) -> Facts {
    stopped_at(widen.iter().map(|widen| widen.path.clone()))
}

/// What a command that was stopped at these real paths would touch were the wall opened there: of a
/// folder all that is in it.
pub fn stopped_at(paths: impl IntoIterator<Item = String>) -> Facts {
    let fact = |path: String| PathFact {
        kind: Path::new(&path).is_dir().then_some(EntryKind::Directory),
        path,
        access: Access::Write,
        digest: None,
    };
    Facts {
        paths: paths.into_iter().map(fact).collect(),
        ..Facts::default()
    }
}

/// What is decided about a host.
struct Reach {
    book: Arc<Files>,
    facts: Facts,
    written: Value,
    decision: Decision,
    digest: Digest,
}

/// What stopped a command.
#[derive(Debug, Default)]
struct Hit {
    /// What would have to be open.
    widen: Vec<Widen>,
    /// What it meant to make, where that is the folder.
    wanted: Vec<String>,
}

impl Hit {
    /// What a question was about, if it was one of these.
    fn of(subject: &Subject) -> Option<Self> {
        match subject {
            Subject::Again { widen, wanted } => Some(Self {
                widen: widen.clone(),
                wanted: wanted.clone(),
            }),
            Subject::Action | Subject::Host { .. } => None,
        }
    }
}

/// What was said yes to before a restart: that a command runs again.
pub(crate) struct Before {
    hit: Hit,
    digest: Digest,
    seen: Seen,
}

impl Before {
    /// None where the question was another one.
    pub(crate) fn of(approval: &Approval, seen: &Seen) -> Option<Self> {
        Some(Self {
            hit: Hit::of(&approval.subject)?,
            digest: approval.digest.clone(),
            seen: seen.clone(),
        })
    }
}

/// A question whether a command may run again.
struct Again {
    book: Arc<Files>,
    facts: Facts,
    written: Value,
    decision: Decision,
    digest: Digest,
}

/// A place that the wall is to be opened for and that leads elsewhere by now.
pub(crate) fn led_away(widen: &[Widen]) -> Option<&str> {
    let is_there = |path: &str| {
        Path::new(path)
            .canonicalize()
            .is_ok_and(|real| real == Path::new(path))
    };
    let mut paths = widen.iter().map(|widen| widen.path.as_str());
    paths.find(|path| !is_there(path))
}

/// What stopped a command that did not end well.
fn stopped(job: &Job, done: &Done, widened: &[Widen]) -> Hit {
    #[derive(Deserialize)]
    struct Ran {
        exit_code: Option<i32>,
        sandbox: SandboxReport,
    }
    if job.name != ActionName::TerminalRun {
        return Hit::default();
    }
    let Ok(ran) = serde_json::from_str::<Ran>(done.result.get()) else {
        return Hit::default();
    };
    if ran.exit_code == Some(0) {
        return Hit::default();
    }
    let mut hit = Hit::default();
    for stopped in ran.sandbox.stopped {
        if stopped.access != StoppedAccess::Write || hit.widen.len() >= MAX_PATHS {
            continue;
        }
        // A person has to see where it really leads, not what the command called it.
        let meant = Path::new(&stopped.target);
        let Some(path) = real(meant, &job.workspace.real) else {
            continue;
        };
        if widened.iter().any(|known| known.path == path) {
            continue;
        }
        if let (Err(_), Some(name)) = (meant.symlink_metadata(), meant.file_name())
            && let Some(wanted) = Path::new(&path).join(name).to_str()
            && hit.wanted.len() < MAX_PATHS
        {
            hit.wanted.push(wanted.to_owned());
        }
        if !hit.widen.iter().any(|known| known.path == path) {
            hit.widen.push(Widen {
                path,
                access: WidenAccess::Write,
            });
        }
    }
    hit
}

/// The real path of what is there; of the folder where something new would be made, because only
/// what exists can be opened to a command. The sandbox refuses a path in which a link appears
/// later, and so is one not asked about that holds the whole workspace.
fn real(path: &Path, workspace: &Path) -> Option<String> {
    if !path.is_absolute() {
        return None;
    }
    let real = match path.canonicalize() {
        Ok(real) => real,
        // A link that leads nowhere is nothing that can be opened.
        Err(_) if path.symlink_metadata().is_ok() => return None,
        Err(_) => path.parent()?.canonicalize().ok()?,
    };
    if workspace.starts_with(&real) {
        return None;
    }
    real.to_str().map(ToOwned::to_owned)
}

/// A question about a connection that is held. Dropped before the answer, because whoever wanted to
/// connect has given up, it is withdrawn.
struct Held<S: Store> {
    gate: Weak<Inner<S>>,
    person: String,
    approval: Approval,
}

impl<S: Store> Drop for Held<S> {
    fn drop(&mut self) {
        let (Some(gate), Ok(threads)) =
            (self.gate.upgrade(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        // Where it was answered this finds nothing.
        if gate.inbox.get(&self.person, &self.approval.id).is_err() {
            return;
        }
        let (person, approval) = (self.person.clone(), self.approval.clone());
        threads.spawn(async move {
            let how = Resolution::Withdrawn;
            gate.close_unanswered(&person, &approval, how, None).await;
            if let Some(live) = gate.actions.get(&approval.action_id) {
                live.back_to_work();
            }
        });
    }
}

impl Live {
    /// A question that it asked while it ran is closed.
    fn back_to_work(&self) {
        self.state.send_if_modified(|state| {
            let asking = matches!(state, State::Asking { .. });
            if asking {
                *state = State::Running;
            }
            asking
        });
    }
}
