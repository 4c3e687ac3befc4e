// What the tests have for an editor: its documents, edits and tabs as values over real files. Only what the
// extension uses, and only as far as the editor promises it; `bench` is where a test looks and meddles.

import { existsSync, lstatSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

export class Uri {
  constructor(readonly scheme: string, readonly path: string, readonly query = "") {}
  static file = (path: string) => new Uri("file", path);
  static from = ({ scheme, path, query = "" }: { scheme: string; path: string; query?: string }) => new Uri(scheme, path, query);
  static joinPath = (uri: Uri, ...more: string[]) => new Uri(uri.scheme, join(uri.path, ...more), uri.query);
  get fsPath(): string {
    return this.path;
  }
  toString(): string {
    return `${this.scheme}://${this.path}${this.query && `?${this.query}`}`;
  }
}

export class Position {
  constructor(readonly line: number, readonly character: number) {}
}

export class Range {
  readonly start: Position;
  readonly end: Position;
  constructor(start: Position | number, end: Position | number, line?: number, character?: number) {
    this.start = typeof start === "number" ? new Position(start, end as number) : start;
    this.end = typeof end === "number" ? new Position(line ?? 0, character ?? 0) : end;
  }
}
export class Selection extends Range {}

export enum EndOfLine { LF = 1, CRLF }
export enum FileType { Unknown = 0, File = 1, Directory = 2 }
export enum StatusBarAlignment { Left = 1, Right }
export enum SymbolKind { File }
export enum TextEditorRevealType { InCenter, InCenterIfOutsideViewport }
export class CancellationError extends Error {}
export class ThemeIcon {
  constructor(readonly id: string) {}
}
export class RelativePattern {
  constructor(readonly base: Uri, readonly pattern: string) {}
}
export class TabInputTextDiff {
  constructor(readonly original: Uri, readonly modified: Uri) {}
}
export class FileSystemError extends Error {
  code = "FileNotFound";
}

export class EventEmitter<T> {
  #all = new Set<(value: T) => unknown>();
  event = (hear: (value: T) => unknown) => {
    this.#all.add(hear);
    return { dispose: () => void this.#all.delete(hear) };
  };
  fire(value: T): void {
    for (const hear of [...this.#all]) hear(value);
  }
  dispose(): void {
    this.#all.clear();
  }
}

export class CancellationTokenSource {
  token = {};
  cancel(): void {}
  dispose(): void {}
}

export class TextEdit {
  private constructor(readonly range: Range, readonly newText: string, readonly newEol?: EndOfLine) {}
  static replace = (range: Range, text: string) => new TextEdit(range, text);
  static setEndOfLine = (eol: EndOfLine) => new TextEdit(new Range(0, 0, 0, 0), "", eol);
}

type FileEdit = { make: Uri; contents?: Uint8Array } | { delete: Uri } | { move: Uri; to: Uri };

export class WorkspaceEdit {
  texts = new Map<string, [Uri, TextEdit[]]>();
  files: FileEdit[] = [];
  set(uri: Uri, edits: TextEdit[]): void {
    this.texts.set(uri.toString(), [uri, edits]);
  }
  entries(): [Uri, TextEdit[]][] {
    return [...this.texts.values()];
  }
  get size(): number {
    return this.texts.size + this.files.length;
  }
  createFile(make: Uri, { contents }: { contents?: Uint8Array } = {}): void {
    this.files.push({ make, ...(contents && { contents }) });
  }
  deleteFile(uri: Uri): void {
    this.files.push({ delete: uri });
  }
  renameFile(move: Uri, to: Uri): void {
    this.files.push({ move, to });
  }
}

export class TextDocument {
  version = 1;
  isDirty = false;
  isClosed = false;
  languageId = "plaintext";
  eol = EndOfLine.LF;
  #text = "";
  constructor(readonly uri: Uri) {
    this.reload();
  }
  /** As the disk has it, in the encoding that the person has set. */
  reload(): void {
    const text = readFileSync(this.uri.fsPath, bench.settings["files.encoding"] === "iso88591" ? "latin1" : "utf8").replace(/^\ufeff/, "");
    this.eol = text.includes("\r\n") ? EndOfLine.CRLF : EndOfLine.LF;
    this.#text = text.replace(/\r\n?/g, "\n");
    this.version++;
  }
  get lineCount(): number {
    return this.#text.split("\n").length;
  }
  lineAt(line: number): { range: Range } {
    return { range: new Range(line, 0, line, (this.#text.split("\n")[line] ?? "").length) };
  }
  getText(): string {
    return this.eol === EndOfLine.CRLF ? this.#text.replaceAll("\n", "\r\n") : this.#text;
  }
  validateRange(range: Range): Range {
    return range;
  }
  /** What the person types: at the beginning. */
  type(text: string): void {
    this.#text = text + this.#text;
    this.version++;
    this.isDirty = true;
  }
  offsetAt({ line, character }: Position): number {
    return this.getText().split("\n").slice(0, line).reduce((sum, { length }) => sum + length + 1, 0) + character;
  }
  edit(edits: readonly TextEdit[]): void {
    let text = this.getText();
    const all = edits.map(({ range, newText }) => ({ from: this.offsetAt(range.start), to: this.offsetAt(range.end), newText }));
    for (const { from, to, newText } of all.sort((a, b) => b.from - a.from)) text = text.slice(0, from) + newText + text.slice(to);
    this.#text = text.replace(/\r\n?/g, "\n");
    this.eol = edits.find(({ newEol }) => newEol !== undefined)?.newEol ?? this.eol;
    this.version++;
    this.isDirty = true;
  }
  async save(): Promise<boolean> {
    await bench.meddle("save");
    writeFileSync(this.uri.fsPath, this.getText(), bench.settings["files.encoding"] === "iso88591" ? "latin1" : "utf8");
    this.isDirty = false;
    bench.saved.push(this.uri.fsPath);
    return true;
  }
}

export class Terminal {
  shellIntegration: object | undefined;
  sent: string[] = [];
  isClosed = false;
  processId = Promise.resolve(undefined);
  constructor(readonly name: string) {}
  show(): void {}
  sendText(text: string): void {
    this.sent.push(text);
  }
  dispose(): void {
    this.isClosed = true;
    bench.closedTerminal.fire(this);
  }
  /** Its shell says that it reports commands from now on; what it is given is over at once. */
  integrate(): void {
    const executeCommand = (line: string) => {
      this.sent.push(line);
      const execution = { read: async function* () {} };
      setTimeout(() => bench.endedShell.fire({ execution, exitCode: 0 }));
      return execution;
    };
    this.shellIntegration = { executeCommand };
    bench.integration.fire({ terminal: this });
  }
}

interface Folder {
  uri: Uri;
  name: string;
  index: number;
}

/** Where a test looks and meddles. */
export const bench = {
  folders: [] as Folder[],
  documents: [] as TextDocument[],
  settings: {} as Record<string, unknown>,
  /** Called as the editor gets to something: what happens meanwhile. */
  meanwhile: {} as Record<string, ((...args: never[]) => unknown) | undefined>,
  commands: {} as Record<string, (...args: never[]) => unknown>,
  ran: [] as string[],
  saved: [] as string[],
  notices: [] as { text: string; answers: string[] }[],
  terminals: [] as Terminal[],
  active: undefined as { document: TextDocument } | undefined,
  tasks: [] as object[],
  closedTerminal: new EventEmitter<Terminal>(),
  integration: new EventEmitter<{ terminal: Terminal }>(),
  endedShell: new EventEmitter<{ execution: object; exitCode: number }>(),
  endedTask: new EventEmitter<{ execution: object }>(),
  /** An editor on one folder, in which nothing is open. */
  reset(path: string): Folder {
    const folder = { uri: Uri.file(path), name: basename(path), index: 0 };
    for (const list of [this.documents, this.ran, this.saved, this.notices, this.terminals, this.tasks]) list.length = 0;
    Object.assign(this, { folders: [folder], settings: {}, meanwhile: {}, commands: {}, active: undefined });
    return folder;
  },
  open(path: string): TextDocument {
    const document = new TextDocument(Uri.file(path));
    this.documents.push(document);
    return document;
  },
  /** What was to happen meanwhile, once. */
  async meddle(name: string, ...args: unknown[]): Promise<unknown> {
    const happens = this.meanwhile[name] as ((...args: unknown[]) => unknown) | undefined;
    return happens?.(...args);
  },
};

function missing<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw Object.assign(new FileSystemError((error as Error).message));
  }
}

const nothing = { dispose() {} };
const none = () => nothing;

export const workspace = {
  get textDocuments() {
    return bench.documents.filter(({ isClosed }) => !isClosed);
  },
  get workspaceFolders() {
    return bench.folders;
  },
  isTrusted: true,
  fs: {
    stat: async ({ fsPath }: Uri) => missing(() => ({ size: statSync(fsPath).size, type: statSync(fsPath).isDirectory() ? FileType.Directory : FileType.File })),
    readFile: async ({ fsPath }: Uri) => {
      await bench.meddle("read", fsPath);
      return missing(() => new Uint8Array(readFileSync(fsPath)));
    },
    writeFile: async ({ fsPath }: Uri, bytes: Uint8Array) => {
      mkdirSync(dirname(fsPath), { recursive: true });
      writeFileSync(fsPath, bytes);
      // As the editor's watcher would.
      for (const document of bench.documents) if (document.uri.fsPath === fsPath && !document.isDirty) document.reload();
    },
    createDirectory: async ({ fsPath }: Uri) => void mkdirSync(fsPath, { recursive: true }),
  },
  openTextDocument: async (uri: Uri) => {
    const there = workspace.textDocuments.find((document) => document.uri.toString() === uri.toString());
    return there ?? missing(() => bench.open(uri.fsPath));
  },
  /** As the editor does it: all or nothing, and nothing in a document that has changed since it was asked. */
  applyEdit: async (edit: WorkspaceEdit) => {
    const versions = edit.entries().map(([uri]) => workspace.textDocuments.find((document) => document.uri.toString() === uri.toString())?.version);
    await bench.meddle("apply", edit);
    const documents = await Promise.all(edit.entries().map(([uri]) => workspace.openTextDocument(uri)));
    if (documents.some(({ version }, at) => versions[at] !== undefined && versions[at] !== version)) return false;
    if (edit.size === 0) return false;
    if (edit.files.some((file) => "make" in file && existsSync(file.make.fsPath))) return false;
    for (const file of edit.files) {
      if ("make" in file) writeFileSync(file.make.fsPath, file.contents ?? new Uint8Array());
      else if ("delete" in file) rmSync(file.delete.fsPath, { recursive: true });
      else renameSync(file.move.fsPath, file.to.fsPath);
    }
    for (const [at, [, edits]] of edit.entries().entries()) documents[at]?.edit(edits);
    await bench.meddle("applied", edit);
    return true;
  },
  getConfiguration: (section?: string) => ({
    get: (name: string, usual?: unknown) => bench.settings[section === undefined ? name : `${section}.${name}`] ?? usual,
  }),
  findFiles: async () => [],
  registerTextDocumentContentProvider: none,
  onDidChangeWorkspaceFolders: none,
  getWorkspaceFolder: () => bench.folders[0],
};

export const window = {
  tabGroups: { all: [] as { tabs: { isDirty: boolean; input?: unknown }[] }[], onDidChangeTabs: none, close: async () => true },
  get activeTextEditor() {
    return bench.active;
  },
  showTextDocument: async (document: TextDocument) => {
    await bench.meddle("show", document);
    const editor = { document, selection: new Selection(0, 0, 0, 0), revealRange() {} };
    bench.active ??= editor;
    return editor;
  },
  showInformationMessage: async (text: string, ...answers: string[]) => {
    bench.notices.push({ text, answers });
    return (await bench.meddle("notice", text)) as string | undefined;
  },
  showWarningMessage: async (text: string, ...answers: string[]) => {
    bench.notices.push({ text, answers });
    return (await bench.meddle("notice", text)) as string | undefined;
  },
  createTerminal: ({ name }: { name: string }) => {
    const terminal = new Terminal(name);
    bench.terminals.push(terminal);
    void bench.meddle("terminal", terminal);
    return terminal;
  },
  createOutputChannel: () => log,
  onDidCloseTerminal: bench.closedTerminal.event,
  onDidStartTerminalShellExecution: none,
  onDidEndTerminalShellExecution: bench.endedShell.event,
  onDidChangeTerminalShellIntegration: bench.integration.event,
};

export const log = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, show() {}, dispose() {} };

export const commands = {
  registerCommand: (name: string, run: (...args: never[]) => unknown) => {
    bench.commands[name] = run;
    return nothing;
  },
  executeCommand: async (name: string, ...args: never[]) => {
    bench.ran.push(name);
    return bench.commands[name]?.(...args);
  },
  getCommands: async () => {
    await bench.meddle("commands");
    return Object.keys(bench.commands);
  },
};

export const tasks = {
  fetchTasks: async () => {
    await bench.meddle("fetchTasks");
    return bench.tasks;
  },
  executeTask: async (task: object) => {
    bench.ran.push("task");
    const execution = { task, isOver: false, terminate: () => ((execution.isOver = true), bench.endedTask.fire({ execution })) };
    await bench.meddle("executeTask", execution);
    return execution;
  },
  onDidEndTaskProcess: none,
  onDidEndTask: bench.endedTask.event,
};

export const languages = { getDiagnostics: () => [] };
export const env = { shell: "/bin/bash" };
export const version = "1.94.0";

/** Whether there is anything under this name, also a link that leads nowhere. */
export function isThere(path: string): boolean {
  return existsSync(path) || lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}
