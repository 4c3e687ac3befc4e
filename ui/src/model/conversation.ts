// A session's events, folded into what is shown. Pure: events in, a conversation out. What an event
// did not touch stays the same object, so that it is not drawn again.

import type { Approval, Failed, Mode, Origin, Resolved, RuntimeChosen, SessionEvent, StopReason, ToolCalled, ToolOutput, Usage } from "../api/schema";
import { runtimeName } from "../text/words";
import { Lines } from "./ansi";

export interface Said {
  type: "said";
  key: string;
  /** The number of its event: what came before it is what the agent knew. */
  seq: number;
  text: string;
  origin: Origin;
  images: number;
}

export interface Answer {
  type: "answer";
  key: string;
  text: string;
  reasoning: string;
  done: boolean;
}

export interface Ask {
  approval: Approval;
  child?: string;
  resolved?: Resolved;
}

export interface Call {
  type: "call";
  key: string;
  called: ToolCalled;
  /** What it printed so far; it grows in place, `printed` says so. */
  lines: Lines;
  printed: number;
  /** More was printed than is told here. */
  cut: boolean;
  pty: boolean;
  asks: Ask[];
  output?: ToolOutput;
  /** Whether it was done in an editor. */
  elsewhere: boolean;
  /** As whom, and how freely, it was asked for. */
  role: string;
  mode: Mode;
  /** When it was first seen here; only then is the time it takes known before its end. */
  since?: number;
}

export interface Note {
  type: "note";
  key: string;
  tone: "plain" | "warn";
  text: string;
}

export interface Trouble {
  type: "trouble";
  key: string;
  failure: Failed;
}

export type Item = Said | Answer | Call | Note | Trouble;

export interface Conversation {
  items: Item[];
  /** The number of the last event. */
  seq: number;
  running: boolean;
  stop?: StopReason;
  role: string;
  model: string;
  mode: Mode;
  workspace: string;
  title?: string;
  parent?: string;
  forkedFrom?: string;
  /** The editor in which its actions run; none where they run on this machine. */
  runtime?: RuntimeChosen;
  /** What it waits for before it can act at all. */
  awaits?: string;
  turns: number;
  usage?: Usage;
  cost?: number;
  /** Where the turn that is under way began in `items`. */
  turnAt: number;
}

export const empty: Conversation = {
  items: [], seq: 0, running: false, role: "", model: "", mode: "sandbox", workspace: "", turns: 0, turnAt: 0,
};

const decoder = new TextDecoder();

export function decoded(data: string, encoding: string | undefined): string {
  if (encoding !== "base64") return data;
  return decoder.decode(Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0)));
}

type Numbered = SessionEvent & { seq: number };

/** What becomes of a conversation by these events. `live` where they happen now. */
export function fold(before: Conversation, events: Numbered[], live: boolean): Conversation {
  const now: Conversation = { ...before, items: [...before.items] };
  for (const event of events) {
    if (event.seq <= now.seq) continue;
    now.seq = event.seq;
    step(now, event, live);
  }
  return now;
}

function step(now: Conversation, event: Numbered, live: boolean): void {
  const { seq } = event;
  const key = `e${seq}`;
  switch (event.event) {
    case "session.started": {
      const { role, model, mode, workspace, parent, forked_from } = event.data;
      Object.assign(now, { role, model, mode, workspace, parent: parent ?? undefined, forkedFrom: forked_from ?? undefined });
      if (forked_from) note(now, key, "A copy of another session, up to here.");
      return;
    }
    case "session.changed": {
      const { role, model, mode, title, handoff } = event.data;
      const words = [];
      if (role) words.push(handoff ? `handed over to ${role}` : `role ${role}`);
      if (model) words.push(`model ${model}`);
      if (mode) words.push(`mode ${mode}`);
      if (role) now.role = role;
      if (model) now.model = model;
      if (mode) now.mode = mode;
      if (title) now.title = title;
      if (words.length > 0) note(now, key, `From here on: ${words.join(", ")}.`, mode === "full" ? "warn" : "plain");
      return;
    }
    case "runtime.awaited":
      now.awaits = event.data.reason;
      return;
    case "runtime.chosen":
      now.awaits = undefined;
      now.runtime = event.data;
      note(now, key, `From here on actions run in ${runtimeName(event.data.kind)}, ${event.data.workspace}.`);
      return;
    case "message.received": {
      const { message_id, origin, text, images } = event.data;
      now.items.push({ type: "said", key: `m${message_id}`, seq, origin, text, images: images ?? 0 });
      now.running = true;
      now.stop = undefined;
      return;
    }
    case "turn.started":
      now.running = true;
      now.awaits = undefined;
      now.turns = event.data.turn;
      now.turnAt = now.items.length;
      return;
    case "text.delta":
      answer(now, key, (item) => ({ ...item, text: item.text + event.data.text }));
      return;
    case "reasoning.delta":
      answer(now, key, (item) => ({ ...item, reasoning: item.reasoning + event.data.text }));
      return;
    case "message.completed": {
      const last = now.items.findLastIndex((item, index) => index >= now.turnAt && item.type === "answer");
      const item = now.items[last];
      if (item?.type === "answer") now.items[last] = { ...item, done: true, text: event.data.text || item.text };
      else if (event.data.text) now.items.push({ type: "answer", key, text: event.data.text, reasoning: "", done: true });
      return;
    }
    case "turn.dropped":
      // What somebody said meanwhile was heard.
      now.items = now.items.filter((item, index) => index < now.turnAt || item.type === "said");
      note(now, key, `${NOTHING} ${event.data.reason}`, "warn");
      now.turnAt = now.items.length;
      return;
    case "tool.called":
      finishAnswer(now);
      now.items.push({
        type: "call", key: `c${event.data.call_id}`, called: event.data, lines: new Lines(), printed: 0, cut: false, pty: false, asks: [],
        elsewhere: now.runtime !== undefined, role: now.role, mode: now.mode,
        since: live ? Date.now() : undefined,
      });
      return;
    case "tool.progress": {
      const { call_id, stream, data, encoding } = event.data;
      change(now, call_id, (call) => {
        if (stream === "dropped") return { ...call, cut: true };
        call.lines.push(decoded(data, encoding));
        return { ...call, printed: call.printed + 1, pty: call.pty || stream === "pty" };
      });
      return;
    }
    case "permission.requested": {
      const { call_id, approval, child } = event.data;
      change(now, call_id, (call) => ({ ...call, asks: [...call.asks, { approval, child: child ?? undefined }] }));
      return;
    }
    case "permission.resolved": {
      const resolved = event.data;
      change(now, resolved.call_id, (call) => ({
        ...call,
        asks: call.asks.map((ask) => (ask.approval.id === resolved.approval_id ? { ...ask, resolved } : ask)),
      }));
      return;
    }
    case "tool.output":
      change(now, event.data.call_id, (call) => ({ ...call, output: event.data }));
      return;
    case "usage":
      now.usage = event.data.total;
      now.cost = event.data.cost ?? undefined;
      return;
    case "context.compacted": {
      const { messages, summary } = event.data;
      note(now, key, `${messages} older messages are no longer told to the model${summary ? "; it is told a summary instead." : "."}`);
      return;
    }
    case "session.completed": {
      const { stop, usage, cost } = event.data;
      finishAnswer(now);
      now.running = false;
      now.awaits = undefined;
      now.stop = stop;
      now.usage = usage;
      now.cost = cost ?? now.cost;
      const why = STOPPED[stop];
      if (why) note(now, key, why, stop === "cancelled" ? "plain" : "warn");
      return;
    }
    case "session.failed":
      finishAnswer(now);
      now.running = false;
      now.awaits = undefined;
      dropLast(now);
      now.items.push({ type: "trouble", key, failure: event.data });
      return;
  }
}

const STOPPED: Partial<Record<StopReason, string>> = {
  length: "The answer became too long and was cut. Say “go on” for the rest.",
  refusal: "The model would not answer this.",
  content_filter: "The provider kept the answer back.",
  cancelled: "Stopped.",
  turn_limit: "Stopped: the limit of turns is reached. A message goes on from here.",
  token_limit: "Stopped: the limit of tokens is reached.",
  cost_limit: "Stopped: the limit of cost is reached.",
  time_limit: "Stopped: the limit of time is reached.",
};

const NOTHING = "This turn came to nothing:";

/** Takes back that the last turn came to nothing: what is said next says why. */
function dropLast(now: Conversation): void {
  const last = now.items.at(-1);
  if (last?.type === "note" && last.text.startsWith(NOTHING)) now.items.pop();
}

function note(now: Conversation, key: string, text: string, tone: Note["tone"] = "plain"): void {
  now.items.push({ type: "note", key, tone, text });
}

function answer(now: Conversation, key: string, grow: (item: Answer) => Answer): void {
  const last = now.items.findLastIndex((item, index) => index >= now.turnAt && item.type === "answer" && !item.done);
  const item = now.items[last];
  if (item?.type === "answer") now.items[last] = grow(item);
  else now.items.push(grow({ type: "answer", key, text: "", reasoning: "", done: false }));
}

function finishAnswer(now: Conversation): void {
  now.items = now.items.map((item) => (item.type === "answer" && !item.done ? { ...item, done: true } : item));
}

function change(now: Conversation, call: string, by: (call: Call) => Call): void {
  const index = now.items.findLastIndex((item) => item.type === "call" && item.called.call_id === call);
  const item = now.items[index];
  if (item?.type === "call") now.items[index] = by(item);
}

/** The questions of a conversation that nobody has answered yet. */
export function openAsks(conversation: Conversation): { call: Call; ask: Ask }[] {
  return conversation.items.flatMap((item) =>
    item.type === "call" && !item.output ? item.asks.filter((ask) => !ask.resolved).map((ask) => ({ call: item, ask })) : [],
  );
}
