// The places besides the conversation: what waits, what was remembered, the record, where actions
// run, who agents can be, and this page's settings.

import { type ReactNode, useCallback, useEffect, useMemo, useState } from "react";
import { api } from "../api/client";
import { follow } from "../api/events";
import { sentence } from "../api/failure";
import type { Entry, GrantInfo, Resolved, Verdict } from "../api/schema";
import { host } from "../host";
import { complain } from "../model/announce";
import { inbox } from "../model/inbox";
import { address } from "../model/route";
import { list } from "../model/sessions";
import { remember, settings } from "../model/settings";
import { useStore } from "../model/store";
import { grants, learn, runtimes, ward } from "../model/ward";
import { plain } from "../text/visible";
import { actorName, baseName, clock, count, runtimeName, skillWords, tierWords } from "../text/words";
import { AskView, Closed } from "./Bubble";
import { revoke } from "./Side";
import { Sentence, Visible } from "./Visible";

function PlaceView({ title, lead, children }: { title: string; lead: ReactNode; children: ReactNode }) {
  return (
    <div className="place" tabIndex={0} role="region" aria-label={title}>
      <div className="col wide-col">
        <h1>{title}</h1>
        <p className="lead">{lead}</p>
        {children}
      </div>
    </div>
  );
}

export function Approvals() {
  const { open, resolved } = useStore(inbox);
  const closed: Resolved[] = [...resolved.values()].reverse().slice(0, 20);
  return (
    <PlaceView title="Approvals" lead="Everything that waits for your answer, over all sessions and agents. The first answer counts, wherever it is given.">
      {open.length === 0 && <Empty title="Nothing waits for you.">When an agent wants something that its role or your rules do not simply allow, it stands here, on every page and phone that is signed in, and in <code>ward approvals</code>.</Empty>}
      {open.map((approval, index) => <AskView key={approval.id} approval={approval} keys={index === 0} elsewhere resolved={undefined} />)}
      {closed.length > 0 && <><h2>Answered while this page was open</h2>{closed.map((answer) => <Closed key={answer.approval_id} resolved={answer} />)}</>}
    </PlaceView>
  );
}

function Empty({ title, children }: { title: string; children: ReactNode }) {
  return <div className="empty-box"><strong>{title}</strong><p>{children}</p></div>;
}

export function GrantsPlace() {
  const { value, failure } = grants.use();
  const { sessions } = useStore(list);
  const name = (id: string) => sessions.find((session) => session.session_id === id)?.title ?? id;
  return (
    <PlaceView title="Grants" lead="Answers that you gave for longer. Each lets a role do one thing without asking; revoke one, and it asks again.">
      {failure && <p className="bad">{failure}</p>}
      {value?.length === 0 && <Empty title="No grant holds.">Answer a question with “This session” or “Always here”, and what it allows is listed here.</Empty>}
      {value && value.length > 0 && (
        <div className="scroll" tabIndex={0} role="group" aria-label="Grants">
          <table className="list">
            <thead><tr><th>Allows</th><th>Role</th><th>Where</th><th>By</th><th>Since</th><th>Until</th><th><span className="sr">Revoke</span></th></tr></thead>
            <tbody>
              {value.map((grant: GrantInfo) => (
                <tr key={grant.id}>
                  <td><code><Visible text={grant.pattern} strict /></code></td>
                  <td>{grant.role}</td>
                  <td>{grant.session_id ? <>session <a href={address({ at: "session", id: grant.session_id })}>{plain(name(grant.session_id))}</a></> : <span title={grant.workspace}>{baseName(grant.workspace)}</span>}</td>
                  <td>{actorName(grant.by)}</td>
                  <td>{clock(grant.at)}</td>
                  <td>{grant.expires_at ? clock(grant.expires_at) : grant.session_id ? "the session ends" : "you revoke it"}</td>
                  <td><button type="button" className="b n" onClick={() => revoke(grant.id)}>Revoke</button></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </PlaceView>
  );
}

const KINDS: Record<string, string> = {
  "": "everything", request: "requests", decision: "decisions", approval: "questions", answer: "answers", outcome: "outcomes", grant: "grants", revoked: "revocations", begun: "beginning", gap: "gaps",
};
const LAST = 300;

export function Ledger() {
  const [kind, setKind] = useState("");
  const [words, setWords] = useState("");
  const [entries, setEntries] = useState<Entry[]>();
  const [verdict, setVerdict] = useState<Verdict>();
  const [failure, setFailure] = useState<string>();
  const { sessions } = useStore(list);
  useEffect(() => {
    let stop = () => {};
    let current = true;
    api.ledger({ last: LAST }).then(
      ({ entries, next }) => {
        if (!current) return;
        setEntries(entries);
        stop = follow({
          path: () => "/ledger/events",
          after: next,
          told: (events) => setEntries((now) => [...(now ?? []), ...events.map(({ data }) => data as Entry)].slice(-2 * LAST)),
        });
      },
      (error) => setFailure(sentence(error)),
    );
    api.verify().then(setVerdict, (error) => setFailure(sentence(error)));
    return () => {
      current = false;
      stop();
    };
  }, []);
  const shown = useMemo(() => {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    return (entries ?? []).filter((entry) => {
      if (kind && entry.kind !== kind) return false;
      const text = `${entry.kind} ${entry.actor} ${entry.role ?? ""} ${entry.session ?? ""} ${entry.action_id ?? ""} ${JSON.stringify(entry.data)}`.toLowerCase();
      return wanted.every((word) => text.includes(word));
    }).reverse();
  }, [entries, kind, words]);
  const asked = useMemo(() => new Map((entries ?? []).flatMap((entry) => (entry.kind === "request" && entry.action_id ? [[entry.action_id, askedFor(entry)] as const] : []))), [entries]);
  const name = (id: string) => sessions.find((session) => session.session_id === id)?.title ?? id;
  return (
    <PlaceView title="Ledger" lead="What was asked, decided, answered and done. Each entry carries the hash of the one before it, so nobody can change one quietly.">
      <div className="bar">
        {verdict && (
          <span className={verdict.ok ? "pill sandbox" : "pill full"} data-chain={verdict.ok ? "intact" : "broken"}>
            <i className="dot" aria-hidden="true" />{verdict.ok ? `Intact: ${count(verdict.entries, "entry", "entries")} verified` : `Broken: ${count(verdict.problems.length + verdict.more, "problem")}`}
          </span>
        )}
        <label>Kind <select value={kind} onChange={(event) => setKind(event.target.value)}>{Object.entries(KINDS).map(([value, name]) => <option key={value} value={value}>{name}</option>)}</select></label>
        <input type="search" aria-label="Filter the ledger" placeholder="Filter: a path, a role, an action…" value={words} onChange={(event) => setWords(event.target.value)} />
        <button type="button" className="b" onClick={() => api.verify().then(setVerdict, complain)}>Verify again</button>
      </div>
      {verdict && !verdict.ok && <ul className="held">{verdict.problems.map((problem, index) => <li key={index}><Visible text={problem.what} /></li>)}</ul>}
      {failure && <p className="bad">{failure}</p>}
      {entries && shown.length === 0 && <Empty title="Nothing fits.">{entries.length === 0 ? "As soon as somebody asks for an action, it is written here." : "Take another kind or fewer words. This list has the latest entries; `ward ledger show` has all."}</Empty>}
      {shown.length > 0 && (
        <div className="scroll" tabIndex={0} role="group" aria-label="Entries, the latest first">
          <table className="list ledger">
            <thead><tr><th>No.</th><th>When</th><th>What</th><th>About</th><th>Who</th><th>Session</th></tr></thead>
            <tbody>
              {shown.slice(0, LAST).map((entry) => (
                <tr key={entry.seq}>
                  <td className="numbers">{entry.seq}</td>
                  <td className="numbers">{clock(entry.at)}</td>
                  <td><span className={`tag ${tone(entry)}`}>{told(entry)}</span></td>
                  <td className="about"><About entry={entry} asked={asked.get(entry.action_id ?? "")} /></td>
                  <td>{entry.role ? `${entry.role}, ` : ""}{entry.actor}</td>
                  <td className="ellipsis">{entry.session ? <a href={address({ at: "session", id: entry.session })}>{plain(name(entry.session))}</a> : ""}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </PlaceView>
  );
}

function value(data: unknown, ...path: string[]): unknown {
  return path.reduce<unknown>((at, name) => (typeof at === "object" && at !== null ? (at as Record<string, unknown>)[name] : undefined), data);
}

function told(entry: Entry): string {
  const verdict = value(entry.data, "verdict");
  const status = value(entry.data, "status");
  const resolution = value(entry.data, "resolution");
  if (entry.kind === "decision" && typeof verdict === "string") return verdict;
  if (entry.kind === "outcome" && typeof status === "string") return status;
  if (entry.kind === "answer" && typeof resolution === "string") return resolution;
  return entry.kind;
}

function tone(entry: Entry): string {
  const word = told(entry);
  if (["allow", "done", "allowed"].includes(word)) return "ok";
  if (["ask", "approval", "grant"].includes(word)) return "asks";
  return ["deny", "failed", "denied", "gap"].includes(word) ? "no" : "";
}

/** What was asked for, in a line. */
function askedFor({ data }: Entry): string | undefined {
  const action = value(data, "action");
  const params = value(data, "params");
  const line = value(params, "command") ?? value(params, "path") ?? value(params, "pattern");
  return typeof action === "string" ? `${action} ${typeof line === "string" ? line : ""}`.trim() : undefined;
}

function About({ entry, asked }: { entry: Entry; asked: string | undefined }) {
  const { data } = entry;
  const rule = value(data, "rule", "text");
  const itself = askedFor(entry);
  const words = itself !== undefined ? itself
    : typeof rule === "string" ? `${String(value(data, "rule", "kind"))} ${rule} (${String(value(data, "rule", "file"))}:${String(value(data, "rule", "line"))})`
    : typeof value(data, "error") === "string" ? String(value(data, "error"))
    : typeof value(data, "pattern") === "string" ? String(value(data, "pattern"))
    : value(data, "exit_code") !== undefined ? `exit ${String(value(data, "exit_code"))}` : "";
  return <details className="entry"><summary><Visible text={words.trim() || asked || entry.action_id || entry.kind} /></summary><pre tabIndex={0} role="group" aria-label={`Entry ${entry.seq}`}><Visible text={JSON.stringify({ action_id: entry.action_id, ...(data as object), hash: entry.hash }, null, 2)} /></pre></details>;
}

export function Runtimes() {
  const { value: known, failure } = runtimes.use();
  const { health } = useStore(ward);
  useEffect(() => void learn(), []);
  const sandbox = health?.sandbox;
  return (
    <PlaceView title="Runtimes" lead="Where actions run: this machine behind Ward's wall, and editors that are connected.">
      {failure && <p className="bad">{failure}</p>}
      {sandbox && (
        <section className="panel">
          <h2>This machine: tier <em>{sandbox.tier}</em></h2>
          <p>{tierWords[sandbox.tier]} {sandbox.tier < sandbox.minimum ? <strong className="bad">The settings demand {sandbox.minimum}: commands are refused.</strong> : null}</p>
          <ul className="layers">
            {sandbox.layers.map((layer) => (
              <li key={layer.name}><b>{layer.name}</b> <span className={layer.available ? "tag ok" : "tag asks"}>{layer.available ? "holds" : "missing"}</span><p>{layer.detail}</p>{layer.hint && <p className="warned">{layer.hint}</p>}</li>
            ))}
          </ul>
        </section>
      )}
      {known?.length === 0 && <Empty title="No runtime has been needed yet.">The local one starts with the first action in a workspace. Editors appear here once they connect.</Empty>}
      {(known ?? []).map((runtime, index) => (
        <section key={index} className="panel">
          <h2>{runtime.kind === "local" ? "Local runtime server" : runtimeName(runtime.kind)} {runtime.version} <span className={runtime.state === "ready" || runtime.state === "busy" ? "tag ok" : "tag asks"}>{runtime.state}</span></h2>
          <dl className="facts"><dt>Workspace</dt><dd className="mono"><Visible text={runtime.workspace} /></dd>{runtime.kind === "local" && <><dt>Restarts</dt><dd>{runtime.restarts}</dd></>}{runtime.kind !== "local" && <><dt>Commands</dt><dd>{runtime.confined ? "confined by Ward" : <span className="warned">not confined: in the sandbox mode they ask</span>}</dd></>}{runtime.extension_version && <><dt>Extension</dt><dd>{runtime.extension_version}</dd></>}{runtime.capabilities && runtime.capabilities.length > 0 && <><dt>It can do</dt><dd>{runtime.capabilities.join(", ")}</dd></>}{runtime.process && <><dt>Process</dt><dd>{runtime.process}</dd></>}</dl>
        </section>
      ))}
    </PlaceView>
  );
}

export function Roles() {
  const { roles } = useStore(ward);
  useEffect(() => void learn(), []);
  return (
    <PlaceView title="Roles" lead="Who an agent can be. A role is a Markdown file that says what it may do; yours are in ~/.config/ward/roles.">
      {roles?.length === 0 && <Empty title="There is no role.">Write one as a Markdown file in <code>~/.config/ward/roles</code>; <code>ward roles check</code> says whether it can be used.</Empty>}
      {(roles ?? []).map((role) => (
        <section key={role.name} className="panel">
          <h2>{role.name} {!role.usable && <span className="tag asks">not trusted</span>} {role.mode === "full" && <span className="tag no">up to full mode</span>}</h2>
          {role.description && <p>{role.description}</p>}
          {role.skills.length > 0 ? <ul className="plainlist">{role.skills.map((skill) => <li key={skill}>may {skillWords(skill)} <code><Visible text={skill} /></code></li>)}</ul> : <p className="soft">It may do nothing by itself.</p>}
          <p className="soft small-print">{role.origin.source}: <span className="mono">{role.origin.file}:{role.origin.line}</span>{role.model && <> · model {role.model}</>}</p>
          {!role.usable && <p className="warned">This role comes with the workspace. <code>ward trust</code> there lets it be used.</p>}
        </section>
      ))}
    </PlaceView>
  );
}

/** What this browser keeps of notebooks goes first: whoever uses it next has no right to it. */
async function signOut(): Promise<void> {
  try {
    if (host.kind === "browser") await import("@ward/runtime-browser").then(({ forgetNotebooks }) => forgetNotebooks());
    await api.signOut();
    location.reload();
  } catch (error) {
    complain(error);
  }
}

export function SettingsPlace() {
  const now = useStore(settings);
  const { health, models } = useStore(ward);
  useEffect(() => void learn(), []);
  const notify = useCallback(async (wanted: boolean) => {
    if (!wanted) return remember({ notify: false });
    if (typeof Notification === "undefined") return complain("This browser has no notifications.");
    const answer = await Notification.requestPermission();
    if (answer === "granted") remember({ notify: true });
    else complain("The browser does not allow notifications for this page. Its site settings say so.");
  }, []);
  return (
    <PlaceView title="Settings" lead="Of this browser. What agents may do stands in roles and rules, not here.">
      <section className="panel">
        <h2>Look</h2>
        <fieldset className="choices"><legend>Theme</legend>
          {(["system", "light", "dark"] as const).map((theme) => (
            <label key={theme}><input type="radio" name="theme" checked={now.theme === theme} onChange={() => remember({ theme })} /> {theme === "system" ? "as the system" : theme}</label>
          ))}
        </fieldset>
      </section>
      <section className="panel">
        <h2>Questions</h2>
        <label><input type="checkbox" checked={now.notify} onChange={(event) => void notify(event.target.checked)} /> Notify me in the browser when a question waits and this page is in the background</label>
      </section>
      <section className="panel">
        <h2>Models</h2>
        <p>Where nobody chooses one: <code>{models?.default ?? "…"}</code></p>
        <ul className="layers">
          {(models?.providers ?? []).map((provider) => (
            <li key={provider.provider}><b>{provider.provider}</b> <span className={provider.unusable ? "tag asks" : "tag ok"}>{provider.unusable ? "not usable" : "usable"}</span><p>{provider.unusable ? <Sentence text={provider.unusable} /> : provider.models.join(", ")}</p></li>
          ))}
        </ul>
      </section>
      <section className="panel">
        <h2>Keys</h2>
        <dl className="facts keys">
          {[["a", "allow once"], ["s", "allow for this session"], ["w", "always in this workspace…"], ["d", "deny…"], ["/", "write a message"], ["n", "new session"], ["i", "what waits"], ["Ctrl .", "stop the agent"], ["Esc", "leave a field or a dialog"]].map(([key, what]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{what}</dd></div>)}
        </dl>
      </section>
      <section className="panel">
        <h2>This Ward</h2>
        <dl className="facts"><dt>Version</dt><dd>{health?.version}</dd><dt>Signed in as</dt><dd>{health?.actor}</dd><dt>Workspace</dt><dd className="mono">{health?.workspace}</dd><dt>Store</dt><dd className="mono">{health?.store?.path}</dd></dl>
        <button type="button" className="b" onClick={() => void signOut()}>Sign this browser out</button>
      </section>
    </PlaceView>
  );
}
