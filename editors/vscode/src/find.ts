// Finds a running Ward, or starts one; and the token for it.

import { type ChildProcess, spawn } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import * as vscode from "vscode";
import { type Address, Ward } from "./ward";

const USUAL = "http://127.0.0.1:3000";
const START_MS = 30_000;

/** Whether the person is there to be asked. */
export type Asking = "may ask" | "quiet";

export class Finder implements vscode.Disposable {
  #child: ChildProcess | undefined;
  #started: string | undefined;

  constructor(private readonly context: vscode.ExtensionContext, private readonly log: vscode.LogOutputChannel) {}

  /** A Ward that answers, and takes the token. */
  async find(asking: Asking): Promise<Ward> {
    const url = (await this.#running()) ?? (await this.#start());
    return new Ward(await this.#withToken(url, asking));
  }

  /** Whether this window started the Ward that it uses. */
  get startedHere(): boolean {
    return this.#child !== undefined;
  }

  async #running(): Promise<string | undefined> {
    const set = setting<string>("url").trim().replace(/\/+$/, "");
    if (set !== "") {
      if (!/^https?:\/\//.test(set)) throw new Error(`The setting ward.url is no address: ${set}. It looks like ${USUAL}.`);
      if (await answers(set)) return set;
      throw new Error(`No Ward answers at ${set}, which the setting ward.url names. Start it with \`ward serve\`, or change the setting.`);
    }
    // One that this window started, one that another window of this editor started, the usual one.
    for (const url of [this.#started, await this.#noted(), USUAL]) if (url !== undefined && (await answers(url))) return url;
    return undefined;
  }

  async #start(): Promise<string> {
    const program = setting<string>("path");
    const folder = vscode.workspace.workspaceFolders?.find(({ uri }) => uri.scheme === "file")?.uri.fsPath;
    if (!setting<boolean>("start")) throw new Error(`No Ward runs at ${USUAL}. Start it with \`ward serve\`, or set ward.start.`);
    const args = ["serve", "--no-open", "--addr", "127.0.0.1:0", ...(folder ? ["--workspace", folder] : [])];
    this.log.info(`starts ${program} ${args.join(" ")}`);
    this.#end();
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], cwd: folder ?? homedir() });
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
      child.stdout.on("data", hear);
      child.stderr.on("data", hear);
      child.once("error", (error) => fail((error as NodeJS.ErrnoException).code === "ENOENT" ? "there is no such program. Install Ward, or set ward.path to where it is." : error.message));
      child.once("exit", (code) => {
        clearTimeout(timer);
        this.log.info(`Ward ended with ${code}`);
        if (this.#child === child) this.#child = this.#started = undefined;
        fail(said.trim().split("\n").slice(-3).join(" ") || `it ended with ${code}.`);
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

  async #withToken(url: string, asking: Asking): Promise<Address> {
    const kept = await this.context.secrets.get(secret(url));
    if (kept !== undefined && (await takes({ url, token: kept }))) return { url, token: kept };
    // This machine's token goes to this machine only.
    if (isLoopback(url)) {
      const token = (await readFile(join(configHome(), "ward", "token"), "utf8").catch(() => "")).trim();
      if (token !== "" && (await takes({ url, token }))) return { url, token };
    }
    if (asking === "may ask") {
      const token = await this.askToken(url);
      if (token !== undefined) return { url, token };
    }
    throw new Error(`Ward at ${url} needs a token. \`ward tokens add --person NAME\` makes one; Ward: Set Token… keeps it.`);
  }

  /** Asks for a token until one is taken, and keeps it. */
  async askToken(url?: string): Promise<string | undefined> {
    const at = url ?? (await this.#running());
    if (at === undefined) throw new Error("No Ward runs that a token could be for.");
    const token = await vscode.window.showInputBox({
      title: "Ward",
      prompt: `Your token for ${at}. It is kept in the editor's secret storage.`,
      password: true,
      ignoreFocusOut: true,
      validateInput: async (value) => (value.trim() === "" || (await takes({ url: at, token: value.trim() })) ? undefined : "Ward does not take this token."),
    });
    if (!token?.trim()) return undefined;
    await this.context.secrets.store(secret(at), token.trim());
    return token.trim();
  }

  async forgetToken(url: string): Promise<void> {
    await this.context.secrets.delete(secret(url));
  }

  #end(): void {
    this.#child?.kill("SIGTERM");
    this.#child = this.#started = undefined;
  }

  dispose(): void {
    if (this.#child !== undefined) void rm(this.#notedAt, { force: true });
    this.#end();
  }
}

export function setting<T>(name: string): T {
  return vscode.workspace.getConfiguration("ward").get<T>(name) as T;
}

function secret(url: string): string {
  return `token ${new URL(url).origin}`;
}

function configHome(): string {
  return process.env.XDG_CONFIG_HOME || join(homedir(), ".config");
}

export function isLoopback(url: string): boolean {
  return ["127.0.0.1", "localhost", "[::1]"].includes(new URL(url).hostname);
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
