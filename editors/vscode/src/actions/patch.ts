// fs.patch: every file is fitted first, with what is not saved in it, and then all change in one edit,
// which is also undone as one. The patch was read by Ward: what comes here are files and their pieces.

import { chmod, lstat, stat } from "node:fs/promises";
import { dirname } from "node:path";
import * as vscode from "vscode";
import { patched, type Piece } from "../edits";
import { Failure } from "../failure";
import { again, bytesOf, type Change, digest, finish, firstLine, type Held, held, isOvertaken, prepare, show, textOf } from "./document";
import type { Call } from "./index";
import { begun, type Looked, optional, type Place, still, text } from "./place";

/** One file before and after. */
interface Planned extends Looked {
  /** What it is made of, or what goes; nothing for one that is new and of nothing. */
  held: Held | undefined;
  /** What becomes of what was there; nothing for one that is new. */
  make: ((old: string) => string) | undefined;
  /** What it holds then; nothing for one that goes. */
  now: string | undefined;
  executable: boolean | undefined;
}

export async function patch({ place, params }: Call): Promise<unknown> {
  const files = Array.isArray(params.files) ? (params.files as unknown[]) : [];
  if (files.length === 0) throw new Failure("invalid_params", "The patch is about no file.");
  const planned = await again("What the patch is about", async () => {
    const planned: Planned[] = [];
    for (const file of files) planned.push(...(await plan(place, (file ?? {}) as Record<string, unknown>)));
    const named = new Set<string>();
    for (const { real, shown } of planned) {
      if (named.has(real)) throw new Failure("patch_failed", `The patch names ${shown} more than once. Put all hunks of a file under one header. Nothing was changed.`);
      named.add(real);
    }
    return (await carryOut(place, planned)) === "overtaken" ? "overtaken" : planned;
  });
  const told = [];
  for (const { shown, uri, make, now } of planned) {
    told.push(now === undefined ? { path: shown, change: "deleted" } : { path: shown, change: make ? "changed" : "created", digest: digest(await bytesOf(uri)) });
  }
  return { files: told };
}

async function plan(place: Place, file: Record<string, unknown>): Promise<Planned[]> {
  const path = text(file, "path");
  const from = optional(file, "from");
  const change = text(file, "change");
  const pieces = file.hunks as Piece[];
  const executable = typeof file.executable === "boolean" ? file.executable : undefined;
  switch (change) {
    case "change": {
      const there = await existing(place, path);
      // No patch names the mark at a file's beginning.
      const make = (old: string) => patched(old.replace(/^\ufeff/, ""), pieces, path);
      return [{ ...there, make, now: make(there.held.text), executable }];
    }
    case "create":
      return [{ ...(await vacant(place, path)), held: undefined, make: undefined, now: patched("", pieces, path), executable }];
    case "delete": {
      const there = await existing(place, path);
      await place.keepUnsaved(there.real);
      // Without hunks it deletes an empty file, and only that.
      if (patched(there.old, pieces, path) !== "") throw new Failure("patch_failed", `The patch deletes ${path}, but the file has more lines than the patch takes away. Read it again and make the patch anew. Nothing was changed.`);
      return [await gone(place, there)];
    }
    case "rename":
    case "copy": {
      if (from === undefined) throw new Failure("invalid_params", "`from` is missing.");
      const source = await existing(place, from);
      if (change === "rename") await place.keepUnsaved(source.real);
      const runs = ((await stat(source.real)).mode & 0o111) !== 0;
      const made = { ...(await vacant(place, path)), held: source.held, make: undefined, now: patched(source.old, pieces, from), executable: executable ?? runs };
      return change === "copy" ? [made] : [await gone(place, source), made];
    }
    default:
      throw new Failure("invalid_params", `A patch does not ${change} a file.`);
  }
}

async function existing(place: Place, path: string): Promise<Looked & { held: Held; old: string }> {
  const there = await place.path(path);
  if (textOf(await bytesOf(there.uri, path)) === undefined) throw new Failure("bad_encoding", `${path} is not UTF-8 text, so no patch fits it.`);
  const now = await held(there.uri);
  return { ...there, held: now, old: now.text.replace(/^\ufeff/, "") };
}

/** A file that goes, by its own name. */
async function gone(place: Place, file: Looked & { held: Held }): Promise<Planned> {
  return { ...file, uri: await place.itself(file.real), make: undefined, now: undefined, executable: undefined };
}

async function vacant(place: Place, path: string): Promise<Looked> {
  const there = await place.path(path, "keep");
  if (await lstat(there.real).catch(() => undefined)) throw new Failure("already_exists", `The patch makes ${path} new, but it is there already. Nothing was changed.`);
  // A link that comes to be there is followed, and leads elsewhere.
  return { ...there, last: "follow" };
}

/** All of it in one edit. What had unsaved changes is left for the person to save. */
async function carryOut(place: Place, planned: readonly Planned[]): Promise<"done" | "overtaken"> {
  const edit = new vscode.WorkspaceEdit();
  const changes: Change[] = [];
  for (const file of planned) {
    const { uri, real, make, now } = file;
    await still(file);
    if (now === undefined) edit.deleteFile(uri, { recursive: false });
    else if (!make) {
      await vscode.workspace.fs.createDirectory(vscode.Uri.file(dirname(real)));
      edit.createFile(uri, { overwrite: false, contents: Buffer.from(now) });
    } else changes.push(await prepare(file, make, edit));
  }
  for (const { real, now } of planned) if (now === undefined) await place.keepUnsaved(real);
  for (const file of planned) await still(file);
  if (planned.some(({ held }) => held && isOvertaken(held)) || changes.some(isOvertaken)) return "overtaken";
  // An edit of nothing counts as one that was not made.
  const isEmpty = edit.size === 0 && changes.length === planned.length;
  if (!isEmpty && !(await vscode.workspace.applyEdit(edit))) {
    if (planned.some(({ held }) => held && isOvertaken(held))) return "overtaken";
    throw new Failure("io", "The editor did not apply the patch.");
  }
  for (const change of changes) await finish({ ...change, file: begun(change.file) });
  for (const file of planned) {
    const { real, executable } = file;
    if (executable === undefined) continue;
    await still(begun(file));
    const { mode } = await stat(real);
    await chmod(real, executable ? mode | ((mode & 0o444) >> 2) : mode & ~0o111);
  }
  const first = planned.find(({ now }) => now !== undefined);
  if (first) await show(await vscode.workspace.openTextDocument(first.uri), first.make && first.held ? firstLine(first.held.text, first.now ?? "") : 0);
  return "done";
}
