// A file as the person has it: the buffer where one is open, the disk otherwise. Changes are made in
// the buffer, so that undo, unsaved work and formatters count, and the person sees them.

import { createHash } from "node:crypto";
import * as vscode from "vscode";
import { hunks } from "../edits";
import { Failure } from "../failure";

export const MAX_FILE = 64 * 1024 * 1024;

export function digest(bytes: Uint8Array): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

export function openBuffer(uri: vscode.Uri): vscode.TextDocument | undefined {
  return vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri.toString() && !document.isClosed);
}

/** What it holds now: unsaved changes too. */
export async function bytesOf(uri: vscode.Uri): Promise<Uint8Array> {
  const buffer = openBuffer(uri);
  if (buffer?.isDirty) return Buffer.from(buffer.getText());
  const { size, type } = await vscode.workspace.fs.stat(uri);
  if (type & vscode.FileType.Directory) throw new Failure("not_a_file", `${uri.fsPath} is a folder.`);
  if (size > MAX_FILE) throw new Failure("too_large", `${uri.fsPath} has ${size} bytes; the editor reads at most ${MAX_FILE}.`);
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
    if (disk === undefined || sameLines(disk, document.getText())) break;
    if (tries < 20) await new Promise((resolve) => setTimeout(resolve, 100));
    else {
      await vscode.window.showTextDocument(document, { preserveFocus: true, preview: true });
      await vscode.commands.executeCommand("workbench.action.files.revert");
      break;
    }
  }
  return document;
}

/** A buffer has one kind of line end. */
function sameLines(one: string, other: string): boolean {
  return one === other || one.replaceAll("\r\n", "\n") === other.replaceAll("\r\n", "\n");
}

/** Changes a text file to hold this: in its buffer, line by line where it differs, and shown. It is
 *  saved, unless the person had unsaved changes in it: those stay theirs to save. */
export async function change(uri: vscode.Uri, now: string): Promise<Uint8Array> {
  const document = await bufferOf(uri);
  const wasDirty = document.isDirty;
  const old = document.getText();
  if (old !== now) {
    const edit = new vscode.WorkspaceEdit();
    for (const { start, end, text } of hunks(old, now)) {
      // A last line without an end is not a whole line.
      const from = start >= document.lineCount ? document.lineAt(document.lineCount - 1).range.end : new vscode.Position(start, 0);
      const to = end >= document.lineCount ? document.lineAt(document.lineCount - 1).range.end : new vscode.Position(end, 0);
      edit.replace(uri, new vscode.Range(from, to), text);
    }
    await show(document, hunks(old, now)[0]?.start);
    if (!(await vscode.workspace.applyEdit(edit))) throw new Failure("io", `The editor did not make the change in ${uri.fsPath}.`);
    if (document.getText() !== now) await replaceWhole(document, now);
  }
  if (!wasDirty && !(await document.save())) throw new Failure("io", `${uri.fsPath} was changed in the editor and could not be saved.`);
  return wasDirty ? Buffer.from(document.getText()) : bytesOf(uri);
}

/** Where single lines did not add up to it: a byte order mark, mixed line ends. */
export async function replaceWhole(document: vscode.TextDocument, now: string): Promise<void> {
  const edit = new vscode.WorkspaceEdit();
  const all = new vscode.Range(new vscode.Position(0, 0), document.lineAt(document.lineCount - 1).range.end);
  edit.replace(document.uri, all, now);
  await vscode.workspace.applyEdit(edit);
}

/** Shows a file without taking the focus from where the person is. */
export async function show(document: vscode.TextDocument, line?: number): Promise<void> {
  const editor = await vscode.window.showTextDocument(document, { preserveFocus: true, preview: true });
  if (line === undefined) return;
  const at = new vscode.Position(Math.min(line, document.lineCount - 1), 0);
  editor.revealRange(new vscode.Range(at, at), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}
