// What only an editor can do: show, select, tell what is wrong, propose a change, know symbols, format,
// rename, and run the commands and tasks that the person has allowed.

import { writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import * as vscode from "vscode";
import { asFailure, Failure } from "../failure";
import { setting } from "../find";
import { allowed } from "../allow";
import { endsOf, lined } from "../edits";
import { inform } from "../notice";
import { visible } from "../question";
import { again, bytesOf, change, changedMeanwhile, type Computed, digest, exists, held, instead, makeAll, opened, otherEncoding, savesAsIs, textOf } from "./document";
import type { Call } from "./index";
import { isOwn } from "./own";
import { begun, type Looked, number, optional, still, text, wanted } from "./place";

const MOST = 1000;

interface At {
  line: number;
  column: number;
}

const at = ({ line, character }: vscode.Position): At => ({ line: line + 1, column: character + 1 });
const span = ({ start, end }: vscode.Range) => ({ start: at(start), end: at(end) });

function position(value: unknown, name: string): vscode.Position {
  const given = (value ?? {}) as Record<string, unknown>;
  const [line, column] = [number(given, "line"), number(given, "column") ?? 1];
  if (line === undefined || line < 1 || column < 1) throw new Failure("invalid_params", `\`${name}\` is {line, column}, both from 1.`);
  return new vscode.Position(line - 1, column - 1);
}

export async function open({ place, params, signal }: Call): Promise<unknown> {
  const { uri, shown } = await place.path(text(params, "path"));
  const asked = params.selection as Record<string, unknown> | null | undefined;
  const line = number(params, "line");
  const range = asked ? new vscode.Range(position(asked.start, "selection.start"), position(asked.end, "selection.end"))
    : line === undefined ? undefined : new vscode.Range(Math.max(0, line - 1), 0, Math.max(0, line - 1), 0);
  const document = await opened(uri, shown);
  wanted(signal);
  const editor = await vscode.window.showTextDocument(document, { preserveFocus: true, preview: false });
  if (range) {
    const there = document.validateRange(range);
    editor.selection = new vscode.Selection(there.start, there.end);
    editor.revealRange(there, vscode.TextEditorRevealType.InCenter);
  }
  return { path: shown, lines: document.lineCount, language: document.languageId, selection: span(editor.selection) };
}

export async function selection({ place }: Call): Promise<unknown> {
  const editor = vscode.window.activeTextEditor;
  // What is outside the folders, such as a settings file or an untitled buffer, is nobody's business.
  const found = editor && (await place.named(editor.document.uri));
  if (!editor || !found) return { path: null };
  const { document } = editor;
  return { path: found.shown, selection: span(editor.selection), text: document.getText(editor.selection), language: document.languageId, unsaved: document.isDirty };
}

export async function diagnostics({ place, params }: Call): Promise<unknown> {
  const given = optional(params, "path");
  const all: [vscode.Uri, vscode.Diagnostic[]][] = given === undefined
    ? vscode.languages.getDiagnostics()
    : await place.path(given).then(({ uri }) => [[uri, vscode.languages.getDiagnostics(uri)]]);
  const words = ["error", "warning", "information", "hint"];
  const found = [];
  for (const [uri, list] of all) {
    const path = (await place.named(uri))?.shown;
    if (path === undefined) continue;
    for (const { range, severity, message, source, code } of list) {
      const name = typeof code === "object" ? code.value : code;
      found.push({ path, ...span(range), severity: words[severity], message, ...(source && { source }), ...(name !== undefined && { code: String(name) }) });
    }
  }
  return { diagnostics: found.slice(0, MOST), truncated: found.length > MOST };
}

export async function symbols({ place, params, signal }: Call): Promise<unknown> {
  const given = optional(params, "path");
  const kind = (of: vscode.SymbolKind) => vscode.SymbolKind[of]?.toLowerCase() ?? "symbol";
  const found: unknown[] = [];
  if (given === undefined) {
    const list = await vscode.commands.executeCommand<vscode.SymbolInformation[] | undefined>("vscode.executeWorkspaceSymbolProvider", optional(params, "query") ?? "");
    for (const one of list ?? []) {
      const path = (await place.named(one.location.uri))?.shown;
      if (path !== undefined) found.push({ name: one.name, kind: kind(one.kind), path, ...span(one.location.range), ...(one.containerName && { container: one.containerName }) });
    }
  } else {
    const { uri, shown } = await place.path(given);
    await opened(uri, shown);
    const list = await provided(signal, () => vscode.commands.executeCommand<(vscode.DocumentSymbol | vscode.SymbolInformation)[] | undefined>("vscode.executeDocumentSymbolProvider", uri));
    const walk = (of: readonly (vscode.DocumentSymbol | vscode.SymbolInformation)[], container?: string) => {
      for (const one of of) {
        const range = "range" in one ? one.range : one.location.range;
        found.push({ name: one.name, kind: kind(one.kind), path: shown, ...span(range), ...(container && { container }) });
        if ("children" in one) walk(one.children, one.name);
      }
    };
    walk(list ?? []);
  }
  return { symbols: found.slice(0, MOST), truncated: found.length > MOST };
}

/** What an extension provides, which may first have to start: it is asked again for a moment. */
async function provided<T>(signal: AbortSignal, ask: () => Thenable<T | undefined>, isThere: (answer: T) => boolean = () => true): Promise<T | undefined> {
  for (let tries = 0; ; tries++) {
    const answer = await ask();
    if (tries >= 10 || signal.aborted || (answer !== undefined && answer !== null && isThere(answer))) return answer ?? undefined;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
}

export async function format({ place, params, signal }: Call): Promise<unknown> {
  const file = await place.path(text(params, "path"));
  const { uri, shown } = file;
  const document = await opened(uri, shown);
  const config = vscode.workspace.getConfiguration("editor", document);
  const options = { tabSize: config.get("tabSize", 4), insertSpaces: config.get("insertSpaces", true) };
  wanted(signal);
  await vscode.window.showTextDocument(document, { preserveFocus: true, preview: true });
  return again(shown, async () => {
    let version = document.version;
    const ask = () => {
      version = document.version;
      return vscode.commands.executeCommand<vscode.TextEdit[] | undefined>("vscode.executeFormatDocumentProvider", uri, options);
    };
    const edits = await provided(signal, ask);
    if (edits === undefined) throw new Failure("not_capable", `No formatter is installed for ${shown} (${document.languageId}).`);
    const before = document.getText();
    if (edits.length > 0 && (await makeAll([{ file, document, version, edits }])) === "overtaken") return "overtaken";
    return { changed: document.getText() !== before, digest: digest(await bytesOf(uri)) };
  });
}

export async function rename({ place, params, signal }: Call): Promise<unknown> {
  const { uri, shown } = await place.path(text(params, "path"));
  const name = text(params, "name");
  const document = await opened(uri, shown);
  const where = position(params.position, "position");
  const { version } = document;
  return again(shown, async () => {
    let versions = new Map<string, number>();
    const ask = () => {
      versions = new Map(vscode.workspace.textDocuments.map((document) => [document.uri.toString(), document.version]));
      return vscode.commands.executeCommand<vscode.WorkspaceEdit | undefined>("vscode.executeDocumentRenameProvider", uri, where, name).then(undefined, (error: unknown) => {
        throw new Failure("not_capable", `Nothing can be renamed there in ${shown}: ${error instanceof Error ? error.message : String(error)}`);
      });
    };
    const offered = await provided(signal, ask, ({ size }) => size > 0);
    // Another symbol may be at that position by now.
    if (document.version !== version) throw changedMeanwhile(shown);
    if (!offered || offered.size === 0) throw new Failure("not_capable", `Nothing can be renamed there in ${shown}: no extension for this language is installed, or it is no symbol.`);
    // What is offered may also make, move and delete files, and does not tell of it: only the text is taken over.
    const changes: Computed[] = [];
    const unnamed = [];
    for (const [touched, edits] of offered.entries()) {
      const file = await place.named(touched);
      if (!file) throw new Failure("outside_workspace", `To rename it would change ${touched.fsPath}, which is outside ${place.folder.name}.`);
      if (!place.isDecided(file)) unnamed.push(file.shown);
      const document = await vscode.workspace.openTextDocument(touched);
      changes.push({ file, document, version: versions.get(touched.toString()) ?? document.version, edits });
    }
    if (unnamed.length > 0) {
      throw new Failure("invalid_params", `To rename it changes more files, which were not decided on: ${unnamed.map((path) => `\`${path}\``).join(", ")}. Nothing was changed. Ask again with all of them in \`files\`.`);
    }
    if ((await makeAll(changes)) === "overtaken") return "overtaken";
    return { files: changes.map(({ file, edits }) => ({ path: file.shown, edits: edits.length })) };
  });
}

export async function command({ params, signal }: Call): Promise<unknown> {
  const id = text(params, "command");
  const given = Array.isArray(params.arguments) ? (params.arguments as unknown[]) : [];
  // With them a person answers, and accepts changes: whatever a pattern in the setting lets through.
  if (isOwn(id, given)) throw new Failure("denied", `The command ${id} is Ward's own, or runs others such as those, and no agent's to use.`);
  if (!allowed(setting<string[]>("allowedCommands"), id)) {
    throw new Failure("denied", `The command ${id} is not among those that the person allows. They can add it to the setting ward.allowedCommands.`);
  }
  if (!(await vscode.commands.getCommands(true)).includes(id)) throw new Failure("not_found", `There is no command ${id}.`);
  wanted(signal);
  const result: unknown = await vscode.commands.executeCommand(id, ...given);
  return { result: plain(result) };
}

/** What of an answer is data. */
function plain(value: unknown): unknown {
  try {
    const text = JSON.stringify(value);
    return text === undefined || text.length > 256 * 1024 ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

export async function task({ place, params, signal }: Call): Promise<unknown> {
  const name = text(params, "task");
  if (!allowed(setting<string[]>("allowedTasks"), name)) {
    throw new Failure("denied", `The task ${name} is not among those that the person allows. They can add it to the setting ward.allowedTasks.`);
  }
  const here = (task: vscode.Task) => typeof task.scope !== "object" || task.scope.uri.toString() === place.folder.uri.toString();
  const fitting = (await vscode.tasks.fetchTasks()).filter((task) => (task.name === name || `${task.source}: ${task.name}` === name) && here(task));
  const [only, ...others] = fitting;
  if (!only) throw new Failure("not_found", `There is no task ${name} in this folder.`);
  if (others.length > 0) throw new Failure("ambiguous_match", `Several tasks are called ${name}: ${fitting.map((task) => `${task.source}: ${task.name}`).join(", ")}.`);
  wanted(signal);
  const listening: vscode.Disposable[] = [];
  try {
    const execution = await vscode.tasks.executeTask(only);
    const code = new Promise<number | undefined>((resolve) => {
      listening.push(
        vscode.tasks.onDidEndTaskProcess((event) => event.execution === execution && resolve(event.exitCode)),
        // A task without a process of its own.
        vscode.tasks.onDidEndTask((event) => event.execution === execution && setTimeout(() => resolve(undefined), 500)),
      );
    });
    if (signal.aborted) execution.terminate();
    else signal.addEventListener("abort", () => execution.terminate(), { once: true });
    const exit = await code;
    return exit === undefined ? {} : { exit_code: exit };
  } finally {
    for (const one of listening) one.dispose();
  }
}

const SCHEME = "ward-proposed";
const ANSWERS = { Accept: "ward.acceptChange", Reject: "ward.rejectChange" } as const;
type Answer = keyof typeof ANSWERS;
const isAnswer = (text: string | undefined): text is Answer => text !== undefined && text in ANSWERS;

/** Proposed changes: shown beside what is there, until the person accepts or rejects. A message asks, and goes
 *  away by itself; the same answers are in the title of what is shown. */
export class Diffs implements vscode.Disposable {
  #proposed = new Map<string, { content: string; answer: (answer: Answer) => void }>();
  #commands = (Object.keys(ANSWERS) as Answer[]).map((answer) =>
    vscode.commands.registerCommand(ANSWERS[answer], (uri?: vscode.Uri) => this.#proposed.get((uri ?? inFront())?.query ?? "")?.answer(answer)));
  #changed = new vscode.EventEmitter<vscode.Uri>();
  #provider = vscode.workspace.registerTextDocumentContentProvider(SCHEME, {
    onDidChange: this.#changed.event,
    provideTextDocumentContent: (uri) => this.#proposed.get(uri.query)?.content ?? "",
  });
  #count = 0;

  async show({ place, params, signal }: Call): Promise<unknown> {
    const file = await place.path(text(params, "path"));
    const { uri, shown } = file;
    const content = text(params, "content");
    const title = visible(optional(params, "title") ?? "A proposed change");
    const there = await exists(uri);
    if (there && textOf(await bytesOf(uri)) === undefined) throw new Failure("bad_encoding", `${shown} is not UTF-8 text, so no change of it can be shown.`);
    if (!there && !savesAsIs(uri, content)) throw otherEncoding(uri);
    wanted(signal);
    const key = String(++this.#count);
    const answered = new Promise<Answer>((answer) => this.#proposed.set(key, { content, answer }));
    const right = vscode.Uri.from({ scheme: SCHEME, path: uri.path, query: key });
    const left = there ? uri : vscode.Uri.from({ scheme: SCHEME, path: uri.path, query: "nothing" });
    try {
      await vscode.commands.executeCommand("vscode.diff", left, right, `${shown}: ${title}`, { preserveFocus: true, preview: false });
      const closed = new Promise<undefined>((resolve) => {
        const listening = vscode.window.tabGroups.onDidChangeTabs(({ closed }) => {
          if (closed.some((tab) => isOurs(tab, right))) (listening.dispose(), resolve(undefined));
        });
        const stop = () => (listening.dispose(), resolve(undefined));
        if (signal.aborted) stop();
        else signal.addEventListener("abort", stop, { once: true });
      });
      void inform(`An agent proposes a change of ${visible(shown)}: ${title}`, ...Object.keys(ANSWERS)).then((chosen) => isAnswer(chosen) && this.#proposed.get(key)?.answer(chosen));
      const answer = await Promise.race([closed, answered]);
      if (signal.aborted || answer !== "Accept") return { accepted: false };
      return { accepted: true, digest: digest(await accepted(file, there !== undefined, content)) };
    } finally {
      this.#proposed.delete(key);
      const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs).filter((tab) => isOurs(tab, right));
      if (tabs.length > 0) await vscode.window.tabGroups.close(tabs).then(undefined, () => {});
    }
  }

  dispose(): void {
    for (const one of this.#commands) one.dispose();
    this.#provider.dispose();
    this.#changed.dispose();
  }
}

/** Does what the person has accepted. They may have thought for an hour. */
async function accepted(file: Looked, wasThere: boolean, content: string): Promise<Uint8Array> {
  const { uri, shown, real } = file;
  if (wasThere) {
    const { text } = await held(uri);
    // Which ends the lines have is not seen there: those of the file stay.
    return change(file, instead(text, endsOf(text) === "crlf" ? lined(content).replaceAll("\n", "\r\n") : content, shown));
  }
  await still(file);
  await vscode.workspace.fs.createDirectory(vscode.Uri.file(dirname(real)));
  await still(file);
  await writeFile(real, "", { flag: "wx" }).catch((error: unknown) => {
    throw asFailure(error).kind === "already_exists" ? changedMeanwhile(shown) : error;
  });
  return change(begun(file), instead("", content, shown));
}

/** The proposed change that is in front, where one is. */
function inFront(): vscode.Uri | undefined {
  const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
  return input instanceof vscode.TabInputTextDiff && input.modified.scheme === SCHEME ? input.modified : undefined;
}

function isOurs(tab: vscode.Tab, right: vscode.Uri): boolean {
  return tab.input instanceof vscode.TabInputTextDiff && tab.input.modified.toString() === right.toString();
}
