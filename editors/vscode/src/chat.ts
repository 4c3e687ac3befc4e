// The chat: Ward's own page in a webview of the side bar. The page reaches nothing but this extension,
// which asks Ward for it: so the token never enters the page, and a window that is used from afar
// works as well.

import * as vscode from "vscode";
import { randomBytes } from "node:crypto";
import { Assets } from "./assets";
import { type Here, placed } from "./placed";
import type { Connection } from "./connection";
import { message } from "./connection";
import { warn } from "./notice";
import { named } from "./paths";
import type { FromPage, ToPage } from "./webview/messages";
import type { Ward } from "./ward";

const CONNECT = "Connect This Window";

export class Chat implements vscode.WebviewViewProvider, vscode.Disposable {
  static readonly id = "ward.chat";
  #view: vscode.WebviewView | undefined;
  #shown: Ward | undefined;
  #under = new Map<number, AbortController>();
  /** The conversation that the page shows: it follows that one, also where it was hidden meanwhile. */
  #follows: { id: string; ask: number } | undefined;
  #ready = false;
  /** What to do once the page is there. */
  #later: ToPage[] = [];
  #count = 0;
  #hidden = new vscode.EventEmitter<void>();
  #subscription: vscode.Disposable;
  #assets: Assets;

  readonly onDidHide = this.#hidden.event;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly connection: Connection,
    private readonly log: vscode.LogOutputChannel,
    /** Where a conversation that is begun in the page acts. */
    private readonly here: () => Promise<Here | undefined>,
    /** The folder of such a conversation, where it is known before it is begun. */
    private readonly folder: () => Promise<string | undefined>,
  ) {
    this.#assets = new Assets(context.globalStorageUri);
    this.#subscription = connection.onDidChange(() => void this.#draw());
  }

  get visible(): boolean {
    return this.#view?.visible === true && this.#shown !== undefined && vscode.window.state.focused;
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.#view = view;
    view.webview.options = this.#options();
    view.webview.onDidReceiveMessage((said: FromPage) => void this.#hear(said));
    view.onDidChangeVisibility(() => {
      if (view.visible) {
        if (!this.#shown) void this.#draw();
        return;
      }
      // The editor lets go of the page; when it is shown again, it begins anew.
      this.#ready = false;
      this.#stopAll();
      this.#hidden.fire();
    });
    view.onDidDispose(() => {
      this.#view = this.#shown = undefined;
      this.#ready = false;
      this.#stopAll();
      this.#hidden.fire();
    });
    this.badge(this.#count);
    this.#shown = undefined;
    void this.#draw();
  }

  /** Shows the view, and a place in the page. */
  async open(hash?: string): Promise<void> {
    await vscode.commands.executeCommand(`${Chat.id}.focus`);
    if (hash !== undefined) this.#post({ kind: "go", hash });
  }

  /** Puts words into the message that is being written. */
  async add(text: string): Promise<void> {
    await this.open();
    this.#post({ kind: "add", text });
  }

  /** A file, as the conversation that is shown calls it. */
  async name(uri: vscode.Uri): Promise<string> {
    if (!this.#follows) return nameOf(uri, await this.folder());
    const shown = await this.connection.ward?.call<{ workspace: string }>("GET", `/sessions/${this.#follows.id}`).catch(() => undefined);
    return nameOf(uri, shown?.workspace);
  }

  badge(count: number): void {
    this.#count = count;
    if (this.#view) this.#view.badge = count === 0 ? undefined : { value: count, tooltip: `${count} ${count === 1 ? "approval waits" : "approvals wait"} for you` };
  }

  #post(message: ToPage): void {
    if (this.#ready) void this.#view?.webview.postMessage(message);
    // An answer is for the page that asked; what the person wants is for the next one too.
    else if (message.kind === "go" || message.kind === "add") this.#later.push(message);
  }

  async #draw(): Promise<void> {
    const view = this.#view;
    if (!view) return;
    const { state } = this.connection;
    const plain = (title: string, text: string, button?: string) => withoutPage(view.webview, this.#boot(view.webview), title, text, button);
    if (state.at === "connected") {
      // Also after a Ward that was lost: the page goes on by itself.
      if (this.#shown) {
        this.#shown = state.ward;
        return;
      }
      this.#shown = state.ward;
      try {
        view.webview.html = await this.#page(view.webview, state.ward);
      } catch (error) {
        this.#shown = undefined;
        view.webview.html = plain("The page could not be had", message(error), "Try Again");
      }
    } else if (state.at === "lost") {
      // The page says so itself, where it is there.
      if (!this.#shown) view.webview.html = plain("Reconnecting…", state.why, CONNECT);
    } else {
      this.#shown = undefined;
      this.#ready = false;
      this.#stopAll();
      view.webview.html = state.at === "connecting"
        ? plain("Connecting…", "Ward is looked for, and started where it does not run.")
        : plain(state.at === "failed" ? "Not connected" : "This window is not connected", state.at === "failed" ? state.why : "Connected, agents can work in this window: you see what they do, and answer what they ask.", CONNECT);
    }
  }

  /** It reads the extension's own files and those of the page that it shows. */
  #options(...page: vscode.Uri[]): vscode.WebviewOptions {
    return { enableScripts: true, localResourceRoots: [...page, vscode.Uri.joinPath(this.context.extensionUri, "out")] };
  }

  #boot(webview: vscode.Webview): string {
    return webview.asWebviewUri(vscode.Uri.joinPath(this.context.extensionUri, "out", "boot.js")).toString();
  }

  async #page(webview: vscode.Webview, ward: Ward): Promise<string> {
    this.#ready = false;
    const { script, style, preload, folder } = await this.#assets.fetch(ward);
    webview.options = this.#options(folder);
    const nonce = randomBytes(16).toString("base64");
    const own = (name: string) => webview.asWebviewUri(vscode.Uri.joinPath(folder, name)).toString();
    // Nothing but this extension's and Ward's files; no connection to anywhere.
    const policy = `default-src 'none'; script-src ${webview.cspSource}; style-src ${webview.cspSource} 'nonce-${nonce}'; img-src ${webview.cspSource} data:; font-src ${webview.cspSource}; base-uri 'none'; form-action 'none'`;
    return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="csp-nonce" nonce="${nonce}">
<title>Ward</title>
<link rel="stylesheet" href="${own(style)}">
${preload.map((name) => `<link rel="modulepreload" href="${own(name)}">`).join("\n")}
<style nonce="${nonce}">body { padding: 0; font-size: 14px; }</style>
</head>
<body>
<div id="root"></div>
<script src="${this.#boot(webview)}"></script>
<script type="module" src="${own(script)}"></script>
</body>
</html>`;
  }

  async #hear(said: FromPage): Promise<void> {
    switch (said.kind) {
      case "ready":
        this.#ready = true;
        for (const message of this.#later.splice(0)) this.#post(message);
        return;
      case "connect":
        await vscode.commands.executeCommand("ward.connect");
        // It may have been connected, and only the page not there.
        if (!this.#shown) await this.#draw();
        return;
      case "stop":
        this.#under.get(said.id)?.abort();
        if (this.#follows?.ask === said.id) this.#follows = undefined;
        return;
      case "ask":
        await this.#ask(said);
        return;
      case "dropped":
        await this.#dropped(said.uris.map((uri) => vscode.Uri.parse(uri)));
    }
  }

  async #dropped(uris: vscode.Uri[]): Promise<void> {
    // A window that is used from afar names its files as a remote's; here they are this machine's.
    const files = uris.map((uri) => (uri.scheme === "vscode-remote" ? vscode.Uri.file(uri.path) : uri));
    const isHere = (uri: vscode.Uri) => vscode.workspace.getWorkspaceFolder(uri) !== undefined;
    const names = await Promise.all(files.filter(isHere).map((uri) => this.name(uri)));
    if (names.length > 0) this.#post({ kind: "add", text: `${names.map((name) => `\`${name}\``).join(" ")} ` });
    const outside = files.filter((uri) => !isHere(uri)).map((uri) => (uri.scheme === "file" ? uri.fsPath : uri.toString()));
    if (outside.length > 0) void warn(`Ward: not added, because agents act in the folders of this window: ${outside.join(", ")}. Add the folder to the window, or copy the file into one of its folders.`);
  }

  /** A request of the page, asked of Ward; the answer goes back piece by piece. */
  async #ask({ id, path, method, headers, body }: Extract<FromPage, { kind: "ask" }>): Promise<void> {
    const ward = this.connection.ward;
    // Ward's own address, and nothing that could lead elsewhere.
    if (!ward || !/^\/(?![/\\])/.test(path)) {
      this.#post({ kind: "failed", id, why: "Ward is not connected." });
      return;
    }
    const stop = new AbortController();
    this.#under.set(id, stop);
    const followed = /^\/sessions\/([^/?]+)\/events/.exec(path)?.[1];
    if (followed !== undefined) this.#follows = { id: followed, ask: id };
    try {
      const here = placed(await this.here(), method, path, body);
      const response = await ward.ask(here.path, { method, headers, signal: stop.signal, ...(here.body !== undefined && { body: here.body }) });
      this.#post({ kind: "answered", id, status: response.status, headers: { "content-type": response.headers.get("content-type") ?? "" } });
      const decoder = new TextDecoder();
      if (response.body) {
        for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
          const data = here.told(decoder.decode(bytes, { stream: true }));
          if (data !== "") this.#post({ kind: "piece", id, data });
        }
      }
      this.#post({ kind: "ended", id });
    } catch (error) {
      // Who stopped it does not wait for it.
      if (stop.signal.aborted) return;
      this.log.debug(`${method} ${path}: ${message(error)}`);
      this.#post({ kind: "failed", id, why: message(error) });
    } finally {
      if (this.#under.get(id) === stop) this.#under.delete(id);
    }
  }

  #stopAll(): void {
    for (const stop of this.#under.values()) stop.abort();
    this.#under.clear();
  }

  dispose(): void {
    this.#stopAll();
    this.#subscription.dispose();
    this.#hidden.dispose();
  }
}

/** A file, as a conversation that acts in this folder calls it. */
export async function nameOf(uri: vscode.Uri, folder: string | undefined): Promise<string> {
  return uri.scheme === "file" ? named(folder, uri.fsPath) : vscode.workspace.asRelativePath(uri, false);
}

/** A page without Ward: what is missing, and a button that mends it. */
function withoutPage(webview: vscode.Webview, boot: string, title: string, text: string, button?: string): string {
  const nonce = randomBytes(16).toString("base64");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'nonce-${nonce}'; script-src ${webview.cspSource}">
<style nonce="${nonce}">
body { font: var(--vscode-font-size) var(--vscode-font-family); color: var(--vscode-foreground); padding: 4px 20px; }
h2 { font-size: 1.1em; font-weight: 600; margin: 1em 0 .4em; }
p { line-height: 1.5; margin: .4em 0 1em; overflow-wrap: anywhere; color: var(--vscode-descriptionForeground); }
button { font: inherit; width: 100%; padding: 6px 12px; border: 0; border-radius: 2px; cursor: pointer; color: var(--vscode-button-foreground); background: var(--vscode-button-background); }
button:hover { background: var(--vscode-button-hoverBackground); }
button:focus-visible { outline: 1px solid var(--vscode-focusBorder); outline-offset: 2px; }
</style>
</head>
<body>
<h2>${escaped(title)}</h2>
<p>${escaped(text)}</p>
${button === undefined ? "" : `<button id="connect" type="button">${button}</button>`}
<script src="${boot}"></script>
</body>
</html>`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
