// A file as the person has it: the buffer where one is open, the disk otherwise. Changes are made in
// the buffer, so that undo, unsaved work and formatters count, and the person sees them; those that a
// buffer cannot hold as they are, are made on the disk, from where the buffer takes them.

import { createHash } from "node:crypto";
import * as vscode from "vscode";
import { endsOf, hunks, lined } from "../edits";
import { asFailure, Failure } from "../failure";
import { type Looked, still } from "./place";

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

/** The buffer of a file, as the disk has it where nothing in it is unsaved: what a command changed a
 *  moment ago may not have been noticed yet. */
export async function bufferOf(uri: vscode.Uri): Promise<vscode.TextDocument> {
  const document = await vscode.workspace.openTextDocument(uri);
  for (let tries = 0; !document.isDirty; tries++) {
    const disk = textOf(await vscode.workspace.fs.readFile(uri))?.replace(/^\ufeff/, "");
    if (disk === undefined || lined(disk) === lined(document.getText())) break;
    if (tries < 20) await new Promise((resolve) => setTimeout(resolve, 100));
    else {
      await vscode.window.showTextDocument(document, { preserveFocus: true, preview: true });
      await vscode.commands.executeCommand("workbench.action.files.revert");
      break;
    }
  }
  return document;
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

/** The text of a file, to the last line end: a buffer that is saved may have others than the disk. */
export async function textNow(uri: vscode.Uri): Promise<string> {
  const document = await bufferOf(uri);
  return document.isDirty ? document.getText() : textOf(await vscode.workspace.fs.readFile(uri)) ?? "";
}

/** What is to become of a text file. */
export interface Change {
  file: Looked;
  document: vscode.TextDocument;
  /** What it holds now, to the last line end: on the disk, or in a buffer that is not saved. */
  old: string;
  now: string;
  wasDirty: boolean;
  /** Where it is made: a buffer has one kind of line end, so no other file can be changed in one. */
  where: "buffer" | "disk";
}

/** Puts a change into an edit: in the file's buffer, line by line where it differs. What no buffer can hold
 *  is left to [`finish`]. */
export async function prepare(file: Looked, now: string, edit: vscode.WorkspaceEdit): Promise<Change> {
  const { uri } = file;
  const document = await bufferOf(uri);
  const wasDirty = document.isDirty;
  const old = await textNow(uri);
  if (wasDirty && endsOf(now) === "mixed") throw new Failure("not_capable", `${uri.fsPath} has unsaved changes, and lines that end in several ways cannot be written into them. Write all ends alike, or ask the person to save it.`);
  // A mark at the beginning is not in the buffer, and is kept.
  const mark = old.startsWith("\ufeff") ? "\ufeff" : "";
  const wanted = mark === "" ? now : now.replace(/^\ufeff/, "");
  if (endsOf(old) === "mixed" || endsOf(now) === "mixed") return { file, document, old, now: mark + wanted, wasDirty, where: "disk" };
  const last = document.lineAt(document.lineCount - 1).range.end;
  // A last line without an end is not a whole line.
  const at = (line: number) => (line >= document.lineCount ? last : new vscode.Position(line, 0));
  const edits = hunks(lined(document.getText()), lined(wanted)).map(({ start, end, text }) => vscode.TextEdit.replace(new vscode.Range(at(start), at(end)), text));
  const ends = { none: document.eol, lf: vscode.EndOfLine.LF, crlf: vscode.EndOfLine.CRLF, mixed: document.eol }[endsOf(wanted)];
  // It comes first: the editor joins edits that touch, and forgets the line ends of all but the first.
  if (ends !== document.eol) edits.unshift(vscode.TextEdit.setEndOfLine(ends));
  if (edits.length > 0) edit.set(uri, edits);
  return { file, document, old, now, wasDirty, where: "buffer" };
}

/** Saves a change whose edit was made, unless the person had unsaved changes there: those stay theirs to save.
 *  Answers what the file holds. */
export async function finish({ file, document, now, wasDirty, where }: Change): Promise<Uint8Array> {
  const { uri } = file;
  await still(file);
  if (where === "disk") {
    await vscode.workspace.fs.writeFile(uri, Buffer.from(now));
    await bufferOf(uri);
  } else if (wasDirty) return Buffer.from(document.getText());
  else if (!(await document.save())) throw new Failure("io", `${uri.fsPath} was changed in the editor and could not be saved.`);
  return bytesOf(uri);
}

/** Changes a text file to hold this, and shows it. */
export async function change(file: Looked, now: string): Promise<Uint8Array> {
  const edit = new vscode.WorkspaceEdit();
  const change = await prepare(file, now, edit);
  if (change.old !== now) await show(change.document, firstLine(change));
  await still(file);
  if (edit.size > 0 && !(await vscode.workspace.applyEdit(edit))) throw new Failure("io", `The editor did not make the change in ${file.uri.fsPath}.`);
  return finish(change);
}

/** The first line that differs. */
export function firstLine({ old, now }: Pick<Change, "old" | "now">): number | undefined {
  return hunks(lined(old), lined(now))[0]?.start;
}

/** Shows a file without taking the focus from where the person is. */
export async function show(document: vscode.TextDocument, line?: number): Promise<void> {
  const editor = await vscode.window.showTextDocument(document, { preserveFocus: true, preview: true });
  if (line === undefined) return;
  const at = new vscode.Position(Math.min(line, document.lineCount - 1), 0);
  editor.revealRange(new vscode.Range(at, at), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}
