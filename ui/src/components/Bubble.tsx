// A decision: what exactly would happen, why it asks, who asks, and four answers with their keys.

import { type KeyboardEvent, memo, useEffect, useId, useMemo, useRef, useState } from "react";
import { api } from "../api/client";
import { Failure, sentence } from "../api/failure";
import type { AnswerScope, Approval, Choice, Resolved } from "../api/schema";
import { announce } from "../model/announce";
import { answer, inbox, resolved as closed } from "../model/inbox";
import { address } from "../model/route";
import { useStore } from "../model/store";
import { readDiff } from "../text/diff";
import { plain } from "../text/visible";
import { actorName, baseName, until, wants, within } from "../text/words";
import { DiffView } from "./DiffView";
import { Visible } from "./Visible";

/** A question that just appeared takes no key for a moment: what was being typed was not meant for it. */
const ARMS = 400;

interface Props {
  approval: Approval;
  child?: string;
  /** Whether the keys a, s, w, d are its own, wherever the focus is. */
  keys: boolean;
  /** Whether it says which session it belongs to. */
  elsewhere?: boolean;
}

export const Bubble = memo(function Bubble({ approval: told, child, keys, elsewhere = false }: Props) {
  const [whole, setWhole] = useState<Approval>();
  const approval = whole ?? told;
  const [step, setStep] = useState<"choose" | "always" | "deny">("choose");
  const [patterns, setPatterns] = useState(() => offered(told));
  const [reason, setReason] = useState("");
  const [under, setUnder] = useState(false);
  const [trouble, setTrouble] = useState<string>();
  const [armed, setArmed] = useState(false);
  const box = useRef<HTMLElement>(null);
  const title = useId();

  useEffect(() => {
    const timer = setTimeout(() => setArmed(true), ARMS);
    let current = true;
    // With what it would change, which the stream does not tell.
    api.approval(told.id).then(
      (found) => current && setWhole(found),
      (error) => {
        if (current && error instanceof Failure && [404, 409].includes(error.status)) gone(told, error);
      },
    );
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [told.id]);

  const send = async (decision: Choice, scope: AnswerScope) => {
    if (under || !armed) return;
    setUnder(true);
    setTrouble(undefined);
    try {
      const same = JSON.stringify(patterns) === JSON.stringify(offered(approval));
      await answer(approval, decision, scope, {
        ...(decision === "deny" && reason.trim() !== "" && { reason: reason.trim() }),
        ...(decision === "allow" && scope !== "once" && !same && { patterns }),
      });
      announce(decision === "allow" ? "Allowed." : "Denied.");
    } catch (error) {
      if (error instanceof Failure && error.kind === "closed") return gone(approval, error);
      setTrouble(sentence(error));
      setUnder(false);
    }
  };
  const lasting = patterns.length > 0;
  const covered = [...new Set(patterns)];
  const choose = (key: string): boolean => {
    if (!armed || under) return false;
    if (key === "a") void send("allow", "once");
    else if (key === "s" && lasting) void send("allow", "session");
    else if (key === "w" && lasting) setStep("always");
    else if (key === "d") setStep("deny");
    else return false;
    return true;
  };
  useEffect(() => {
    if (!keys) return;
    const press = (event: globalThis.KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.repeat || writes(event.target)) return;
      if (document.querySelector("dialog[open]")) return;
      if (choose(event.key)) event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  });
  const escape = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || step === "choose") return;
    event.preventDefault();
    setStep("choose");
    box.current?.querySelector<HTMLElement>("[data-first]")?.focus();
  };

  return (
    <section ref={box} className={keys ? "ask has-keys" : "ask"} role="group" aria-labelledby={title} data-approval={approval.id} data-armed={armed} onKeyDown={escape}>
      <h3 className="ask-title" id={title}>
        <span className="ask-dot" aria-hidden="true">●</span>
        <span><Visible text={approval.role} /> {headline(approval)}</span>
      </h3>
      <div className="ask-body">
        <What approval={approval} />
        <dl className="facts">
          <Why approval={approval} />
          <Touches approval={approval} />
          <dt>Who asks</dt>
          <dd>
            role <Visible text={approval.role} />
            {child && <>, a sub-agent: <a href={address({ at: "session", id: child })}>its session</a></>}
            {elsewhere && approval.session_id && <>, in <a href={address({ at: "session", id: approval.session_id })}>its session</a></>}
            {elsewhere && !approval.session_id && <>, as <Visible text={approval.actor} /></>}
            {" "}· {approval.mode === "full" ? <strong className="bad">full mode</strong> : "sandbox"} · {baseName(approval.workspace)}
          </dd>
          <dt>It waits</dt>
          <dd>{WAITS[approval.subject.about]} <Left at={approval.expires_at} /></dd>
        </dl>
        {trouble && <p className="bad" role="alert">{trouble}</p>}
      </div>
      {step === "choose" && (
        <div className="acts">
          <button type="button" className="b p" data-first disabled={under} aria-keyshortcuts="a" onClick={() => send("allow", "once")}>Allow once<kbd aria-hidden="true">a</kbd></button>
          {lasting && approval.session_id && <button type="button" className="b" disabled={under} aria-keyshortcuts="s" title={`Allows ${covered.map(plain).join(", ")} until the session ends`} onClick={() => send("allow", "session")}>This session<kbd aria-hidden="true">s</kbd></button>}
          {lasting && <button type="button" className="b" disabled={under} aria-keyshortcuts="w" onClick={() => armed && setStep("always")}>Always here…<kbd aria-hidden="true">w</kbd></button>}
          <button type="button" className="b n" disabled={under} aria-keyshortcuts="d" onClick={() => armed && setStep("deny")}>Deny…<kbd aria-hidden="true">d</kbd></button>
          {lasting && <p className="covers">For longer, it covers {covered.map((pattern) => <code key={pattern}><Visible text={pattern} strict /></code>)} <button type="button" className="link" onClick={() => armed && setStep("always")}>narrow…</button></p>}
          {!lasting && <p className="covers">This can be answered only once.</p>}
        </div>
      )}
      {step === "always" && (
        <Always approval={approval} patterns={patterns} setPatterns={setPatterns} under={under} send={send} back={() => setStep("choose")} />
      )}
      {step === "deny" && (
        <form className="acts column" onSubmit={(event) => { event.preventDefault(); void send("deny", "once"); }}>
          <label htmlFor={`${title}r`}>Why not? The agent is told; it may be left empty.</label>
          <input id={`${title}r`} autoFocus value={reason} maxLength={1000} autoComplete="off" onChange={(event) => setReason(event.target.value)} />
          <div className="row-of">
            <button type="submit" className="b n" disabled={under}>Deny<kbd aria-hidden="true">enter</kbd></button>
            <button type="button" className="b" onClick={() => setStep("choose")}>Back<kbd aria-hidden="true">esc</kbd></button>
          </div>
        </form>
      )}
    </section>
  );
});

function Always({ approval, patterns, setPatterns, under, send, back }: {
  approval: Approval;
  patterns: string[];
  setPatterns: (patterns: string[]) => void;
  under: boolean;
  send: (decision: Choice, scope: AnswerScope) => void;
  back: () => void;
}) {
  const id = useId();
  const lasting = approval.questions.filter((question) => question.pattern);
  return (
    <form className="acts column" onSubmit={(event) => { event.preventDefault(); send("allow", "workspace"); }}>
      {lasting.map((question, index) => (
        <div key={index} className="pattern">
          <label htmlFor={`${id}${index}`}>Always allow, in this workspace and role</label>
          <input id={`${id}${index}`} className="mono" autoFocus={index === 0} value={patterns[index] ?? ""} spellCheck={false} autoComplete="off"
            onChange={(event) => setPatterns(patterns.with(index, event.target.value))} />
          <span className="row-of">
            {[question.pattern, question.wider].map((pattern) => pattern && (
              <button key={pattern} type="button" className={patterns[index] === pattern ? "chip on" : "chip"} aria-pressed={patterns[index] === pattern}
                onClick={() => setPatterns(patterns.with(index, pattern))}>
                {pattern === question.pattern ? "just this" : "wider"}: <code><Visible text={pattern} strict /></code>
              </button>
            ))}
          </span>
        </div>
      ))}
      <div className="row-of">
        <button type="submit" className="b p" disabled={under || patterns.some((pattern) => pattern.trim() === "")}>Always allow here<kbd aria-hidden="true">enter</kbd></button>
        {approval.session_id && <button type="button" className="b" disabled={under} onClick={() => send("allow", "session")}>Only this session</button>}
        <button type="button" className="b" onClick={back}>Back<kbd aria-hidden="true">esc</kbd></button>
      </div>
    </form>
  );
}

const WAITS: Record<Approval["subject"]["about"], string> = {
  action: "Nothing has been done yet.",
  host: "The connection is held; nothing has been sent.",
  again: "It ended because the wall stopped it. Yes runs it again, with this path opened; what it did before may be done twice.",
};

function Left({ at }: { at: number }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), at - Date.now() < 90_000 ? 1000 : 15_000);
    return () => clearInterval(timer);
  }, [at, at - now < 90_000]);
  return <span className="soft">No answer in {until(at, now)} is a no.</span>;
}

function headline(approval: Approval): string {
  switch (approval.subject.about) {
    case "host":
      return "wants to reach the network";
    case "again":
      return "wants to run a command again, with more open";
    case "action":
      return wants(approval.action);
  }
}

/** Actions whose paths do not tell all of what they do. */
const UNTOLD = new Set(["editor.rename"]);

function What({ approval }: { approval: Approval }) {
  const { facts, subject, params, preview } = approval;
  const diff = useMemo(() => (preview ? readDiff(preview, approval.action !== "fs.patch") : undefined), [preview]);
  // A host is asked for by a command that runs: what it was started with is what it does.
  const line = facts.command?.line ?? facts.command?.argv.map(quoted).join(" ") ?? (approval.action.startsWith("terminal.") ? member(params, "command") : undefined);
  const stdin = member(params, "stdin");
  const paths = line === undefined && approval.action !== "fs.patch" ? (facts.paths ?? []) : [];
  return (
    <>
      {paths.length > 0 && <pre className="cmd" tabIndex={0} role="group" aria-label="The path, whole"><Visible text={paths.map((path) => path.path).join("\n")} strict /></pre>}
      {line !== undefined && <pre className="cmd" tabIndex={0} role="group" aria-label="The command, whole"><Visible text={line} strict /></pre>}
      {subject.about === "host" && <p className="reach">to <strong className="mono"><Visible text={subject.host} strict /></strong></p>}
      {subject.about === "again" && (
        <ul className="plainlist">{subject.widen.map((widen, index) => <li key={index}>{widen.access === "write" ? "write" : "read"} <code><Visible text={widen.path} strict /></code></li>)}
          {(subject.wanted ?? []).map((path) => <li key={path}>to make <code><Visible text={path} strict /></code></li>)}</ul>
      )}
      {diff && diff.lines.length > 0 && <div className="framed"><DiffView diff={diff} label="What would change" /></div>}
      {line === undefined && !diff && (paths.length === 0 || UNTOLD.has(approval.action)) && <pre className="cmd" tabIndex={0} role="group" aria-label="What is asked for, whole"><Visible text={JSON.stringify(params, null, 2)} strict /></pre>}
      {facts.command?.env && Object.keys(facts.command.env).length > 0 && (
        <p className="reach">with {Object.entries(facts.command.env).map(([name, value]) => <code key={name}><Visible text={`${name}=${value}`} strict /></code>)}</p>
      )}
      {stdin !== undefined && stdin !== "" && <><p className="reach">and reads</p><pre className="cmd" tabIndex={0} role="group" aria-label="Its standard input"><Visible text={stdin} strict /></pre></>}
    </>
  );
}

/** Kinds whose names are no words: whether such a rule is meant cannot be known. */
const KINDS: Record<string, string> = { rule_maybe: "perhaps a rule that denies", protected_maybe: "perhaps protected", skill_maybe: "skill" };

function Why({ approval }: { approval: Approval }) {
  const { rule } = approval;
  return (
    <>
      {approval.again && <><dt>Asked again</dt><dd><strong className="warned"><Visible text={approval.again.because} /></strong></dd></>}
      <dt>Why it asks</dt>
      <dd>
        {rule.reason ? <><Visible text={rule.reason} /> · </> : null}
        {KINDS[rule.kind] ?? rule.kind} <code><Visible text={rule.text} /></code>
        {rule.file && <>, <span className="mono"><Visible text={`${rule.file}:${rule.line}`} /></span></>}
      </dd>
    </>
  );
}

function Touches({ approval }: { approval: Approval }) {
  const { facts, workspace, questions } = approval;
  const paths = facts.paths ?? [];
  const hosts = approval.subject.about === "host" ? [] : (facts.hosts ?? []);
  // What the lines around it say already is not said again.
  const shown = approval.subject.about === "host" ? [] : questions.filter(
    (question) => question.touch && question.touch !== facts.command?.line && !paths.some((path) => question.touch === `${path.access} ${path.path}`),
  );
  return (
    <>
      {shown.length > 0 && (
        <>
          <dt>It would</dt>
          <dd><ul className="plainlist">{shown.map((question, index) => <li key={index}><span className="mono"><Visible text={question.touch} strict /></span>{question.why && !question.why.includes(approval.rule.text) && <span className="soft">: <Visible text={question.why} /></span>}</li>)}</ul></dd>
        </>
      )}
      {(paths.length > 0 || hosts.length > 0) && (
        <>
          <dt>It touches</dt>
          <dd><ul className="plainlist">
            {paths.map((path, index) => <li key={index}>{path.access} <span className="mono"><Visible text={within(path.path, workspace)} strict /></span>{!path.path.startsWith(`${workspace}/`) && path.path !== workspace && <strong className="warned"> outside the workspace</strong>}{!path.kind && path.access === "write" && approval.subject.about === "action" && <span className="soft"> (new)</span>}</li>)}
            {hosts.map((host) => <li key={host}>reach <span className="mono"><Visible text={host} strict /></span></li>)}
          </ul></dd>
        </>
      )}
      {facts.command && facts.command.cwd !== workspace && <><dt>In</dt><dd className="mono"><Visible text={within(facts.command.cwd, workspace)} strict /></dd></>}
      {(facts.files ?? []).length > 0 && (
        <>
          <dt>It names</dt>
          <dd><ul className="plainlist">
            {(facts.files ?? []).map((file, index) => <li key={index} className="mono"><Visible text={within(file.path, workspace)} strict /></li>)}
            {facts.more_files && <li>and further files</li>}
            <li className="soft">Your answer holds for what is in them now.</li>
          </ul></dd>
        </>
      )}
      {(facts.unbound ?? []).length > 0 && (
        <>
          <dt>Not known</dt>
          <dd>{(facts.unbound ?? []).map((word, index) => <code key={index}><Visible text={word} strict /> </code>)}<span className="soft">which files these name; they may change after your answer</span></dd>
        </>
      )}
      {facts.command?.program && <><dt>Program</dt><dd className="mono"><Visible text={facts.command.program} strict /></dd></>}
    </>
  );
}

/** How a question was closed, in a line. */
export function Closed({ resolved }: { resolved: Resolved }) {
  const by = resolved.by ? ` by ${plain(actorName(resolved.by))}` : "";
  const scope = resolved.scope === "session" ? "for this session" : resolved.scope === "workspace" ? "always in this workspace" : "once";
  const words = {
    allowed: `Allowed ${scope}${by}.`,
    denied: `Denied${by}${resolved.reason ? `: ${plain(resolved.reason)}` : "."}`,
    changed: "What was asked about has changed since.",
    expired: "Nobody answered in time, so it was not done.",
    withdrawn: "It was not waited for any longer.",
  }[resolved.resolution];
  return <p className={`closed ${resolved.resolution}`}>{words}</p>;
}

/** A question as it stands, by whatever was heard of it first. */
export function AskView({ approval, child, resolved, keys, elsewhere }: Props & { resolved: Resolved | undefined }) {
  const known = useStore(inbox).resolved.get(approval.id);
  const end = resolved ?? known;
  return end ? <Closed resolved={end} /> : <Bubble approval={approval} child={child} keys={keys} elsewhere={elsewhere} />;
}

function gone(approval: Approval, error: Failure): void {
  const { resolution, by, scope, reason } = error.details as Partial<Resolved>;
  announce("It was answered already.");
  closed({ approval_id: approval.id, action_id: approval.action_id, resolution: resolution ?? "withdrawn", by, scope, reason });
}

function offered(approval: Approval): string[] {
  return approval.questions.every((question) => question.pattern) ? approval.questions.flatMap((question) => question.pattern ?? []) : [];
}

function writes(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function member(value: unknown, name: string): string | undefined {
  const found = typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
  return typeof found === "string" ? found : undefined;
}
