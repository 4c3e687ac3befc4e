// Ward in this editor: puts the parts together, and says what each command does.

import { basename } from "node:path";
import * as vscode from "vscode";
import { Approvals, type Approval } from "./approvals";
import { Chat, nameOf } from "./chat";
import { Connection, message } from "./connection";
import { Finder, setting } from "./find";
import { fail, inform } from "./notice";
import type { Here } from "./placed";
import { unlinked } from "./question";
import { Acting, Status } from "./status";

type Runs = Connection["runtimes"][number];

interface Runtime {
  runtime_id: string;
  kind: string;
  workspace: string;
  state: string;
  /** Whether it has shown that it is on Ward's machine. */
  confined?: boolean;
}

/** Where a conversation acts, and in which folder, by which its files are named. */
type Place = Here & { folder: string };

/** A choice, and how the status bar says it. */
type Chosen = Place & { where: string };

/** Where the chat of this window acts, where the person chose; this window otherwise. */
const CHOSEN = "chat runtime";

let ending: (() => Promise<void>) | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("Ward", { log: true });
  const finder = new Finder(context, log);
  const { version } = context.extension.packageJSON as { version: string };
  const connection = new Connection(finder, log, version, context.workspaceState);
  const status = new Status();
  const acting = new Acting();
  let chosen: Chosen | undefined = kept(context.workspaceState.get(CHOSEN));
  const place = async (): Promise<Place | undefined> => {
    const own = chosen ? connection.runtimes.find(({ runtimeId }) => runtimeId === chosen?.runtime) : hereOf(connection);
    return own ? placeOf(own) : chosen;
  };
  const here = async (): Promise<Here | undefined> => hereAt(await place());
  // In a window with several folders it is the one that the person is in when they send the message.
  const acts = async () => (chosen || connection.runtimes.length === 1 ? (await place())?.folder : undefined);
  const chat: Chat = new Chat(context, connection, log, here, acts);
  const approvals = new Approvals(connection, () => chat.visible, log);
  ending = () => connection.disconnect();

  const shown = () => {
    status.show(connection.state, approvals.count);
    acting.show(connection.state.at === "connected" ? (chosen?.where ?? "this window") : undefined);
  };
  context.subscriptions.push(
    log,
    finder,
    connection,
    status,
    acting,
    chat,
    approvals,
    vscode.window.registerWebviewViewProvider(Chat.id, chat),
    connection.onDidChange((state) => {
      shown();
      void vscode.commands.executeCommand("setContext", "ward.connected", state.at === "connected");
      void vscode.commands.executeCommand("setContext", "ward.wanted", state.at !== "off" && state.at !== "failed");
    }),
    approvals.onDidChange((count) => {
      shown();
      chat.badge(count);
    }),
    chat.onDidHide(() => approvals.chatHidden()),
    vscode.workspace.onDidChangeWorkspaceFolders(() => connection.foldersChanged()),
  );

  /** A command that says what went wrong. */
  const command = <A extends unknown[]>(name: string, run: (...args: A) => Promise<unknown>) => {
    const guarded = async (...args: A) => {
      try {
        return await run(...args);
      } catch (error) {
        if (error instanceof vscode.CancellationError) return undefined;
        log.error(`${name}: ${message(error)}`);
        const action = await fail(message(error).replace(/^(?!Ward )/, "Ward: "), "Settings", "Log");
        if (action === "Settings") await vscode.commands.executeCommand("workbench.action.openSettings", "ward.");
        if (action === "Log") log.show();
        return undefined;
      }
    };
    context.subscriptions.push(vscode.commands.registerCommand(name, guarded));
  };

  const connect = () => connection.connect("may ask");

  command("ward.connect", async () => {
    await connect();
  });
  command("ward.disconnect", () => connection.disconnect());
  command("ward.openChat", async () => {
    await chat.open();
    await connect();
  });
  command("ward.showApprovals", async (approval?: Approval) => {
    await connect();
    await chat.open(approval?.session_id ? `#/session/${encodeURIComponent(approval.session_id)}` : "#/approvals");
  });
  command("ward.showStatus", () => showStatus(connection, approvals, finder, log));
  command("ward.runSelection", async () => {
    const about = selected();
    if (!about) throw new Error("Nothing is selected. Select some lines of a file in this window first.");
    const task = await vscode.window.showInputBox({ title: "Run Selection with Agent", prompt: unlinked(`What shall the agent do with \`${vscode.workspace.asRelativePath(about.uri)}\`, ${about.lines}?`), placeHolder: "explain it, add a test, mend it …" });
    if (!task?.trim()) return;
    const ward = await connect();
    const acting = await place();
    const { session_id } = await ward.call<{ session_id: string }>("POST", "/sessions", {
      input: `${task.trim()}\n\nThis is about \`${await nameOf(about.uri, acting?.folder)}\`, ${about.lines}:\n\n${about.quoted}`,
      wait: 0,
      ...hereAt(acting),
    });
    await chat.open(`#/session/${encodeURIComponent(session_id)}`);
  });
  command("ward.addToChat", async (uri?: vscode.Uri) => {
    const about = uri === undefined || uri.toString() === vscode.window.activeTextEditor?.document.uri.toString() ? selected() : undefined;
    const file = uri ?? vscode.window.activeTextEditor?.document.uri;
    await connect();
    if (about) await chat.add(`\`${await chat.name(about.uri)}\`, ${about.lines}:\n${about.quoted}\n`);
    else if (file) await chat.add(`\`${await chat.name(file)}\` `);
  });
  command("ward.chooseRuntime", async () => {
    const ward = await connect();
    const { runtimes } = await ward.call<{ runtimes: Runtime[] }>("GET", "/runtimes");
    const mine = connection.runtimes;
    const ids = new Set(mine.map(({ runtimeId }) => runtimeId));
    const items = await Promise.all(mine.map(async (one) => ({
      label: `$(window) This window: ${one.folder.name}`, description: one.folder.uri.fsPath, choice: { ...(await placeOf(one)), where: `this window: ${one.folder.name}` } as Chosen,
    })));
    for (const one of mine) {
      const { folder: workspace, workspace: known } = await placeOf(one);
      // In a folder that Ward's machine does not have, nothing else runs.
      if (known === undefined) continue;
      items.push({ label: `$(server) The local runtime: ${one.folder.name}`, description: "confined by the sandbox, outside this editor", choice: { runtime: "local", workspace, folder: workspace, where: "the local runtime" } });
      items.push({ label: `$(vm) Whichever window shows ${one.folder.name}`, description: "looked for as a conversation begins, and again", choice: { runtime: { kind: "vscode", workspace }, workspace, folder: workspace, where: `a window on ${one.folder.name}` } });
    }
    for (const other of runtimes) {
      if (other.kind === "local" || ids.has(other.runtime_id)) continue;
      items.push({ label: `$(multiple-windows) ${other.kind}: ${other.workspace}`, description: other.state, choice: { runtime: other.runtime_id, ...(other.confined && { workspace: other.workspace }), folder: other.workspace, where: `${other.kind}: ${basename(other.workspace)}` } });
    }
    const picked = await vscode.window.showQuickPick(items, { title: "Where does a conversation that you begin here act?" });
    if (!picked) return;
    const { runtime } = picked.choice;
    const isHere = typeof runtime === "string" && ids.has(runtime);
    chosen = isHere && mine.length === 1 ? undefined : picked.choice;
    // Another window is chosen for as long as this one is open.
    await context.workspaceState.update(CHOSEN, chosen?.runtime === "local" || typeof chosen?.runtime === "object" ? chosen : undefined);
    shown();
  });
  command("ward.setToken", () => finder.askToken());
  command("ward.forgetToken", async () => {
    const { url } = (connection.ward ?? (await finder.find("quiet", "look"))).address;
    await finder.forgetToken(url);
    void inform(`Ward: the token for ${url} is forgotten.`);
  });

  void vscode.commands.executeCommand("setContext", "ward.connected", false);
  if (setting<boolean>("connectOnStartup") && vscode.workspace.workspaceFolders && vscode.workspace.isTrusted) {
    connection.connect("quiet").catch((error: unknown) => log.warn(`not connected on startup: ${message(error)}`));
  }
}

export async function deactivate(): Promise<void> {
  await ending?.();
}

/** A runtime of this window. Ward is only told a folder that its machine has. */
async function placeOf({ folder, runtimeId, hasFolder }: Runs): Promise<Place> {
  const path = await real(folder.uri.fsPath);
  return { runtime: runtimeId, ...(hasFolder && { workspace: path }), folder: path };
}

function hereAt(place: Place | undefined): Here | undefined {
  return place && { runtime: place.runtime, ...(place.workspace !== undefined && { workspace: place.workspace }) };
}

/** A choice as it was kept, perhaps by an earlier version. */
function kept(choice: Omit<Chosen, "folder"> & { folder?: string } | undefined): Chosen | undefined {
  const folder = choice?.folder ?? choice?.workspace;
  return choice && folder !== undefined ? { ...choice, folder } : undefined;
}

/** The folder that the person is in: the active editor's, or the first. */
function hereOf(connection: Connection): Runs | undefined {
  const active = vscode.window.activeTextEditor?.document.uri;
  const folder = active && vscode.workspace.getWorkspaceFolder(active);
  return connection.runtimes.find((one) => one.folder.uri.toString() === folder?.uri.toString()) ?? connection.runtimes[0];
}

async function real(path: string): Promise<string> {
  const { realpath } = await import("node:fs/promises");
  return realpath(path);
}

/** What is selected, as an agent can read it. */
function selected(): { uri: vscode.Uri; lines: string; quoted: string } | undefined {
  const editor = vscode.window.activeTextEditor;
  if (!editor || editor.selection.isEmpty) return undefined;
  const { document, selection } = editor;
  const [first, last] = [selection.start.line + 1, selection.end.character === 0 && selection.end.line > selection.start.line ? selection.end.line : selection.end.line + 1];
  const lines = first === last ? `line ${first}` : `lines ${first} to ${last}`;
  const text = document.getText(selection);
  // A fence that is longer than any in the text.
  const fence = "`".repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length + 1)));
  return { uri: document.uri, lines, quoted: `${fence}${document.languageId}\n${text}\n${fence}` };
}

async function showStatus(connection: Connection, approvals: Approvals, finder: Finder, log: vscode.LogOutputChannel): Promise<void> {
  const { state } = connection;
  type Item = vscode.QuickPickItem & { run?: () => unknown };
  const command = (label: string, name: string): Item => ({ label, run: () => vscode.commands.executeCommand(name) });
  const line = (label: string, description: string, detail?: string): Item => ({ label, description, ...(detail && { detail }) });
  const items: Item[] = [];
  const separator = (label: string): Item => ({ label, kind: vscode.QuickPickItemKind.Separator });
  if (state.at === "connected") {
    items.push(line("$(pass) Connected", `${state.ward.address.url}${finder.started(state.ward) ? ", started by this window" : ""}`));
    for (const { folder, runtimeId } of connection.runtimes) items.push(line(`$(folder) ${folder.name}`, `runtime ${runtimeId}`, folder.uri.fsPath));
    items.push(line("$(list-unordered) Agents can do here", "files, commands, and what only an editor can", connection.capabilities.filter((name) => name.startsWith("editor.")).map((name) => name.slice("editor.".length)).join(", ")));
    const confined = connection.runtimes.every((one) => one.confined);
    items.push(confined
      ? line("$(lock) Commands are confined", "they run in Ward's sandbox, without network", "In full mode they run in this window's terminal. The editor's own commands and tasks ask.")
      : line("$(unlock) Not confined", "this window's terminal, tasks and commands count as full mode: they ask"));
  } else if (state.at === "lost") items.push(line("$(sync) Reconnecting", `try ${state.tries}`, state.why));
  else if (state.at === "failed") items.push(line("$(warning) Not connected", "", state.why));
  else items.push(line(state.at === "off" ? "$(circle-slash) Not connected" : "$(sync) Connecting", ""));
  for (const folder of vscode.workspace.workspaceFolders ?? []) {
    if (folder.uri.scheme !== "file") items.push(line(`$(cloud) ${folder.name}`, `${folder.uri.scheme}: is no folder on a disk; agents cannot act in it`));
  }
  items.push(separator("commands"));
  if (state.at === "connected" || state.at === "lost") {
    items.push({ label: `Show Approvals${approvals.count > 0 ? ` (${approvals.count})` : ""}`, run: () => vscode.commands.executeCommand("ward.showApprovals") }, command("Open Chat", "ward.openChat"), command("Disconnect", "ward.disconnect"));
  }
  if (state.at !== "connected") items.push(command("Connect This Window", "ward.connect"));
  items.push({ label: "Show Log", run: () => log.show() }, { label: "Settings", run: () => vscode.commands.executeCommand("workbench.action.openSettings", "ward.") });
  const picked = await vscode.window.showQuickPick(items, { title: "Ward", placeHolder: "The state of this window" });
  await picked?.run?.();
}
