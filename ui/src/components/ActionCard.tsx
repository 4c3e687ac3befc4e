import { Suspense, lazy, memo, useEffect, useMemo, useState } from "react";
import { follow } from "../api/events";
import { announce, complain } from "../model/announce";
import { Lines } from "../model/ansi";
import { type Call, decoded } from "../model/conversation";
import { type Result, argument, argumentList, resultOf } from "../model/result";
import { address } from "../model/route";
import { type Change, canUndo, changeOf, kept, learnKept } from "../model/changes";
import { useStore } from "../model/store";
import { useUndone, undo } from "../model/undo";
import { readDiff } from "../text/diff";
import { bytes, count, duration, within } from "../text/words";
import { CopyButton } from "./CopyButton";
import { Counts, DiffView } from "./DiffView";
import { Output } from "./Output";
import { Sentence, Visible } from "./Visible";

const Terminal = lazy(() => import("./Terminal"));

/** One action of the agent: what, where, how far, and what came of it. */
export const ActionCard = memo(function ActionCard({ call, workspace }: { call: Call; workspace: string }) {
  const result = resultOf(call);
  const state = stateOf(call, result);
  const known = useStore(kept);
  const change = useMemo(() => changeOf(call, known), [call.output, call.called, known.get(call.called.action_id ?? "")]);
  const action = call.called.action ?? call.called.name;
  const command = action.startsWith("terminal.");
  const [open, setOpen] = useState<boolean>();
  const shown = open ?? (command || Boolean(call.called.child) || (change !== undefined && action !== "fs.delete") || state === "asking" || state === "failed");
  const wanted = shown || action === "fs.write";
  useEffect(() => {
    if (wanted) learnKept(call);
  }, [wanted, call.output]);
  const body = <Body call={call} result={result} change={change} shown={shown} />;
  const what = useMemo(() => whatOf(call, workspace), [call.called, workspace]);
  return (
    <section className={`card is-${state}`} aria-label={`${action}: ${STATES[state]}`} data-call={call.called.call_id} data-state={state}>
      <div className="card-head">
        <button type="button" className="card-fold" aria-expanded={shown} onClick={() => setOpen(!shown)}>
          <span className={`mark is-${state}`} aria-hidden="true">{MARKS[state]}</span>
          <span className="sr">{STATES[state]}: </span>
          {action !== "terminal.run" && <span className="verb">{action}</span>}
          <span className="what"><Visible text={what} /></span>
        </button>
        <span className="meta"><Meta call={call} result={result} state={state} change={change} /></span>
      </div>
      {shown && body}
    </section>
  );
});

type State = "running" | "asking" | "done" | "bad" | "failed" | "denied";

const MARKS: Record<State, string> = { running: "●", asking: "●", done: "✓", bad: "!", failed: "✕", denied: "✕" };
const STATES: Record<State, string> = { running: "runs", asking: "waits for your answer", done: "done", bad: "ended badly", failed: "failed", denied: "refused" };

function stateOf(call: Call, result: Result): State {
  if (!call.output) return call.asks.some((ask) => !ask.resolved) ? "asking" : "running";
  if (!call.output.ok) return call.output.kind === "denied" ? "denied" : "failed";
  return (result.exit !== undefined && result.exit !== 0) || result.signal || result.timedOut ? "bad" : "done";
}

function whatOf(call: Call, workspace: string): string {
  const words = argumentList(call, "argv").filter((word) => typeof word === "string");
  const from = argument(call, "from");
  const to = argument(call, "to");
  if (from && to) return `${within(from, workspace)} → ${within(to, workspace)}`;
  if (call.called.action === "fs.patch") {
    const { files } = readDiff(argument(call, "patch") ?? "");
    return files.length === 1 ? within(files[0]?.path ?? "", workspace) : count(files.length, "file");
  }
  const pattern = argument(call, "pattern");
  const path = argument(call, "path");
  if (pattern) return path && path !== "." ? `${pattern} in ${within(path, workspace)}` : pattern;
  return argument(call, "command") ?? (words.length > 0 ? words.join(" ") : undefined) ?? (path ? within(path, workspace) : undefined)
    ?? argument(call, "terminal_id") ?? (call.called.action ? "" : call.called.name);
}

function Meta({ call, result, state, change }: { call: Call; result: Result; state: State; change: Change | undefined }) {
  const parts = [];
  if (result.exit !== undefined) parts.push(<span key="exit">exit {result.exit}</span>);
  else if (result.signal) parts.push(<span key="signal">{result.signal}</span>);
  if (result.timedOut) parts.push(<span key="late">took too long</span>);
  if (change) parts.push(<span key="counts"><Counts diff={change.diff} /></span>);
  if (call.output) parts.push(<span key="time">{duration(call.output.duration_ms)}</span>);
  else parts.push(<span key="time"><Running since={call.since} asks={state === "asking"} /></span>);
  if (result.tier) parts.push(<span key="tier" className="hide-narrow">{result.tier === "none" ? "not confined" : "in the sandbox"}</span>);
  if (canUndo(call)) parts.push(<span key="undo"><Undo action={call.called.action_id ?? ""} path={change?.path ?? argument(call, "path") ?? argument(call, "to") ?? ""} /></span>);
  return <>{parts}</>;
}

function Running({ since, asks }: { since: number | undefined; asks: boolean }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (asks || since === undefined) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [asks, since]);
  if (asks) return "waits for you";
  return since === undefined || now - since < 1000 ? "runs" : `runs, ${duration(now - since)}`;
}

function Undo({ action, path }: { action: string; path: string }) {
  const undone = useUndone(action);
  const [under, setUnder] = useState(false);
  if (undone) return "undone";
  const take = async () => {
    setUnder(true);
    try {
      await undo({ action });
      announce("Undone.");
    } catch (error) {
      complain(error);
    } finally {
      setUnder(false);
    }
  };
  return <button type="button" className="link" disabled={under} onClick={take} aria-label={`Undo the change of ${path}`}>undo</button>;
}

function Body({ call, result, change, shown }: { call: Call; result: Result; change: Change | undefined; shown: boolean }) {
  const action = call.called.action ?? "";
  const { output } = call;
  if (call.called.child) {
    return <p className="card-note"><a href={address({ at: "session", id: call.called.child })}>Open the sub-agent's session</a></p>;
  }
  if (action === "terminal.open" && call.called.action_id && output?.ok) {
    return <Suspense fallback={<div className="xterm-box" />}><Terminal call={call} id={result.terminal} /></Suspense>;
  }
  return (
    <>
      {change && <DiffView diff={change.diff} label={`What changed in ${change.path}`} />}
      {change?.replaced && <p className="card-note soft">The file was replaced by this. What it had before cannot be shown.</p>}
      {action.startsWith("terminal.") && <Printed call={call} result={result} shown={shown} />}
      {!change && !action.startsWith("terminal.") && output?.ok && <Plain call={call} result={result} />}
      {output && !output.ok && <p className={output.kind === "denied" ? "card-note" : "card-note bad"}><Sentence text={output.output} /></p>}
      <Held result={result} />
    </>
  );
}

/** What it printed: as it comes, or from the result; all of it where the session has only a part. */
function Printed({ call, result, shown }: { call: Call; result: Result; shown: boolean }) {
  const [tall, setTall] = useState(false);
  const [all, setAll] = useState<{ lines: Lines; printed: number }>();
  const [wanted, setWanted] = useState(false);
  const fromResult = useMemo(() => {
    const lines = new Lines();
    if (result.stdout) lines.push(result.stdout);
    if (result.stderr) lines.push(result.stderr);
    return lines;
  }, [result]);
  const action = call.called.action_id ?? undefined;
  const cut = call.cut || result.truncated === true || Boolean(call.output?.rest);
  const running = !call.output;
  // Once it is followed, it is followed to its end.
  useEffect(() => {
    if (call.cut && running) setWanted(true);
  }, [call.cut, running]);
  const follows = shown && action !== undefined && wanted;
  useEffect(() => {
    if (!follows || action === undefined) return;
    const lines = new Lines();
    let printed = 0;
    return follow({
      path: () => `/actions/${encodeURIComponent(action)}/events`,
      after: 0,
      told: (events) => {
        for (const { event, data } of events) {
          if (event === "action.output") {
            const { data: text, encoding } = data as { data: string; encoding?: string };
            lines.push(decoded(text, encoding));
          } else if (event === "action.dropped") {
            const { bytes: size } = data as { bytes?: number };
            lines.push(`\n… ${size ? bytes(size) : "the rest"} was not kept\n`);
          }
        }
        setAll({ lines, printed: ++printed });
      },
    });
  }, [follows, action]);
  const lines = all?.lines ?? (call.lines.empty ? fromResult : call.lines);
  if (lines.empty) return running || !call.output?.ok || call.asks.some((ask) => !ask.resolved) ? null : <p className="card-note soft">It printed nothing.</p>;
  return (
    <>
      <Output lines={lines} printed={all?.printed ?? call.printed} label="Output" tall={tall} />
      <div className="term-foot">
        <span>{count(lines.count, "line")}{cut && !all ? ", cut here" : ""}</span>
        <span className="grow" />
        {cut && !follows && action !== undefined && <button type="button" className="link quiet" onClick={() => setWanted(true)}>show all of it</button>}
        {lines.count > 14 && <button type="button" className="link quiet" onClick={() => setTall(!tall)}>{tall ? "smaller" : "larger"}</button>}
        <CopyButton text={() => lines.text()} what="output" />
      </div>
    </>
  );
}

const SHOWN = 200;

function Plain({ call, result }: { call: Call; result: Result }) {
  if (result.content !== undefined) {
    return <Output lines={linesOf(result.content)} printed={0} label={`Content of ${argument(call, "path") ?? "the file"}`} />;
  }
  if (result.entries) {
    if (result.entries.length === 0) return <p className="card-note soft">Nothing is there.</p>;
    return (
      <ul className="entries">
        {result.entries.slice(0, SHOWN).map((entry, index) => (
          <li key={index}><Visible text={entry.path + (entry.kind === "directory" ? "/" : "")} />{entry.size !== undefined && <span className="soft"> {bytes(entry.size)}</span>}</li>
        ))}
        {result.entries.length > SHOWN && <li className="soft">… and {count(result.entries.length - SHOWN, "more entry", "more entries")}</li>}
      </ul>
    );
  }
  if (result.matches) {
    if (result.matches.length === 0) return <p className="card-note soft">Nothing was found.</p>;
    return (
      <ul className="entries">
        {result.matches.slice(0, SHOWN).map((match, index) => (
          <li key={index}><span className="soft"><Visible text={match.path} />:{match.line}</span> <Visible text={match.text} /></li>
        ))}
      </ul>
    );
  }
  const text = call.output?.output ?? "";
  return result.known || text === "" ? null : <Output lines={linesOf(text)} printed={0} label="What the agent was told" />;
}

const read = new Map<string, Lines>();

function linesOf(text: string): Lines {
  let lines = read.get(text);
  if (!lines) {
    lines = new Lines();
    lines.push(text);
    if (read.size > 50) read.clear();
    read.set(text, lines);
  }
  return lines;
}

/** What the wall held back, and what else is to be known about it. */
function Held({ result }: { result: Result }) {
  if (result.stopped.length === 0 && result.setAside.length === 0 && result.scratch.length === 0 && !result.limit) return null;
  return (
    <ul className="held" aria-label="What the sandbox stopped">
      {result.stopped.map((stop, index) => (
        <li key={`s${index}`}>The wall stopped {stop.access === "connect" ? "a connection to" : "a write to"} <code><Visible text={stop.target} /></code></li>
      ))}
      {result.setAside.map((aside) => (
        <li key={aside.id}>Set aside <code><Visible text={aside.path} /></code>: <Visible text={aside.reason} />. <code>ward aside restore {aside.id}</code> puts it back.</li>
      ))}
      {result.scratch.length > 0 && <li>Meant for your home folder, kept in the session's own: {result.scratch.slice(0, 5).map((path, index) => <code key={index}><Visible text={path} /></code>)}</li>}
      {result.limit && <li>Ended by the limit of {result.limit}.</li>}
    </ul>
  );
}
