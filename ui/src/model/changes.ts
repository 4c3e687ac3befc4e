// What actions changed in files, as far as the conversation tells.

import { type Diff, readDiff, whole } from "../text/diff";
import { within } from "../text/words";
import type { Call, Conversation } from "./conversation";
import { argument, resultOf } from "./result";

export interface Change {
  path: string;
  diff: Diff;
  /** All of it is new, and what was there before is not known here. */
  replaced?: boolean;
}

/** The change of one call; for one that waits for an answer, the question's own preview is shown there. */
export function changeOf(call: Call): Change | undefined {
  if (!call.output?.ok) return undefined;
  const result = resultOf(call);
  switch (call.called.action) {
    case "fs.edit":
      return { path: argument(call, "path") ?? "", diff: readDiff(result.diff ?? "") };
    case "fs.patch":
      return { path: "several files", diff: readDiff(argument(call, "patch") ?? "") };
    case "fs.write": {
      const content = argument(call, "content");
      if (content === undefined) return undefined;
      const diff = result.diff === undefined ? whole(content) : readDiff(result.diff);
      return { path: argument(call, "path") ?? "", diff, replaced: result.created === false && result.diff === undefined };
    }
    default:
      return undefined;
  }
}

export interface ChangedFile {
  path: string;
  what: "changed" | "new" | "moved" | "deleted" | "folder";
  added: number;
  removed: number;
  actions: string[];
}

/** Every file that the session changed, with what it took. */
export function changedFiles(conversation: Conversation, undone: ReadonlySet<string>): ChangedFile[] {
  const files = new Map<string, ChangedFile>();
  const touch = (path: string, what: ChangedFile["what"], action: string | undefined | null, added = 0, removed = 0) => {
    const name = within(path, conversation.workspace);
    const file = files.get(name) ?? { path: name, what, added: 0, removed: 0, actions: [] };
    files.set(name, {
      ...file,
      what: file.what === "new" && what === "changed" ? "new" : what,
      added: file.added + added,
      removed: file.removed + removed,
      actions: action ? [...file.actions, action] : file.actions,
    });
  };
  for (const item of conversation.items) {
    if (item.type !== "call" || !item.output?.ok || undone.has(item.called.action_id ?? "")) continue;
    const path = argument(item, "path") ?? "";
    const id = item.called.action_id;
    const change = changeOf(item);
    if (item.called.action === "fs.patch") {
      for (const [, name] of (argument(item, "patch") ?? "").matchAll(/^\+\+\+ (?:b\/)?(\S+)/gm)) touch(name ?? "", "changed", id);
    } else if (change) touch(path, resultOf(item).created ? "new" : "changed", id, change.diff.added, change.diff.removed);
    else if (item.called.action === "fs.delete") touch(path, "deleted", id);
    else if (item.called.action === "fs.mkdir") touch(path, "folder", id);
    else if (item.called.action === "fs.move") touch(argument(item, "to") ?? "", "moved", id);
  }
  return [...files.values()];
}
