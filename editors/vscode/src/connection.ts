// This window as a runtime: one connection for each of its folders, registered with Ward, kept by
// heartbeats, and made again by itself after it was lost.

import { randomUUID } from "node:crypto";
import { realpath } from "node:fs/promises";
import * as vscode from "vscode";
import { io, type Socket } from "socket.io-client";
import { Actions } from "./actions";
import { asFailure, type Acknowledgement } from "./failure";
import { type Absent, type Asking, Finder } from "./find";
import { isLoopback } from "./owner";
import { beside, Refused, type Ward } from "./ward";

export type State =
  | { at: "off" }
  | { at: "connecting" }
  | { at: "connected"; ward: Ward; since: number }
  | { at: "lost"; why: string; tries: number }
  | { at: "failed"; why: string };

/** One folder's connection. */
interface Link {
  folder: vscode.WorkspaceFolder;
  /** Where it really is: the folder may be open by the name of a link. */
  workspace: string;
  socket: Socket;
  runtimeId: string;
}

/** The ids that windows on a folder were given: a conversation is bound to one, and goes on where its window
 *  is open again. Several windows on one folder share what is kept, so there are several. */
const KEPT = "runtime ids";
const MOST_KEPT = 8;

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10_000;

export class Connection implements vscode.Disposable {
  #state: State = { at: "off" };
  #links: Link[] = [];
  /** The ids that this window's folders have, or had: they keep them. */
  #ids = new Map<string, string>();
  /** By this Ward tells this window from another on the same folder. */
  #instance = randomUUID();
  /** Those whose commands Ward confines: this window is on its machine. */
  #confined = new Set<string>();
  /** Those whose folder Ward's machine has. */
  #hasFolder = new Set<string>();
  #actions: Actions;
  #changed = new vscode.EventEmitter<State>();
  #beat: ReturnType<typeof setInterval> | undefined;
  /** Whether this window started the Ward that it is, or was, connected to. */
  #own = false;
  /** Over when the last try to connect is. */
  #opening = Promise.resolve();
  /** Whether the window's folders have changed since that began. */
  #changedFolders = false;
  /** Ends whatever is under way for the last time that a connection was wanted. */
  #wanted: AbortController | undefined;

  readonly onDidChange = this.#changed.event;

  constructor(private readonly finder: Finder, private readonly log: vscode.LogOutputChannel, private readonly version: string, private readonly kept: vscode.Memento) {
    this.#actions = new Actions(log);
  }

  get state(): State {
    return this.#state;
  }

  get ward(): Ward | undefined {
    return this.#state.at === "connected" ? this.#state.ward : undefined;
  }

  /** The runtimes that this window is, by folder. */
  get runtimes(): { folder: vscode.WorkspaceFolder; runtimeId: string; confined: boolean; hasFolder: boolean }[] {
    return this.#links.map(({ folder, runtimeId }) => ({ folder, runtimeId, confined: this.#confined.has(runtimeId), hasFolder: this.#hasFolder.has(runtimeId) }));
  }

  /** Whether this is one of the workspaces that this window shows. */
  shows(workspace: string): boolean {
    return this.#links.some((link) => link.workspace === workspace);
  }

  get capabilities(): string[] {
    return this.#actions.capabilities;
  }

  /** Connects and stays connected, until `disconnect`. */
  async connect(asking: Asking): Promise<Ward> {
    if (this.#state.at === "connected") return this.#state.ward;
    this.#wanted?.abort();
    const wanted = (this.#wanted = new AbortController());
    this.#set({ at: "connecting" });
    try {
      return await this.#open(asking, "start", wanted.signal);
    } catch (error) {
      if (wanted.signal.aborted) throw new vscode.CancellationError();
      this.#close();
      this.#set({ at: "failed", why: message(error) });
      throw error;
    }
  }

  async disconnect(): Promise<void> {
    this.#wanted?.abort();
    this.#wanted = undefined;
    const [ward, links] = [this.ward, this.#links];
    // It is taken off the list while its connection is still there.
    if (ward) await unregister(ward, links);
    this.#close();
    this.#set({ at: "off" });
    await this.#opening;
    // So that the data folder is the person's again; another window may be at that Ward.
    if (!(await this.finder.inUse()) && this.#wanted === undefined) this.finder.end();
  }

  /** The folders of the window have changed. */
  foldersChanged(): void {
    this.#changedFolders = true;
    if (this.#state.at === "connected") this.#lost("The folders of this window have changed.");
  }

  #open(asking: Asking, absent: Absent, signal: AbortSignal): Promise<Ward> {
    const opening = this.#opened(asking, absent, signal);
    this.#opening = opening.then(() => {}, () => {});
    return opening;
  }

  async #opened(asking: Asking, absent: Absent, signal: AbortSignal): Promise<Ward> {
    this.#changedFolders = false;
    const folders = connectable();
    const ward = await this.finder.find(asking, absent, signal);
    signal.throwIfAborted();
    const links: Link[] = [];
    try {
      let lease = 60;
      for (const folder of folders) {
        signal.throwIfAborted();
        const { link, lease_s } = await this.#link(ward, folder, signal);
        links.push(link);
        lease = Math.min(lease, lease_s);
      }
      signal.throwIfAborted();
      if (links.some(({ socket }) => !socket.connected)) throw new Error("The connection was lost at once.");
      this.#links = links;
      this.#own = this.finder.started(ward);
      for (const { socket } of links) socket.once("disconnect", (why) => this.#lost(`The connection to Ward was lost (${why}).`, socket));
      this.#beat = setInterval(() => void this.#heartbeat(ward), (lease * 1000) / 3);
      this.#set({ at: "connected", ward, since: Date.now() });
      this.log.info(`connected to ${ward.address.url} as ${links.map(({ runtimeId }) => runtimeId).join(", ")}`);
      if (this.#changedFolders) this.foldersChanged();
      return ward;
    } catch (error) {
      // Where it is wanted anew, its ids are that connection's.
      if (this.#wanted === undefined) await unregister(ward, links);
      for (const { socket } of links) socket.close();
      throw error;
    }
  }

  async #link(ward: Ward, folder: vscode.WorkspaceFolder, signal: AbortSignal): Promise<{ link: Link; lease_s: number }> {
    const { url, token } = ward.address;
    await ward.look();
    let failed: (error: unknown) => void = () => {};
    // The token goes out with a later request than the first, so it is looked once more.
    const auth = (send: (data: object) => void) => void ward.look().then(() => send({ token }), (error: unknown) => failed(error));
    // It is made again by us: the Ward that comes back may be elsewhere. By polling first: for websockets whose
    // other end has not said who it is Ward has few places, and anybody can sit on them.
    const socket = io(url, { auth, transports: ["polling", "websocket"], reconnection: false, forceNew: true, timeout: 10_000 });
    try {
      await new Promise<void>((resolve, reject) => {
        failed = reject;
        socket.once("connect", resolve);
        socket.once("connect_error", (error) => reject(new Error(`Ward refused the connection: ${error.message}`)));
        signal.addEventListener("abort", () => reject(new Error("It is no longer wanted.")), { once: true });
      });
      socket.on("action:execute", async (asked: { id: string; action: string; params: Record<string, unknown>; deadline_ms: number }, acknowledge: (answer: Acknowledgement) => void) => {
        acknowledge(await this.#actions.execute(folder, asked, (piece) => socket.emit("action:output", piece)));
      });
      socket.on("action:cancel", ({ id }: { id: string }) => this.#actions.cancel(id));
      socket.once("disconnect", () => this.#actions.cancelAll(folder));
      const workspace = await realpath(folder.uri.fsPath);
      const registered = await this.#register(ward, { folder, workspace, socket });
      return { link: { folder, workspace, socket, runtimeId: registered.runtime_id }, lease_s: registered.lease_s };
    } catch (error) {
      socket.close();
      throw error;
    }
  }

  async #register(ward: Ward, { folder, workspace, socket }: Omit<Link, "runtimeId">): Promise<{ runtime_id: string; lease_s: number }> {
    const name = folder.uri.toString();
    const [own, kept] = [this.#ids.get(name), this.kept.get<Record<string, string[]>>(KEPT, {})];
    const former = kept[name] ?? [];
    const registered = await ward.call<{ runtime_id: string; lease_s: number; socket?: string; has_folder: boolean }>("POST", "/runtimes", {
      socket_id: socket.id,
      kind: "vscode",
      workspace_path: workspace,
      workspace_name: folder.name,
      version: vscode.version,
      extension_version: this.version,
      capabilities: this.capabilities,
      instance: this.#instance,
      ...(own !== undefined && { runtime_id: own }),
      former_ids: former,
    });
    const id = registered.runtime_id;
    this.#ids.set(name, id);
    if (!former.includes(id)) await this.kept.update(KEPT, { ...kept, [name]: [id, ...former].slice(0, MOST_KEPT) });
    if (registered.has_folder) this.#hasFolder.add(id);
    else this.#hasFolder.delete(id);
    this.#confined.delete(id);
    // Another machine's Ward names a socket of its own.
    if (registered.socket !== undefined && isLoopback(ward.address.url)) {
      try {
        await beside(registered.socket, ward.address.token, "POST", `/runtimes/${registered.runtime_id}/here`);
        this.#confined.add(registered.runtime_id);
      } catch (error) {
        this.log.info(`commands are not confined here: ${message(error)}`);
      }
    }
    return registered;
  }

  async #heartbeat(ward: Ward): Promise<void> {
    for (const link of this.#links) {
      try {
        await ward.call("POST", `/runtimes/${link.runtimeId}/heartbeat`);
      } catch (error) {
        if (!this.#links.includes(link)) return;
        if (error instanceof Refused && link.socket.connected) {
          // Ward does not know it any more: it is made known again.
          try {
            link.runtimeId = (await this.#register(ward, link)).runtime_id;
            continue;
          } catch {
            // Below.
          }
        }
        this.#lost(message(error), link.socket);
      }
    }
  }

  /** The connection is gone: it is made again until it is there, or no longer wanted. */
  #lost(why: string, socket?: Socket): void {
    if (socket && !this.#links.some((link) => link.socket === socket)) return;
    const wanted = this.#wanted;
    this.#close();
    if (!wanted || wanted.signal.aborted) return;
    this.log.warn(why);
    void this.#again(why, wanted.signal);
  }

  async #again(why: string, signal: AbortSignal): Promise<void> {
    let pause = FIRST_PAUSE;
    for (let tries = 1; !signal.aborted; tries++) {
      this.#set({ at: "lost", why, tries });
      await sleep(tries === 1 ? 100 : pause * (0.75 + Math.random() / 2), signal);
      if (signal.aborted) return;
      try {
        await this.#open("quiet", this.#own ? "start" : "look", signal);
        return;
      } catch (error) {
        this.log.debug(`not connected again: ${message(error)}`);
        why = message(error);
        pause = Math.min(pause * 2, LONGEST_PAUSE);
      }
    }
  }

  #close(): void {
    clearInterval(this.#beat);
    const links = this.#links;
    this.#links = [];
    for (const { socket } of links) socket.close();
  }

  #set(state: State): void {
    this.#state = state;
    this.#changed.fire(state);
  }

  dispose(): void {
    this.#wanted?.abort();
    this.#close();
    this.#actions.dispose();
    this.#changed.dispose();
  }
}

async function unregister(ward: Ward, links: Link[]): Promise<void> {
  await Promise.allSettled(links.map(({ runtimeId }) => ward.call("DELETE", `/runtimes/${runtimeId}`)));
}

/** The folders that can be a workspace of Ward's; why not, where there is none. */
function connectable(): vscode.WorkspaceFolder[] {
  const all = vscode.workspace.workspaceFolders ?? [];
  if (!vscode.workspace.isTrusted) throw new Error("This workspace is not trusted: agents would run commands in it. Trust it first (Workspaces: Manage Workspace Trust).");
  if (all.length === 0) throw new Error("This window has no folder open. Open one: agents act in a folder.");
  const here = all.filter(({ uri }) => uri.scheme === "file");
  if (here.length === 0) throw new Error(`This window shows a virtual workspace (${all[0]?.uri.scheme}:). Agents act in folders on a disk: clone it, or open it over a remote connection.`);
  return here;
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}

export function message(error: unknown): string {
  return error instanceof Error ? error.message : asFailure(error).message;
}
