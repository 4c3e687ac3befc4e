// What was taken back while this page was open.

import { api } from "../api/client";
import type { UndoParams } from "../api/schema";
import { Store, useStore } from "./store";

export const undone = new Store<ReadonlySet<string>>(new Set());

export async function undo(what: UndoParams): Promise<number> {
  const { actions } = await api.undo(what);
  undone.update((now) => new Set([...now, ...actions.map((action) => action.action_id)]));
  return actions.length;
}

export function useUndone(action: string): boolean {
  return useStore(undone).has(action);
}
