// The list of sessions. There is no stream of it: it is asked for again whenever something may have
// changed, and now and then while somebody looks.

import { api } from "../api/client";
import { Failure, sentence } from "../api/failure";
import type { SessionInfo } from "../api/schema";
import { Store } from "./store";

export interface List {
  sessions: SessionInfo[];
  loaded: boolean;
  failure?: string;
  signedOut: boolean;
}

export const list = new Store<List>({ sessions: [], loaded: false, signedOut: false });

const PAUSE = 10_000;
let under = false;
let again = false;
let soon: ReturnType<typeof setTimeout> | undefined;

export async function refresh(): Promise<void> {
  if (under) {
    again = true;
    return;
  }
  under = true;
  try {
    const { sessions } = await api.sessions();
    list.set({ sessions, loaded: true, signedOut: false });
  } catch (error) {
    const signedOut = error instanceof Failure && error.status === 401;
    // That Ward does not answer is said once, above the conversation.
    if (error instanceof Failure && error.kind === "unreachable") return;
    list.update((now) => ({ ...now, failure: sentence(error), loaded: true, signedOut }));
  } finally {
    under = false;
  }
  if (again) {
    again = false;
    await refresh();
  }
}

/** Soon, and once for all who ask meanwhile. */
export function refreshSoon(): void {
  soon ??= setTimeout(() => {
    soon = undefined;
    void refresh();
  }, 150);
}

export function watchSessions(): () => void {
  void refresh();
  const timer = setInterval(() => {
    if (!document.hidden) void refresh();
  }, PAUSE);
  const back = () => {
    if (!document.hidden) void refresh();
  };
  document.addEventListener("visibilitychange", back);
  return () => {
    clearInterval(timer);
    document.removeEventListener("visibilitychange", back);
  };
}
