// Where an action is done: the folder it came for, the window's other folders, and the parameters it
// came with, read as what they have to be.

import { basename, dirname, join, relative } from "node:path";
import * as vscode from "vscode";
import { Failure } from "../failure";
import { decidedOn, inside, type Inside, isInside, type Last, real, shownFrom } from "../paths";

/** A path that was looked at, and the name by which the window has it; `last` as it was looked at, and `signal`
 *  for as long as what is to be done there is wanted. */
export type Looked = Inside & { uri: vscode.Uri; last?: Last; signal?: AbortSignal };

export class Place {
  private constructor(readonly folder: vscode.WorkspaceFolder, private readonly base: string, private readonly decided: readonly string[] | undefined, private readonly signal: AbortSignal) {}

  /** A folder may be open by the name of a link. What was decided on is where Ward saw the action's paths lead. */
  static async of(folder: vscode.WorkspaceFolder, decided: readonly string[] | undefined, signal: AbortSignal): Promise<Place> {
    return new Place(folder, await real(folder.uri.fsPath), decided, signal);
  }

  /** The folder that it came for first. */
  get roots(): string[] {
    const others = (vscode.workspace.workspaceFolders ?? []).filter(({ uri }) => uri.scheme === "file" && uri.toString() !== this.folder.uri.toString());
    return [this.folder, ...others].map(({ uri }) => uri.fsPath);
  }

  async isRoot(path: string): Promise<boolean> {
    return (await Promise.all(this.roots.map((root) => real(root)))).includes(path);
  }

  /** A path of the action's parameters: inside, and where it was when it was decided on. */
  async path(given: string, last: Last = "follow"): Promise<Looked> {
    const found = await inside(this.roots, given, last);
    decidedOn(this.decided, given, found.real);
    return { ...found, last, signal: this.signal, uri: await (last === "keep" ? this.itself(found.real) : this.#uri(found.real)) };
  }

  /** The name that was decided on, for what is taken away, moved or replaced: another name that the same file is
   *  open under may be a link, and anywhere. */
  async itself(path: string): Promise<vscode.Uri> {
    for (const root of this.roots) {
      const base = await real(root);
      if (isInside(base, path)) return vscode.Uri.file(join(root, relative(base, path)));
    }
    return vscode.Uri.file(path);
  }

  /** The uri of a real path as the window shows it, so that one file has one buffer. */
  async #uri(path: string): Promise<vscode.Uri> {
    for (const { uri, isClosed } of vscode.workspace.textDocuments) {
      if (uri.scheme === "file" && !isClosed && (uri.fsPath === path || (await real(uri.fsPath).catch(() => undefined)) === path)) return uri;
    }
    return this.itself(path);
  }

  /** A uri that the editor named, where it is in the action's own folder; nothing where it is not. */
  async named(uri: vscode.Uri): Promise<Looked | undefined> {
    if (uri.scheme !== "file") return undefined;
    return inside([this.folder.uri.fsPath], uri.fsPath).then((found) => ({ ...found, uri, signal: this.signal }), () => undefined);
  }

  /** Whether something that the editor named is among what was decided on. */
  isDecided({ real }: Looked): boolean {
    return this.decided === undefined || this.decided.includes(real);
  }

  /** Refuses where this, or anything below it, has changes that the person has not saved: who takes the file
   *  away takes those too. */
  async keepUnsaved(path: string): Promise<void> {
    // A notebook or an image has no text document, but a tab.
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs).filter(({ isDirty }) => isDirty);
    const documents = vscode.workspace.textDocuments.filter(({ isDirty }) => isDirty);
    for (const uri of [...tabs.map(({ input }) => (input as { uri?: vscode.Uri } | undefined)?.uri), ...documents.map(({ uri }) => uri)]) {
      if (uri?.scheme !== "file") continue;
      const there = await real(uri.fsPath).catch(() => uri.fsPath);
      if (![there, uri.fsPath, await entry(uri.fsPath)].some((name) => isInside(path, name))) continue;
      throw new Failure("changed", `${this.shown(there)} has changes that the person has not saved, and they would be lost. Nothing was done. Ask them to save it or to close it.`);
    }
  }

  shown(path: string): string {
    return shownFrom(isInside(this.base, path) ? this.base : this.folder.uri.fsPath, path);
  }
}

/** Refuses what is no longer wanted. To be asked right before anything is begun. */
export function wanted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new Failure("cancelled", "It was stopped.");
}

/** What is carried through, because it is begun: half of it would be worse. */
export function begun(file: Looked): Looked {
  const { signal: _, ...rest } = file;
  return rest;
}

/** Refuses what leads elsewhere than when it was looked at, and what is no longer wanted. To be asked right before each write: the look may be
 *  an hour ago, and a folder on the way may have become a link. */
export async function still({ uri, real: was, shown, last, signal }: Looked): Promise<void> {
  const now = await (last === "keep" ? entry(uri.fsPath) : real(uri.fsPath));
  if (now !== was) throw new Failure("changed", `${shown} leads to ${now} by now, and that is not what was decided on. It was not written. Look again.`);
  wanted(signal);
}

/** Where the name itself is: a link at its end is not followed. */
async function entry(path: string): Promise<string> {
  return join(await real(dirname(path)), basename(path));
}

export function text(params: Record<string, unknown>, name: string): string;
export function text(params: Record<string, unknown>, name: string, usual: string): string;
export function text(params: Record<string, unknown>, name: string, usual?: string): string {
  const value = params[name] ?? usual;
  if (typeof value !== "string") throw new Failure("invalid_params", `\`${name}\` has to be text.`);
  return value;
}

export function optional(params: Record<string, unknown>, name: string): string | undefined {
  return params[name] === undefined || params[name] === null ? undefined : text(params, name);
}

export function number(params: Record<string, unknown>, name: string): number | undefined {
  const value = params[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "number" || !Number.isInteger(value) || value < 0) throw new Failure("invalid_params", `\`${name}\` has to be a whole number.`);
  return value;
}
