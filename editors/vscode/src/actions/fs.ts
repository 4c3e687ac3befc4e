// File actions through the editor: reads see unsaved changes, writes happen in its buffers.

import * as disk from "node:fs/promises";
import { dirname, join } from "node:path";
import { Worker } from "node:worker_threads";
import * as vscode from "vscode";
import { applied, type Edit, unified } from "../edits";
import { asFailure, Failure } from "../failure";
import { inside } from "../paths";
import { bytesOf, change, changedMeanwhile, digest, exists, expected, instead, MAX_FILE, missing, openBuffer, savesAsIs, textOf } from "./document";
import type { Call } from "./index";
import { begun, type Looked, number, optional, still, text, wanted } from "./place";
import type { Found, Wanted } from "./search-worker";

const MAX_ANSWER = 1024 * 1024;
const MAX_ENTRIES = 10_000;

export async function read({ place, params }: Call): Promise<unknown> {
  const { uri, shown } = await place.path(text(params, "path"));
  const bytes = await bytesOf(uri, shown);
  const asked = optional(params, "encoding");
  const about = { size: bytes.byteLength, digest: digest(bytes) };
  const words = asked === "base64" ? undefined : textOf(bytes);
  if (words === undefined) {
    if (asked === "utf-8" || asked === "utf8") throw new Failure("bad_encoding", `${shown} is not UTF-8 text. Read it with \`encoding: "base64"\`.`);
    const whole = bytes.byteLength <= MAX_ANSWER;
    return { content: Buffer.from(bytes.subarray(0, MAX_ANSWER)).toString("base64"), encoding: "base64", ...about, truncated: !whole, ...(!whole && { cut: bytes.byteLength - MAX_ANSWER }) };
  }
  const [offset, limit] = [number(params, "offset") ?? 1, number(params, "limit") ?? Infinity];
  const lines = words.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  let content = "";
  let at = Math.max(0, offset - 1);
  let cut = 0;
  for (let taken = 0; at < lines.length && taken < limit; at++, taken++) {
    const line = lines[at] ?? "";
    if (content.length + line.length > MAX_ANSWER) {
      if (content !== "") break;
      content = line.slice(0, MAX_ANSWER);
      cut = Buffer.byteLength(line) - Buffer.byteLength(content);
    } else content += line;
  }
  const more = at < lines.length;
  return { content, encoding: "utf-8", ...about, truncated: more || cut > 0, ...(more && { next_offset: at + 1 }), ...(cut > 0 && { cut }) };
}

interface Entry {
  path: string;
  kind: "file" | "directory" | "symlink" | "other";
  size?: number;
  modified?: number;
  target?: string;
}

async function entry(path: string, shown: string): Promise<Entry> {
  const found = await disk.lstat(path);
  const modified = Math.floor(found.mtimeMs);
  if (found.isSymbolicLink()) return { path: shown, kind: "symlink", modified, target: await disk.readlink(path) };
  if (found.isDirectory()) return { path: shown, kind: "directory", modified };
  return found.isFile() ? { path: shown, kind: "file", size: found.size, modified } : { path: shown, kind: "other", modified };
}

const sorted = (entries: Entry[]) => entries.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));

export async function list({ place, params, signal }: Call): Promise<unknown> {
  const top = await place.path(text(params, "path", "."));
  const depth = number(params, "depth") ?? 1;
  const hidden = params.hidden === true;
  const entries: Entry[] = [];
  const walk = async (folder: string, left: number): Promise<void> => {
    for (const name of (await disk.readdir(folder).catch(missing(place.shown(folder)))).sort()) {
      if (signal.aborted || entries.length > MAX_ENTRIES) return;
      if (!hidden && name.startsWith(".")) continue;
      const path = join(folder, name);
      const one = await entry(path, place.shown(path)).catch(() => undefined);
      if (!one) continue;
      entries.push(one);
      if (one.kind === "directory" && left > 1) await walk(path, left - 1);
    }
  };
  await walk(top.real, depth);
  return { entries: sorted(entries.slice(0, MAX_ENTRIES)), truncated: entries.length > MAX_ENTRIES };
}

export async function stat({ place, params }: Call): Promise<unknown> {
  const { real, shown } = await place.path(text(params, "path"), "keep");
  return { entries: [await entry(real, shown).catch(missing(shown))], truncated: false };
}

/** What the person's settings leave out of a search. */
function leftOut(folder: vscode.Uri): string | undefined {
  const names = ["files.exclude", "search.exclude"].flatMap((name) => Object.entries(vscode.workspace.getConfiguration(undefined, folder).get<Record<string, unknown>>(name) ?? {}));
  const patterns = names.filter(([, on]) => on === true).map(([pattern]) => pattern);
  return patterns.length === 0 ? undefined : `{${patterns.join(",")}}`;
}

/** The editor's own search for files: what is excluded there is left out here, and so is whatever a link, or
 *  the pattern, leads to outside of this folder, which is what was decided on. */
async function found({ place, signal }: Call, top: Looked, pattern: string): Promise<{ files: { real: string; shown: string; uri: vscode.Uri }[]; truncated: boolean }> {
  const source = new vscode.CancellationTokenSource();
  const stop = () => source.cancel();
  signal.addEventListener("abort", stop, { once: true });
  try {
    const uris = await vscode.workspace.findFiles(new vscode.RelativePattern(top.uri, pattern), leftOut(place.folder.uri), MAX_ENTRIES + 1, source.token);
    const files = [];
    for (const uri of uris.slice(0, MAX_ENTRIES)) {
      const path = await inside([top.real], uri.fsPath).catch(() => undefined);
      if (path) files.push({ ...path, shown: place.shown(uri.fsPath), uri });
    }
    return { files: files.sort((a, b) => (a.shown < b.shown ? -1 : 1)), truncated: uris.length > MAX_ENTRIES };
  } finally {
    signal.removeEventListener("abort", stop);
    source.dispose();
  }
}

export async function glob(call: Call): Promise<unknown> {
  const top = await call.place.path(text(call.params, "path", "."));
  const { files, truncated } = await found(call, top, text(call.params, "pattern"));
  const entries = await Promise.all(files.map(({ uri, shown }) => entry(uri.fsPath, shown).catch(() => undefined)));
  return { entries: sorted(entries.filter((one) => one !== undefined)), truncated };
}

/** Lines that fit. A worker reads them, so that no pattern can hold up the editor. */
export async function search(call: Call): Promise<unknown> {
  const { place, params, signal } = call;
  const top = await place.path(text(params, "path", "."));
  const look: Wanted = { pattern: text(params, "pattern"), context: Math.min(number(params, "context") ?? 0, 20), limit: Math.min(number(params, "limit") ?? 200, 10_000) };
  const given = optional(params, "glob");
  const isFolder = ((await vscode.workspace.fs.stat(top.uri).then(undefined, missing(top.shown))).type & vscode.FileType.Directory) !== 0;
  const leaveOut = given?.startsWith("!");
  const pattern = given === undefined || leaveOut ? "**" : given.includes("/") ? given : `**/${given}`;
  let { files, truncated } = isFolder ? await found(call, top, pattern) : { files: [{ ...top }], truncated: false };
  if (leaveOut && given) {
    const without = given.slice(1);
    const out = new Set((await found(call, top, without.includes("/") ? without : `**/${without}`)).files.map(({ real }) => real));
    files = files.filter(({ real }) => !out.has(real));
  }
  wanted(signal);
  const worker = new Worker(join(__dirname, "search.js"), { workerData: look });
  try {
    const answer = new Promise<Found>((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", (error) => reject(/Invalid regular expression/.test(error.message) ? new Failure("bad_pattern", `The pattern cannot be read: ${error.message}`) : error));
      signal.addEventListener("abort", () => reject(new Failure("cancelled", "It was stopped.")), { once: true });
    });
    answer.catch(() => {});
    for (const { uri, shown, real } of files) {
      const buffer = openBuffer(uri);
      worker.postMessage(buffer?.isDirty ? { path: shown, text: buffer.getText() } : { path: shown, file: real });
    }
    worker.postMessage(null);
    const { matches, more } = await answer;
    return { matches, truncated: more || truncated };
  } finally {
    void worker.terminate();
  }
}

function decoded(params: Record<string, unknown>): { content: string; bytes: Uint8Array; isText: boolean } {
  const content = text(params, "content");
  if (params.encoding !== "base64") return { content, bytes: Buffer.from(content), isText: true };
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(content)) throw new Failure("bad_encoding", "The content is not base64. Send standard base64 with padding, or text without `encoding`.");
  const bytes = Buffer.from(content, "base64");
  const words = textOf(bytes);
  return { content: words ?? "", bytes, isText: words !== undefined && !words.includes("\0") };
}

export async function write({ place, params }: Call): Promise<unknown> {
  const file = await place.path(text(params, "path"));
  const { uri, shown, real } = file;
  const { content, bytes, isText } = decoded(params);
  if (bytes.byteLength > MAX_FILE) throw new Failure("too_large", `It would have ${bytes.byteLength} bytes; at most ${MAX_FILE} are written.`);
  const mode = permissions(params);
  const there = await exists(uri);
  if (there && there.type & vscode.FileType.Directory) throw new Failure("not_a_file", `${shown} is a folder.`);
  const before = there || openBuffer(uri)?.isDirty ? await bytesOf(uri) : undefined;
  expected(optional(params, "expect"), before, shown);
  let now: Uint8Array = bytes;
  await still(file);
  const old = before && textOf(before);
  const isInBuffer = before === undefined ? savesAsIs(uri, content) : old !== undefined;
  if (isText && isInBuffer) {
    if (!there) {
      const edit = new vscode.WorkspaceEdit();
      edit.createFile(uri, {});
      await vscode.workspace.fs.createDirectory(vscode.Uri.file(dirname(real)));
      await still(file);
      if (!(await vscode.workspace.applyEdit(edit))) throw (await exists(uri)) ? changedMeanwhile(shown) : new Failure("io", `The editor did not make ${shown}.`);
    }
    // What is new may have been filled by an extension, such as with a class of its name.
    now = await change(there ? file : begun(file), instead(old, content, shown));
  } else {
    await vscode.workspace.fs.createDirectory(vscode.Uri.file(dirname(real)));
    await still(file);
    await vscode.workspace.fs.writeFile(uri, bytes);
  }
  if (mode !== undefined) {
    await still(begun(file));
    await disk.chmod(real, mode);
  }
  return { digest: digest(now), created: !there };
}

function permissions(params: Record<string, unknown>): number | undefined {
  const mode = optional(params, "mode");
  if (mode === undefined) return undefined;
  if (!/^[0-7]{3}$/.test(mode)) throw new Failure("invalid_params", "`mode` is written like `755`.");
  return Number.parseInt(mode, 8);
}

export async function edit({ place, params }: Call): Promise<unknown> {
  const file = await place.path(text(params, "path"));
  const { uri, shown } = file;
  const expect = optional(params, "expect");
  const bytes = await bytesOf(uri, shown);
  expected(expect, bytes, shown);
  if (textOf(bytes) === undefined) throw new Failure("bad_encoding", `${shown} is not UTF-8 text, so it cannot be edited. Use fs.write with \`encoding: "base64"\`.`);
  const edits = Array.isArray(params.edits) ? (params.edits as unknown[]) : [];
  const asked: Edit[] = edits.map((one) => {
    const each = (one ?? {}) as Record<string, unknown>;
    return { old: text(each, "old"), new: text(each, "new"), all: each.all === true };
  });
  let old = "";
  const now = await change(file, (text) => {
    expected(expect, Buffer.from(text), shown);
    return applied((old = text), asked, shown);
  });
  return { digest: digest(now), diff: unified(shown, old, textOf(now) ?? "") };
}

export async function mkdir({ place, params }: Call): Promise<unknown> {
  const file = await place.path(text(params, "path"));
  const { uri, shown, real } = file;
  const there = await exists(uri);
  if (there) {
    if (there.type & vscode.FileType.Directory) return { changed: false };
    throw new Failure("already_exists", `${shown} is there already, and is no folder.`);
  }
  const mode = permissions(params);
  await still(file);
  await vscode.workspace.fs.createDirectory(uri);
  if (mode !== undefined) {
    await still(begun(file));
    await disk.chmod(real, mode);
  }
  return { changed: true };
}

export async function move({ place, params }: Call): Promise<unknown> {
  const from = await place.path(text(params, "from"), "keep");
  const to = await place.path(text(params, "to"), "keep");
  const replace = params.replace === true;
  if (await place.isRoot(from.real)) throw new Failure("invalid_params", "A folder of the window is not moved.");
  await disk.lstat(from.real).catch(missing(from.shown));
  const there = await disk.lstat(to.real).catch(() => undefined);
  if (there && (!replace || there.isDirectory())) throw new Failure("already_exists", `${to.shown} is there already.`);
  await place.keepUnsaved(to.real);
  await still(to);
  await vscode.workspace.fs.createDirectory(vscode.Uri.file(dirname(to.real)));
  const edit = new vscode.WorkspaceEdit();
  edit.renameFile(from.uri, to.uri, { overwrite: replace });
  for (const file of [from, to]) await still(file);
  if (!(await vscode.workspace.applyEdit(edit))) throw new Failure("io", `The editor did not move ${from.shown}.`);
  return { changed: true };
}

export async function remove({ place, params }: Call): Promise<unknown> {
  const file = await place.path(text(params, "path"), "keep");
  const { uri, shown, real } = file;
  const recursive = params.recursive === true;
  if (await place.isRoot(real)) throw new Failure("invalid_params", "A folder of the window is not deleted.");
  const there = await disk.lstat(real).catch(missing(shown));
  if (there.isDirectory() && !recursive && (await disk.readdir(real)).length > 0) throw new Failure("not_empty", `${shown} has entries. Give \`recursive\` to delete them too.`);
  await place.keepUnsaved(real);
  await still(file);
  // The editor would ask about what a link leads to.
  if (there.isSymbolicLink()) await disk.unlink(real);
  else {
    const edit = new vscode.WorkspaceEdit();
    edit.deleteFile(uri, { recursive: recursive || there.isDirectory() });
    if (!(await vscode.workspace.applyEdit(edit))) throw asFailure(new Error(`The editor did not delete ${shown}.`));
  }
  return { changed: true };
}
