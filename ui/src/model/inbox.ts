// What waits for this person's answer, over all sessions, as it changes. Following it makes this
// page a client that can be asked first.

import { api } from "../api/client";
import { type Line, follow } from "../api/events";
import type { AnswerScope, Approval, Choice, Resolved } from "../api/schema";
import { plain } from "../text/visible";
import { wants } from "../text/words";
import { refreshSoon } from "./sessions";
import { settings } from "./settings";
import { Store } from "./store";

export interface Inbox {
  open: Approval[];
  /** What was closed while this page was open. */
  resolved: ReadonlyMap<string, Resolved>;
  line: Line;
}

export const inbox = new Store<Inbox>({ open: [], resolved: new Map(), line: "connecting" });

let client: string | undefined;
let shown: string | undefined;

function attention() {
  return { front: !document.hidden && document.hasFocus(), session: shown };
}

/** Says what this page shows, so that its questions come here first. */
export function attend(session: string | undefined): void {
  shown = session;
  tellAttention();
}

function tellAttention(): void {
  // Where it is lost, the next connection says it.
  if (client) void api.attend(client, attention()).catch(() => {});
}

function requested(approval: Approval): void {
  const known = inbox.get().open.some(({ id }) => id === approval.id);
  inbox.update((now) => ({
    ...now,
    open: known ? now.open.map((other) => (other.id === approval.id ? { ...other, ...approval } : other)) : [...now.open, approval],
  }));
  if (!known) notify(approval);
}

export function resolved(answer: Resolved): void {
  inbox.update((now) => ({
    ...now,
    open: now.open.filter(({ id }) => id !== answer.approval_id),
    resolved: new Map(now.resolved).set(answer.approval_id, answer),
  }));
}

function notify(approval: Approval): void {
  if (!settings.get().notify || !document.hidden || typeof Notification === "undefined" || Notification.permission !== "granted") return;
  const command = approval.facts.command?.line ?? approval.facts.paths?.[0]?.path ?? approval.action;
  const notification = new Notification(`${plain(approval.role)} ${wants(approval.action)}`, { body: plain(command).slice(0, 200), tag: approval.id });
  notification.onclick = () => {
    focus();
    notification.close();
    location.hash = approval.session_id ? `#/session/${encodeURIComponent(approval.session_id)}` : "#/approvals";
  };
}

export async function answer(
  approval: Approval,
  decision: Choice,
  scope: AnswerScope,
  more: { reason?: string; patterns?: string[] } = {},
): Promise<void> {
  resolved(await api.answer(approval.id, { decision, scope, digest: approval.digest, ...more }));
}

/** Follows what waits. Of all tabs in the background one does, and tells the others: how much
 *  one person follows at once has a limit. */
export function watchInbox(): () => void {
  let stop: (() => void) | undefined;
  let letGo: (() => void) | undefined;
  const shared = typeof BroadcastChannel === "undefined" ? undefined : new BroadcastChannel("ward-inbox");
  const tell = () => {
    if (stop) shared?.postMessage(inbox.get().open);
  };
  if (shared) {
    shared.onmessage = ({ data }) => {
      if (!stop) inbox.update((now) => ({ ...now, open: data as Approval[] }));
    };
  }
  const unsubscribe = inbox.subscribe(tell);
  const begin = () => (stop ??= followInbox());
  const end = () => {
    stop?.();
    stop = undefined;
    letGo?.();
    letGo = undefined;
  };
  const wait = () => {
    const cancel = new AbortController();
    let release = () => {};
    letGo = () => {
      cancel.abort();
      release();
    };
    const holds = () => {
      begin();
      return new Promise<void>((resolve) => (release = resolve));
    };
    navigator.locks.request("ward-inbox", { signal: cancel.signal }, holds).catch(() => {});
  };
  const turn = () => {
    if (!document.hidden) {
      letGo?.();
      letGo = undefined;
      begin();
    } else if (!letGo && "locks" in navigator) {
      end();
      wait();
    }
    tellAttention();
  };
  const look = () => tellAttention();
  begin();
  turn();
  document.addEventListener("visibilitychange", turn);
  addEventListener("focus", look);
  addEventListener("blur", look);
  return () => {
    end();
    unsubscribe();
    shared?.close();
    document.removeEventListener("visibilitychange", turn);
    removeEventListener("focus", look);
    removeEventListener("blur", look);
  };
}

function followInbox(): () => void {
  let fresh: Approval[] | undefined;
  const stop = follow({
    path: () => {
      const { front, session } = attention();
      return `/approvals/events?front=${front}${session ? `&session=${encodeURIComponent(session)}` : ""}`;
    },
    // What is open is told anew on each connection.
    resumes: false,
    line: (line) => {
      inbox.update((now) => ({ ...now, line }));
      if (line === "open") refreshSoon();
    },
    told: (events) => {
      for (const { event, data, seq } of events) {
        if (event === "hello") {
          client = (data as { client_id: string }).client_id;
          fresh = [];
          tellAttention();
        } else if (event === "permission.requested") {
          if (seq === undefined) fresh?.push(data as Approval);
          requested(data as Approval);
        } else if (event === "permission.resolved") {
          resolved(data as Resolved);
        }
      }
      if (fresh) {
        // What was open before the connection was lost and is not any more.
        const still = new Set(fresh.map(({ id }) => id));
        void closedMeanwhile(still);
        fresh = undefined;
      }
      refreshSoon();
    },
  });
  return () => {
    stop();
    client = undefined;
  };
}

async function closedMeanwhile(still: Set<string>): Promise<void> {
  const gone = inbox.get().open.filter(({ id }) => !still.has(id));
  for (const { id } of gone) {
    const open = await api.approval(id).then(() => true, () => false);
    if (!open) inbox.update((now) => ({ ...now, open: now.open.filter((other) => other.id !== id) }));
  }
}
