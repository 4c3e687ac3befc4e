// What actions changed in files, as far as the conversation tells, and what Ward has kept beyond it.

import { api } from "../api/client";
import { type Diff, readDiff, whole } from "../text/diff";
import { within } from "../text/words";
import type { Call, Conversation } from "./conversation";
import { argument, resultOf } from "./result";
import { Store } from "./store";

export interface Change {
  path: string;
  diff: Diff;
  /** All of it is new, and what was there before is not known here. */
  replaced?: boolean;
}

/** Diffs that the conversation does not tell, by action; null where there is none to be had. */
export type Kept = ReadonlyMap<string, Diff | null>;
export const kept = new Store<Kept>(new Map());

const asked = new Set<string>();

/** Whether what a call changed is known only to Ward: what it replaced whole, or deleted. */
function isKept(call: Call): boolean {
  if (!call.output?.ok || call.elsewhere || !call.called.action_id) return false;
  if (call.called.action === "fs.write") return resultOf(call).created === false;
  return call.called.action === "fs.delete";
}

/** Asks for it, once. */
export function learnKept(call: Call): void {
  const action = call.called.action_id;
  if (!action || asked.has(action) || !isKept(call)) return;
  asked.add(action);
  api.changes(action).then(
    ({ files }) => {
      const told = files.flatMap((file) => file.diff ?? []);
      kept.update((now) => new Map(now).set(action, told.length > 0 ? readDiff(told.join(""), true) : null));
    },
    // The next look asks again.
    () => asked.delete(action),
  );
}

/** The change of one call; for one that waits for an answer, the question's own preview is shown there. */
export function changeOf(call: Call, known: Kept): Change | undefined {
  if (!call.output?.ok) return undefined;
  const result = resultOf(call);
  const path = argument(call, "path") ?? "";
  const diff = known.get(call.called.action_id ?? "");
  switch (call.called.action) {
    case "fs.edit":
      return { path, diff: readDiff(result.diff ?? "", true) };
    case "fs.patch": {
      const diff = readDiff(argument(call, "patch") ?? "");
      const files = result.files ?? [];
      return { path: files.length === 1 ? (files[0]?.path ?? "") : `${files.length || diff.files.length} files`, diff };
    }
    case "fs.write": {
      const content = argument(call, "content");
      if (diff) return { path, diff };
      if (content === undefined) return undefined;
      // Until what was there is known, nothing is shown that would be wrong.
      if (isKept(call) && diff === undefined) return undefined;
      return { path, diff: whole(content, path), replaced: result.created === false };
    }
    case "fs.delete":
      return diff ? { path, diff } : undefined;
    default:
      return undefined;
  }
}

const UNDOABLE: ReadonlySet<string> = new Set(["fs.write", "fs.edit", "fs.patch", "fs.mkdir", "fs.move", "fs.delete"]);

/** Whether Ward can take back what a call did. An editor has an undo of its own. */
export function canUndo(call: Call): boolean {
  return call.output?.ok === true && !call.elsewhere && call.called.action_id !== undefined && UNDOABLE.has(call.called.action ?? "") && resultOf(call).changed !== false;
}

export interface ChangedFile {
  path: string;
  what: "changed" | "new" | "moved" | "deleted" | "folder";
  added: number;
  removed: number;
  /** The calls that changed it, the oldest first. */
  calls: Call[];
}

/** Every file that the session changed, with what it took. */
export function changedFiles(conversation: Conversation, undone: ReadonlySet<string>, known: Kept): ChangedFile[] {
  const files = new Map<string, ChangedFile>();
  const touch = (path: string, what: ChangedFile["what"], call: Call, added = 0, removed = 0) => {
    const name = within(path, conversation.workspace).replace(/^\.\//, "");
    const file = files.get(name) ?? { path: name, what, added: 0, removed: 0, calls: [] };
    files.set(name, {
      ...file,
      what: file.what === "new" && what === "changed" ? "new" : file.what === "deleted" && what === "new" ? "changed" : what,
      added: file.added + added,
      removed: file.removed + removed,
      calls: [...file.calls, call],
    });
  };
  for (const item of conversation.items) {
    if (item.type !== "call" || !item.output?.ok || undone.has(item.called.action_id ?? "")) continue;
    const path = argument(item, "path") ?? "";
    const change = changeOf(item, known);
    const { added, removed } = change?.diff ?? { added: 0, removed: 0 };
    const result = resultOf(item);
    switch (item.called.action) {
      case "fs.patch":
        for (const file of result.files ?? []) {
          const share = change?.diff.files.find((other) => other.path === file.path);
          touch(file.path, file.change === "created" ? "new" : file.change === "deleted" ? "deleted" : "changed", item, share?.added, share?.removed);
        }
        break;
      case "fs.write":
      case "fs.edit":
        touch(path, result.created ? "new" : "changed", item, added, removed);
        break;
      case "fs.delete":
        touch(path, "deleted", item, added, removed);
        break;
      case "fs.mkdir":
        if (result.changed !== false) touch(path, "folder", item);
        break;
      case "fs.move":
        touch(argument(item, "from") ?? "", "deleted", item);
        touch(argument(item, "to") ?? "", "moved", item);
        break;
    }
  }
  return [...files.values()];
}
