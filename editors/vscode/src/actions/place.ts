// Where an action is done: the folder it came for, the window's other folders, and the parameters it
// came with, read as what they have to be.

import * as vscode from "vscode";
import { Failure } from "../failure";
import { inside, type Inside, type Last, shownFrom } from "../paths";

export class Place {
  constructor(readonly folder: vscode.WorkspaceFolder) {}

  /** The folder that it came for first. */
  get roots(): string[] {
    const others = (vscode.workspace.workspaceFolders ?? []).filter(({ uri }) => uri.scheme === "file" && uri.toString() !== this.folder.uri.toString());
    return [this.folder, ...others].map(({ uri }) => uri.fsPath);
  }

  async path(given: string, last: Last = "follow"): Promise<Inside & { uri: vscode.Uri }> {
    const found = await inside(this.roots, given, last);
    return { ...found, uri: this.#uri(found.real) };
  }

  /** The uri of a real path as the window shows it, so that one file has one buffer. */
  #uri(path: string): vscode.Uri {
    const uri = vscode.Uri.file(path);
    return vscode.workspace.textDocuments.find((document) => document.uri.scheme === "file" && document.uri.fsPath === path)?.uri ?? uri;
  }

  /** A uri that the editor named, where it is inside; nothing where it is not. */
  async named(uri: vscode.Uri): Promise<string | undefined> {
    if (uri.scheme !== "file") return undefined;
    return inside(this.roots, uri.fsPath).then(({ shown }) => shown, () => undefined);
  }

  shown(path: string): string {
    return shownFrom(this.folder.uri.fsPath, path);
  }
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
