// Ward over HTTP, as this person: calls, and events as they come.

import { stat } from "node:fs/promises";
import { request } from "node:http";
import { basename } from "node:path";
import { stranger } from "./owner";

export interface Address {
  url: string;
  token: string;
  /** The other user of this machine whose Ward it is, which the person has given a token for. */
  owner?: number | undefined;
}

/** Ward said no, and why. */
export class Refused extends Error {
  constructor(readonly status: number, readonly kind: string, message: string) {
    super(message);
  }
}

export interface Told {
  event: string;
  data: unknown;
}

export class Ward {
  constructor(readonly address: Address) {}

  /** Refuses where another user answers than the one whose Ward it is: to be asked before the token goes out. */
  async look(): Promise<void> {
    const { url, owner } = this.address;
    const now = await stranger(url);
    if (now !== owner) throw new Error(`${url} is ${now === undefined ? "another user's no longer" : `answered by another user of this machine (uid ${now}) now`}. Nothing was sent there.`);
  }

  /** Any request; the token goes with it, and nowhere else. */
  async ask(path: string, init: RequestInit = {}): Promise<Response> {
    await this.look();
    const headers = new Headers(init.headers);
    headers.set("authorization", `Bearer ${this.address.token}`);
    return fetch(this.address.url + path, { ...init, headers, redirect: "error" });
  }

  async call<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
    const response = await this.ask(path, {
      method,
      signal: signal ?? AbortSignal.timeout(15_000),
      ...(body !== undefined && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
    if (!response.ok) {
      const said = (await response.json().catch(() => ({}))) as { error?: string; kind?: string };
      throw new Refused(response.status, said.kind ?? "", said.error ?? `Ward answered ${response.status}.`);
    }
    return (response.status === 204 ? undefined : await response.json()) as T;
  }

  /** Events until the connection ends, or nothing was heard for too long: Ward shows every 15 s that it is there. */
  async *events(path: string, signal: AbortSignal): AsyncGenerator<Told> {
    const silent = new AbortController();
    let timer = setTimeout(() => silent.abort(), 40_000);
    try {
      const response = await this.ask(path, { headers: { accept: "text/event-stream" }, signal: AbortSignal.any([signal, silent.signal]) });
      if (!response.ok || !response.body) throw new Refused(response.status, "", `Ward answered ${response.status}.`);
      const decoder = new TextDecoder();
      let rest = "";
      for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
        clearTimeout(timer);
        timer = setTimeout(() => silent.abort(), 40_000);
        rest += decoder.decode(bytes, { stream: true });
        for (let end: number; (end = rest.indexOf("\n\n")) >= 0; rest = rest.slice(end + 2)) {
          const field = (name: string) => new RegExp(`^${name}: ?(.*)$`, "m").exec(rest.slice(0, end))?.[1];
          const data = field("data");
          if (data !== undefined) yield { event: field("event") ?? "message", data: JSON.parse(data) };
        }
      }
    } finally {
      clearTimeout(timer);
      silent.abort();
    }
  }
}

/** A request over a Ward's own socket, which shows that this is on its machine. */
export async function beside<T>(socket: string, token: string, method: string, path: string): Promise<T> {
  // The token goes to a Ward of this user's own and to nobody else.
  const there = await stat(socket);
  if (basename(socket) !== "ward.sock" || !there.isSocket() || there.uid !== process.getuid?.()) throw new Error(`${socket} is no socket of a Ward of yours.`);
  return new Promise<T>((resolve, reject) => {
    const asked = request({ socketPath: socket, method, path, headers: { host: "ward.sock", authorization: `Bearer ${token}` }, timeout: 5000 }, async (response) => {
      try {
        let said = "";
        for await (const bytes of response.setEncoding("utf8")) said += bytes;
        if (response.statusCode !== 200) throw new Error(`Ward answered ${response.statusCode}.`);
        resolve(JSON.parse(said) as T);
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)));
      }
    });
    asked.once("timeout", () => asked.destroy(new Error("Ward did not answer.")));
    asked.once("error", reject);
    asked.end();
  });
}
