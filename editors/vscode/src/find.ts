// Finds a running Ward, or starts one; and the token for it.

import { type ChildProcess, spawn } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import * as vscode from "vscode";
import { isLoopback, near, stranger } from "./owner";
import { type Address, beside, Ward } from "./ward";

const USUAL = "http://127.0.0.1:3000";
const START_MS = 30_000;
/** For how long another Ward, which was started meanwhile, may take to be there. */
const MEANWHILE_MS = { "may ask": 10_000, quiet: START_MS };
const LOOK_MS = 250;

/** Whether the person is there to be asked. */
export type Asking = "may ask" | "quiet";
/** What becomes of it where no Ward runs. A Ward that is started has the data folder: one that the person is
 *  about to start again could not. */
export type Absent = "start" | "look";

/** The Ward that was started ended at once. */
class Ended extends Error {}

export class Finder implements vscode.Disposable {
  #child: ChildProcess | undefined;
  #started: string | undefined;
  /** Until then the Ward that was ended last has the data folder. */
  #gone = Promise.resolve();

  constructor(private readonly context: vscode.ExtensionContext, private readonly log: vscode.LogOutputChannel) {}

  /** A Ward that answers, and takes the token. */
  async find(asking: Asking, absent: Absent, signal?: AbortSignal): Promise<Ward> {
    await this.#gone;
    let url = await this.#running();
    signal?.throwIfAborted();
    if (url === undefined) {
      if (!setting<boolean>("start")) throw new Error("No Ward runs. Start it with `ward serve`, or set ward.start.");
      if (absent === "look") throw new Error("No Ward runs. Start it with `ward serve`; or Ward: Connect This Window starts one.");
      url = await this.#start(signal).catch((error: unknown) => this.#meanwhile(error, asking, signal));
    }
    return new Ward(await this.#withToken(url, asking, signal));
  }

  /** Whether this window started that Ward. */
  started(ward: Ward): boolean {
    return ward.address.url === this.#started;
  }

  /** Whether anything is connected to the Ward that this window started. */
  async inUse(): Promise<boolean> {
    if (this.#started === undefined) return false;
    try {
      const { runtimes } = await new Ward({ url: this.#started, token: await ownToken() }).call<{ runtimes: { kind: string; state: string }[] }>("GET", "/runtimes");
      return runtimes.some(({ kind, state }) => kind !== "local" && (state === "ready" || state === "busy"));
    } catch {
      return false;
    }
  }

  async #running(): Promise<string | undefined> {
    const set = setting<string>("url").trim().replace(/\/+$/, "");
    if (set !== "") {
      if (!/^https?:\/\//.test(set)) throw new Error(`The setting ward.url is no address: ${set}. It looks like ${USUAL}.`);
      if (await answers(set)) return set;
      throw new Error(`No Ward answers at ${set}, which the setting ward.url names. Start it with \`ward serve\`, or change the setting.`);
    }
    // One that this window started, one that another window of this editor started, the one that owns the
    // data folder wherever it listens, the usual one.
    for (const find of [() => this.#started, () => this.#noted(), ofDataFolder, () => USUAL]) {
      const url = await find();
      if (url !== undefined && (await answers(url))) return url;
    }
    return undefined;
  }

  /** Windows that open at the same moment each start a Ward, and one of these gets the data folder: that one is
   *  waited for. */
  async #meanwhile(error: unknown, asking: Asking, signal: AbortSignal | undefined): Promise<string> {
    if (!(error instanceof Ended)) throw error;
    for (const end = Date.now() + MEANWHILE_MS[asking]; Date.now() < end; ) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      signal?.throwIfAborted();
      const url = await this.#running();
      if (url !== undefined) return url;
    }
    throw error;
  }

  async #start(signal: AbortSignal | undefined): Promise<string> {
    const program = setting<string>("path");
    const folder = vscode.workspace.workspaceFolders?.find(({ uri }) => uri.scheme === "file")?.uri.fsPath;
    // It ends with its standard input, so also where this process is killed.
    const args = ["serve", "--no-open", "--until-stdin-ends", "--addr", "127.0.0.1:0", ...(folder ? ["--workspace", folder] : [])];
    this.log.info(`starts ${program} ${args.join(" ")}`);
    this.#end();
    await this.#gone;
    const child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"], cwd: folder ?? homedir() });
    this.#child = child;
    const url = await new Promise<string>((resolve, reject) => {
      let said = "";
      const fail = (why: string) => reject(new Error(`Ward could not be started (${program}): ${why}`));
      const timer = setTimeout(() => fail("it did not say where it is."), START_MS);
      const hear = (bytes: Buffer) => {
        said = (said + bytes.toString()).slice(-8192);
        const found = /Ward is on (http:\/\/\S+)/.exec(said);
        if (found?.[1] === undefined) return;
        clearTimeout(timer);
        resolve(found[1]);
      };
      signal?.addEventListener("abort", () => fail("it is no longer wanted."), { once: true });
      child.stdout.on("data", hear);
      child.stderr.on("data", hear);
      child.once("error", (error) => fail((error as NodeJS.ErrnoException).code === "ENOENT" ? "there is no such program. Install Ward, or set ward.path to where it is." : error.message));
      child.once("exit", (code) => {
        clearTimeout(timer);
        this.log.info(`Ward ended with ${code}`);
        if (this.#child === child) this.#child = this.#started = undefined;
        reject(new Ended(`Ward could not be started (${program}): ${ending(said) || `it ended with ${code}.`}`));
      });
    }).catch((error: unknown) => {
      if (this.#child === child) this.#end();
      throw error;
    });
    this.#started = url;
    await this.#note(url);
    return url;
  }

  /** Where the Ward is that a window of this editor started, for the other windows. */
  get #notedAt(): string {
    return join(this.context.globalStorageUri.fsPath, "started.json");
  }

  async #noted(): Promise<string | undefined> {
    const text = await readFile(this.#notedAt, "utf8").catch(() => undefined);
    if (text === undefined) return undefined;
    try {
      const { url } = JSON.parse(text) as { url?: unknown };
      return typeof url === "string" && /^http:\/\/127\.0\.0\.1:\d+$/.test(url) ? url : undefined;
    } catch {
      return undefined;
    }
  }

  async #note(url: string): Promise<void> {
    await vscode.workspace.fs.createDirectory(this.context.globalStorageUri);
    await writeFile(this.#notedAt, JSON.stringify({ url }), { mode: 0o600 });
  }

  async #withToken(url: string, asking: Asking, signal: AbortSignal | undefined): Promise<Address> {
    const owner = await stranger(url);
    const kept = await this.context.secrets.get(secret(url, owner));
    if (kept !== undefined && (await takes({ url, token: kept, owner }))) return { url, token: kept, owner };
    // This machine's token goes to this machine only, and to none of its other users.
    if (isLoopback(url) && owner === undefined) {
      const token = await ownToken();
      if (token !== "" && (await takes({ url, token }))) return { url, token };
    }
    if (asking === "may ask") {
      const address = await this.askToken(url, signal);
      if (address !== undefined) return address;
    }
    throw new Error(`Ward at ${url} needs a token. \`ward tokens add --person NAME\` makes one; Ward: Set Token… keeps it.`);
  }

  /** Asks for a token until one is taken, and keeps it. */
  async askToken(given?: string, signal?: AbortSignal): Promise<Address | undefined> {
    const url = given ?? (await this.#running());
    if (url === undefined) throw new Error("No Ward runs that a token could be for.");
    const owner = await stranger(url);
    const whose = owner === undefined ? "" : ` Another user of this machine (uid ${owner}) answers there: go on only where you know that Ward to be theirs.`;
    const token = await entered(`Your token for ${url}. It is kept in the editor's secret storage.${whose}`, (token) => takes({ url, token, owner }), signal);
    if (token === undefined) return undefined;
    await this.context.secrets.store(secret(url, owner), token);
    return { url, token, owner };
  }

  async forgetToken(url: string): Promise<void> {
    await this.context.secrets.delete(secret(url, await stranger(url)));
  }

  #end(): void {
    const child = this.#child;
    this.#child = this.#started = undefined;
    if (child?.pid === undefined) return;
    this.#gone = new Promise((resolve) => child.once("exit", () => resolve()));
    child.kill("SIGTERM");
  }

  /** Ends what this window started. */
  end(): void {
    if (this.#child !== undefined) void rm(this.#notedAt, { force: true });
    this.#end();
  }

  dispose(): void {
    this.end();
  }
}

/** A token that is taken, or nothing. It is tried when it was entered, never while it is written: each try
 *  with a wrong one counts. */
async function entered(prompt: string, taken: (token: string) => Promise<boolean>, signal?: AbortSignal): Promise<string | undefined> {
  const box = vscode.window.createInputBox();
  Object.assign(box, { title: "Ward", prompt, password: true, ignoreFocusOut: true });
  try {
    return await new Promise<string | undefined>((resolve) => {
      box.onDidHide(() => resolve(undefined));
      box.onDidChangeValue(() => (box.validationMessage = undefined));
      box.onDidAccept(async () => {
        const token = box.value.trim();
        if (token === "" || box.busy) return;
        box.busy = true;
        if (await taken(token)) resolve(token);
        else box.validationMessage = "Ward does not take this token.";
        box.busy = false;
      });
      signal?.addEventListener("abort", () => resolve(undefined), { once: true });
      box.show();
    });
  } finally {
    box.dispose();
  }
}

export function setting<T>(name: string): T {
  return vscode.workspace.getConfiguration("ward").get<T>(name) as T;
}

/** Whose Ward it is belongs to the name: a token that was kept for one user's goes to no other's. */
function secret(url: string, owner: number | undefined): string {
  return `token ${new URL(url).origin}${owner === undefined ? "" : ` of ${owner}`}`;
}

/** Why it ended, in its own words; but what it advises is for a command line. */
function ending(said: string): string {
  const why = said.trim().split("\n").slice(-3).join(" ");
  const held = /The data folder .* is in use by .*?, process \d+/.exec(why);
  return held ? `${held[0]}, and where that one answers cannot be seen. Set ward.url to its address.` : why;
}

/** Ward's folder among those of this kind; a relative path in the variable is ignored, as Ward does. */
function folder(variable: string, belowHome: string): string {
  const named = process.env[variable];
  return join(named !== undefined && isAbsolute(named) ? named : join(homedir(), belowHome), "ward");
}

/** The token of this machine; empty where there is none. */
async function ownToken(): Promise<string> {
  return (await readFile(join(folder("XDG_CONFIG_HOME", ".config"), "token"), "utf8").catch(() => "")).trim();
}

/** Where the Ward listens that owns the data folder, as it says over its own socket there. */
async function ofDataFolder(): Promise<string | undefined> {
  const token = await ownToken();
  if (token === "") return undefined;
  try {
    const { address } = await beside<{ address?: string }>(join(folder("XDG_DATA_HOME", ".local/share"), "ward.sock"), token, "GET", "/healthz");
    return address === undefined ? undefined : `http://${near(address)}`;
  } catch {
    return undefined;
  }
}

/** Whether a Ward is there. */
async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(3000), redirect: "error" });
    const said = (await response.json()) as { status?: unknown; version?: unknown };
    return response.ok && said.status === "ok" && typeof said.version === "string";
  } catch {
    return false;
  }
}

/** Whether it takes this token, as a person's. */
async function takes(address: Address): Promise<boolean> {
  try {
    const { actor } = await new Ward(address).call<{ actor?: string }>("GET", "/healthz");
    return actor?.startsWith("person:") === true;
  } catch {
    return false;
  }
}
