// What was taken back: while this page was open, and before, as the ledger has it.

import { api } from "../api/client";
import type { Entry, UndoParams } from "../api/schema";
import { Store, useStore } from "./store";

export const undone = new Store<ReadonlySet<string>>(new Set());

export async function undo(what: UndoParams): Promise<number> {
  const { actions } = await api.undo(what);
  undone.update((now) => new Set([...now, ...actions.map((action) => action.action_id)]));
  return actions.length;
}

/** Reads what was taken back of a session, here or elsewhere. */
export async function learnUndone(session: string): Promise<void> {
  const found = new Set<string>();
  const undoes = new Map<string, string>();
  for (let after = 0, more = true; more; ) {
    const page = await api.ledger({ session, kind: "outcome", after, limit: 1000 });
    for (const entry of page.entries) take(entry, found, undoes);
    more = page.more && page.next > after;
    after = page.next;
  }
  undone.update((now) => new Set([...now, ...found]));
}

function take({ action_id, data }: Entry, found: Set<string>, undoes: Map<string, string>): void {
  const { undo_of, status } = data as { undo_of?: string; status?: string };
  if (undo_of === undefined || status !== "done") return;
  // An undo is an action as well: undone, what it took back is there again.
  const again = undoes.get(undo_of);
  if (again !== undefined) found.delete(again);
  else found.add(undo_of);
  if (action_id) undoes.set(action_id, undo_of);
}

export function useUndone(action: string): boolean {
  return useStore(undone).has(action);
}
