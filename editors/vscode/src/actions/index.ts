// The actions that this editor can do: each by its name, answered once, and stopped when it is told to.

import * as vscode from "vscode";
import { type Acknowledgement, asFailure, Failure, refused } from "../failure";
import { Output, type Piece } from "../output";
import * as editor from "./editor";
import * as files from "./fs";
import { patch } from "./patch";
import { Terminals } from "./terminal";
import { Place, wanted } from "./place";

/** What an action knows of where and for whom it is done. */
export interface Call {
  place: Place;
  params: Record<string, unknown>;
  output: Output;
  signal: AbortSignal;
  /** Whether `argv` is a whole `ward exec`, to be started as it is. */
  confined: boolean;
}

type Action = (call: Call) => Promise<unknown>;

export class Actions implements vscode.Disposable {
  #under = new Map<string, { folder: vscode.WorkspaceFolder; stop: AbortController }>();
  #terminals = new Terminals();
  #diffs = new editor.Diffs();
  #all: Record<string, Action> = {
    "fs.read": files.read,
    "fs.list": files.list,
    "fs.stat": files.stat,
    "fs.glob": files.glob,
    "fs.search": files.search,
    "fs.write": files.write,
    "fs.edit": files.edit,
    "fs.patch": patch,
    "fs.mkdir": files.mkdir,
    "fs.move": files.move,
    "fs.delete": files.remove,
    "terminal.run": (call) => this.#terminals.run(call),
    "editor.open": editor.open,
    "editor.selection": editor.selection,
    "editor.diagnostics": editor.diagnostics,
    "editor.diff": (call) => this.#diffs.show(call),
    "editor.symbols": editor.symbols,
    "editor.format": editor.format,
    "editor.rename": editor.rename,
    "editor.command": editor.command,
    "editor.task": editor.task,
  };

  constructor(private readonly log: vscode.LogOutputChannel) {}

  get capabilities(): string[] {
    return Object.keys(this.#all);
  }

  async execute(
    folder: vscode.WorkspaceFolder,
    { id, action, params, paths, confined, deadline_ms }: { id: string; action: string; params: Record<string, unknown>; paths?: string[]; confined?: boolean; deadline_ms: number },
    emit: (piece: Piece) => void,
  ): Promise<Acknowledgement> {
    const run = this.#all[action];
    if (!run) return refused(new Failure("unknown_action", `This editor does not know ${action}.`));
    if (this.#under.has(id)) return refused(new Failure("conflict", "An action of this id is under way here."));
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), deadline_ms);
    const output = new Output(id, emit);
    this.#under.set(id, { folder, stop });
    this.log.debug(`${action} ${id}`);
    try {
      const place = await Place.of(folder, paths, stop.signal);
      wanted(stop.signal);
      const cancelled = new Promise<never>((_, reject) => stop.signal.addEventListener("abort", () => reject(new Failure("cancelled", "It was stopped.")), { once: true }));
      const result = await Promise.race([run({ place, params: params ?? {}, output, signal: stop.signal, confined: confined === true }), cancelled]);
      output.end();
      return { ok: true, result };
    } catch (error) {
      output.end();
      const failure = asFailure(error);
      this.log.info(`${action} ${id}: ${failure.kind}: ${failure.message}`);
      return refused(failure);
    } finally {
      clearTimeout(timer);
      this.#under.delete(id);
    }
  }

  cancel(id: string): void {
    this.#under.get(id)?.stop.abort();
  }

  /** Nobody waits any more for what was asked over this folder's connection. */
  cancelAll(folder: vscode.WorkspaceFolder): void {
    for (const under of this.#under.values()) if (under.folder === folder) under.stop.abort();
  }

  dispose(): void {
    for (const { stop } of this.#under.values()) stop.abort();
    this.#terminals.dispose();
    this.#diffs.dispose();
  }
}
