// A file as the person has it: the buffer where one is open, the disk otherwise. Changes are made in
// the buffer, so that undo, unsaved work and formatters count, and the person sees them; those that a
// buffer cannot hold as they are, are made on the disk, from where the buffer takes them.

import { createHash } from "node:crypto";
import * as vscode from "vscode";
import { endsOf, hunks, lined } from "../edits";
import { asFailure, Failure } from "../failure";
import { begun, type Looked, still, wanted } from "./place";

export const MAX_FILE = 64 * 1024 * 1024;

export function digest(bytes: Uint8Array): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

export function openBuffer(uri: vscode.Uri): vscode.TextDocument | undefined {
  return vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri.toString() && !document.isClosed);
}

/** Says of what is not there that it is not, and of everything else what the system says. */
export function missing(shown: string): (error: unknown) => never {
  return (error) => {
    const failure = asFailure(error);
    throw failure.kind === "not_found" ? new Failure("not_found", `${shown} is not there.`) : failure;
  };
}

/** What it holds now: unsaved changes too. */
export async function bytesOf(uri: vscode.Uri, shown = uri.fsPath): Promise<Uint8Array> {
  const buffer = openBuffer(uri);
  if (buffer?.isDirty) return Buffer.from(buffer.getText());
  const { size, type } = await vscode.workspace.fs.stat(uri).then(undefined, missing(shown));
  if (type & vscode.FileType.Directory) throw new Failure("not_a_file", `${shown} is a folder.`);
  if (size > MAX_FILE) throw new Failure("too_large", `${shown} has ${size} bytes; the editor reads at most ${MAX_FILE}.`);
  return vscode.workspace.fs.readFile(uri);
}

/** Text, or nothing where it is not UTF-8. */
export function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

export function expected(want: string | undefined, bytes: Uint8Array | undefined, path: string): void {
  if (want === undefined) return;
  if (bytes === undefined || digest(bytes) !== want) throw new Failure("changed", `${path} is not what it was when it was read. Read it again.`);
}

export async function exists(uri: vscode.Uri): Promise<vscode.FileStat | undefined> {
  try {
    return await vscode.workspace.fs.stat(uri);
  } catch {
    return undefined;
  }
}

/** How often something is computed again, because what it was computed on has changed. */
const TRIES = 5;
const LOOK_MS = 100;
/** How often the disk is looked at until the editor has noticed what is there. */
const LOOKS = 20;

export function changedMeanwhile(shown: string): Failure {
  return new Failure("changed", `${shown} was changed while this was under way. Nothing was done there. Read it again.`);
}

/** Does it again for as long as it answers that it was overtaken. */
export async function again<T>(shown: string, run: () => Promise<T | "overtaken">): Promise<T> {
  for (let tries = 0; tries < TRIES; tries++) {
    const done = await run();
    if (done !== "overtaken") return done;
  }
  throw changedMeanwhile(shown);
}

/** The encoding in which the editor saves a file; of a buffer it says so itself from 1.100 on. */
function encodingOf(uri: vscode.Uri): string {
  const { encoding } = (openBuffer(uri) ?? {}) as { encoding?: string };
  return encoding ?? vscode.workspace.getConfiguration("files", uri).get<string>("encoding") ?? "utf8";
}

/** Whether the editor would save this text as the bytes that Ward means. */
export function savesAsIs(uri: vscode.Uri, text: string): boolean {
  const encoding = encodingOf(uri);
  // What is ASCII is the same in all but one kind.
  return encoding.startsWith("utf8") || (!encoding.startsWith("utf16") && /^[\x00-\x7f]*$/.test(text));
}

export function otherEncoding(uri: vscode.Uri): Failure {
  return new Failure("bad_encoding", `The editor has ${uri.fsPath} in another encoding than UTF-8 (${encodingOf(uri)}) and would change its bytes. Nothing was changed. Ask the person to reopen it as UTF-8 (Change File Encoding, or files.encoding).`);
}

/** The buffer of a file, as the disk has it where nothing in it is unsaved: what a command changed a
 *  moment ago may not have been noticed yet. */
export async function bufferOf(uri: vscode.Uri): Promise<vscode.TextDocument> {
  const document = await vscode.workspace.openTextDocument(uri);
  for (let tries = 0; !document.isDirty; tries++) {
    const disk = textOf(await vscode.workspace.fs.readFile(uri))?.replace(/^\ufeff/, "");
    if (disk === undefined || document.isDirty || lined(disk) === lined(document.getText())) break;
    if (!savesAsIs(uri, disk)) throw otherEncoding(uri);
    if (tries > LOOKS + TRIES) throw new Failure("changed", `The editor does not have what ${uri.fsPath} holds on the disk by now. Nothing was changed. Try again, or ask the person to reopen it.`);
    if (tries === LOOKS) await revert(document);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  return document;
}

/** Has a buffer read anew. The command for that takes whatever is in front: nothing is done where that is another. */
async function revert(document: vscode.TextDocument): Promise<void> {
  await vscode.window.showTextDocument(document, { preserveFocus: true, preview: true });
  if (vscode.window.activeTextEditor?.document === document && !document.isDirty) await vscode.commands.executeCommand("workbench.action.files.revert");
}

/** The buffer of a file that is to be shown or asked about; what is no text file is refused in the words that
 *  reading it would be. */
export async function opened(uri: vscode.Uri, shown: string): Promise<vscode.TextDocument> {
  const there = openBuffer(uri);
  if (there) return there;
  const found = await exists(uri);
  if (!found) throw new Failure("not_found", `${shown} is not there.`);
  if (found.type & vscode.FileType.Directory) throw new Failure("not_a_file", `${shown} is a folder.`);
  try {
    return await vscode.workspace.openTextDocument(uri);
  } catch (error) {
    if ((await bytesOf(uri)).includes(0)) throw new Failure("bad_encoding", `${shown} is no text, so the editor does not show it as such.`);
    throw new Failure("io", `The editor did not open ${shown}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** What a text file holds at one version of its buffer, to the last line end: a buffer that is saved may have others
 *  than the disk. */
export interface Held {
  document: vscode.TextDocument;
  version: number;
  isDirty: boolean;
  text: string;
}

export async function held(uri: vscode.Uri): Promise<Held> {
  return again(uri.fsPath, async () => {
    const document = await bufferOf(uri);
    const { version, isDirty } = document;
    const text = isDirty ? document.getText() : textOf(await vscode.workspace.fs.readFile(uri));
    if (text === undefined) throw new Failure("bad_encoding", `${uri.fsPath} is not UTF-8 text.`);
    const now = { document, version, isDirty, text };
    return isOvertaken(now) ? "overtaken" : now;
  });
}

/** Whether the person, or anything else, has changed it since. */
export function isOvertaken({ document, version, isDirty }: Pick<Held, "document" | "version" | "isDirty">): boolean {
  return document.isClosed || document.version !== version || document.isDirty !== isDirty;
}

/** What is to become of a text file, computed on one version of it. */
export interface Change extends Held {
  file: Looked;
  now: string;
  /** Where it is made: a buffer has one kind of line end, so no other file can be changed in one. */
  where: "buffer" | "disk";
}

/** Puts a change into an edit: in the file's buffer, line by line where it differs. What no buffer can hold
 *  is left to [`finish`]. */
export async function prepare(file: Looked, make: (old: string) => string, edit: vscode.WorkspaceEdit): Promise<Change> {
  const { uri } = file;
  const there = await held(uri);
  const { document, isDirty, text: old } = there;
  const now = make(old);
  if (isDirty && endsOf(now) === "mixed") throw new Failure("not_capable", `${uri.fsPath} has unsaved changes, and lines that end in several ways cannot be written into them. Write all ends alike, or ask the person to save it.`);
  // A mark at the beginning is not in the buffer, and is kept.
  const mark = old.startsWith("\ufeff") ? "\ufeff" : "";
  const wanted = mark === "" ? now : unmarked(now);
  if (endsOf(old) === "mixed" || endsOf(now) === "mixed") return { ...there, file, now: mark + wanted, where: "disk" };
  if (!isDirty && !savesAsIs(uri, now)) throw otherEncoding(uri);
  const last = document.lineAt(document.lineCount - 1).range.end;
  // A last line without an end is not a whole line.
  const at = (line: number) => (line >= document.lineCount ? last : new vscode.Position(line, 0));
  const edits = hunks(lined(document.getText()), lined(wanted)).map(({ start, end, text }) => vscode.TextEdit.replace(new vscode.Range(at(start), at(end)), text));
  const ends = { none: document.eol, lf: vscode.EndOfLine.LF, crlf: vscode.EndOfLine.CRLF, mixed: document.eol }[endsOf(wanted)];
  // It comes first: the editor joins edits that touch, and forgets the line ends of all but the first.
  if (ends !== document.eol) edits.unshift(vscode.TextEdit.setEndOfLine(ends));
  if (edits.length > 0) edit.set(uri, edits);
  return { ...there, file, now, where: "buffer" };
}

const unmarked = (text: string) => text.replace(/^\ufeff/, "");

/** Saves a change whose edit was made, unless the person had unsaved changes there: those stay theirs to save.
 *  Answers what the file holds. */
export async function finish(change: Change): Promise<Uint8Array> {
  const { file, document, now, isDirty, where } = change;
  const { uri } = file;
  if (where === "disk") {
    await still(file);
    if (isOvertaken(change)) throw changedMeanwhile(uri.fsPath);
    await vscode.workspace.fs.writeFile(uri, Buffer.from(now));
    await bufferOf(uri);
  } else if (isDirty || !(await save(begun(file), document, now))) return Buffer.from(document.getText());
  return bytesOf(uri);
}

/** Saves what was made in a buffer, and says whether: where the person has typed since, it is theirs to save. */
async function save(file: Looked, document: vscode.TextDocument, made: string): Promise<boolean> {
  await still(file);
  if (lined(unmarked(document.getText())) !== lined(unmarked(made))) return false;
  if (!(await document.save())) throw new Failure("io", `${file.uri.fsPath} was changed in the editor and could not be saved.`);
  return true;
}

/** Changes a text file to hold what is made of it, and shows it. Where it is changed meanwhile, it is made again
 *  of what it holds then. */
export async function change(file: Looked, make: (old: string) => string): Promise<Uint8Array> {
  return again(file.shown, async () => {
    const edit = new vscode.WorkspaceEdit();
    const change = await prepare(file, make, edit);
    wanted(file.signal);
    if (change.text !== change.now) await show(change.document, firstLine(change.text, change.now));
    await still(file);
    if (isOvertaken(change)) return "overtaken";
    if (edit.size > 0 && !(await vscode.workspace.applyEdit(edit))) {
      if (isOvertaken(change)) return "overtaken";
      throw new Failure("io", `The editor did not make the change in ${file.uri.fsPath}.`);
    }
    return finish(change);
  });
}

/** For [`change`]: to hold this, in the place of that and of nothing else; of what is found first, where it is not
 *  given. */
export function instead(old: string | undefined, now: string, shown: string): (there: string) => string {
  return (there) => {
    old ??= there;
    if (there !== old) throw changedMeanwhile(shown);
    return now;
  };
}

/** Edits of a document as somebody else computed them on a version of it. */
export interface Computed {
  file: Looked;
  document: vscode.TextDocument;
  version: number;
  edits: readonly vscode.TextEdit[];
}

/** Makes such edits, and saves each file that had nothing unsaved in it. */
export async function makeAll(all: readonly Computed[]): Promise<"done" | "overtaken"> {
  const edit = new vscode.WorkspaceEdit();
  for (const { document, edits } of all) edit.set(document.uri, [...edits]);
  for (const { file } of all) await still(file);
  const changes = all.map((one) => ({ ...one, isDirty: one.document.isDirty }));
  if (changes.some(isOvertaken)) return "overtaken";
  const made = changes.map((one) => ({ ...one, now: edited(one) }));
  if (!(await vscode.workspace.applyEdit(edit))) {
    if (changes.some(isOvertaken)) return "overtaken";
    throw new Failure("io", "The editor did not make the change.");
  }
  for (const { file, document, isDirty, now } of made) if (!isDirty) await save(begun(file), document, now);
  return "done";
}

/** What edits make of a document. */
function edited({ document, edits }: Computed): string {
  const text = document.getText();
  const all = edits.map(({ range, newText }) => ({ start: document.offsetAt(range.start), end: document.offsetAt(range.end), newText }));
  let at = 0;
  const parts = all.sort((a, b) => a.start - b.start || a.end - b.end).map(({ start, end, newText }) => {
    const part = text.slice(at, start) + newText;
    at = end;
    return part;
  });
  return parts.join("") + text.slice(at);
}

/** The first line that differs. */
export function firstLine(old: string, now: string): number | undefined {
  return hunks(lined(old), lined(now))[0]?.start;
}

/** Shows a file without taking the focus from where the person is. */
export async function show(document: vscode.TextDocument, line?: number): Promise<void> {
  const editor = await vscode.window.showTextDocument(document, { preserveFocus: true, preview: true });
  if (line === undefined) return;
  const at = new vscode.Position(Math.min(line, document.lineCount - 1), 0);
  editor.revealRange(new vscode.Range(at, at), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}
