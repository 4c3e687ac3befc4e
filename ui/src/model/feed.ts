// The session that is shown: follows its events and folds them.

import { api, newId } from "../api/client";
import { type Line, type Told, follow } from "../api/events";
import { Failure } from "../api/failure";
import type { Received, SessionEvent } from "../api/schema";
import { type Conversation, empty, fold } from "./conversation";
import { refreshSoon } from "./sessions";
import { Store } from "./store";

export interface Shown {
  id: string | undefined;
  conversation: Conversation;
  line: Line;
  failure?: Failure;
  /** What was sent and not told back by Ward yet. */
  pending: { id: string; text: string }[];
  /** Whether all that had happened before is there. */
  caughtUp: boolean;
}

const nothing: Shown = { id: undefined, conversation: empty, line: "connecting", pending: [], caughtUp: true };

export const feed = new Store<Shown>(nothing);

const KNOWN: ReadonlySet<string> = new Set([
  "session.started", "session.changed", "runtime.awaited", "runtime.chosen", "message.received", "turn.started", "text.delta", "reasoning.delta", "tool.called",
  "tool.progress", "permission.requested", "permission.resolved", "tool.output", "usage", "message.completed", "turn.dropped",
  "context.compacted", "session.completed", "session.failed",
] satisfies SessionEvent["event"][]);

let leave: (() => void) | undefined;

/** Shows a session, or none. */
export function open(id: string | undefined): void {
  if (feed.get().id === id) return;
  leave?.();
  leave = undefined;
  feed.set({ ...nothing, id, caughtUp: id === undefined });
  if (id === undefined) return;
  const mine = (change: (now: Shown) => Shown) => feed.update((now) => (now.id === id ? change(now) : now));
  let stop: (() => void) | undefined;
  const waiting: Told[] = [];
  let draws = false;
  /** A burst of events is taken in over several frames, so that none of them is late. */
  const take = () => {
    draws = false;
    const known = waiting.splice(0, feed.get().caughtUp && !document.hidden ? AT_ONCE : Number.POSITIVE_INFINITY);
    mine((now) => ({
      ...now,
      caughtUp: true,
      pending: known.reduce((pending, event) => (event.event === "message.received" ? arrived(pending, event.data) : pending), now.pending),
      conversation: fold(now.conversation, known as (SessionEvent & { seq: number })[], now.caughtUp),
    }));
    if (known.some(({ event }) => MOVES.has(event))) refreshSoon();
    if (waiting.length > 0) {
      draws = true;
      requestAnimationFrame(take);
    }
  };
  const begin = () => {
    const seq = waiting.at(-1)?.seq ?? feed.get().conversation.seq;
    stop = follow({
      path: () => `/sessions/${encodeURIComponent(id)}/events`,
      after: seq,
      line: (line, failure) => mine((now) => ({ ...now, line, failure: line === "open" ? undefined : failure })),
      told: (events) => {
        waiting.push(...events.filter(({ event, seq }) => seq !== undefined && KNOWN.has(event)));
        if (!draws) take();
      },
    });
  };
  // A tab that nobody looks at follows nothing: how much one person follows at once has a limit.
  const turn = () => {
    if (document.hidden) {
      stop?.();
      stop = undefined;
    } else if (!stop) begin();
  };
  begin();
  document.addEventListener("visibilitychange", turn);
  leave = () => {
    stop?.();
    document.removeEventListener("visibilitychange", turn);
  };
}

const AT_ONCE = 150;
const MOVES = new Set(["message.received", "session.changed", "session.completed", "session.failed", "permission.requested", "permission.resolved"]);

/** Says something in the session that is shown. It stands there at once, and is told once. */
export async function say(session: string, text: string): Promise<void> {
  const id = newId();
  const here = (change: (pending: Shown["pending"]) => Shown["pending"]) =>
    feed.update((now) => (now.id === session ? { ...now, pending: change(now.pending) } : now));
  here((pending) => [...pending, { id, text }]);
  try {
    await api.say(session, { input: text, id });
    refreshSoon();
  } catch (error) {
    // It was said, and what came of it went wrong: its events tell that.
    if (error instanceof Failure && error.details.session_id === session) return;
    here((pending) => pending.filter((sent) => sent.id !== id));
    throw error;
  }
}

/** Goes on where the session that is shown failed: nothing is said, the turn is asked for again. */
export async function goOn(): Promise<void> {
  const { id } = feed.get();
  if (id === undefined) return;
  try {
    await api.say(id, { input: "", id: newId() });
  } catch (error) {
    if (!(error instanceof Failure && error.details.session_id === id)) throw error;
  }
}

function arrived(pending: Shown["pending"], data: unknown): Shown["pending"] {
  const { message_id, text } = data as Received;
  const at = pending.findIndex((sent) => sent.id === message_id || sent.text === text);
  return at < 0 ? pending : pending.toSpliced(at, 1);
}
