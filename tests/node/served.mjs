// A `ward serve` of one's own, and a client that speaks HTTP to it and follows its events.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { place, start } from "./host.mjs";

/** `ward serve` in a place of its own; `more` is added to its environment. */
export async function serve(t, { at, more = {}, args = [], prepare } = {}) {
  at ??= await place(t);
  await prepare?.(at);
  const ward = await start(t, ["serve", "--addr", "127.0.0.1:0", "--no-open", ...args], at, more);
  const url = await new Promise((resolve, reject) => {
    let text = "";
    ward.child.stdout.on("data", (bytes) => {
      text += bytes;
      const found = /http:\/\/\S+(?=\n)/.exec(text);
      if (found && text.includes("Ctrl-C")) resolve(found[0]);
    });
    ward.child.once("exit", (code) => reject(new Error(`ward serve ended with ${code}: ${text}`)));
  });
  const token = (await readFile(join(at.home, ".config/ward/token"), "utf8")).trim();
  const ask = (method, path, body, { headers, signal } = {}) =>
    fetch(url + path, {
      method,
      signal,
      headers: { authorization: `Bearer ${token}`, ...(body !== undefined && { "content-type": "application/json" }), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  return {
    ...at,
    ward,
    url,
    token,
    ask,
    /** Status and body of an answer. */
    call: async (method, path, body) => {
      const response = await ask(method, path, body);
      return { status: response.status, body: await response.json() };
    },
    /** Asks again until the answer fits. */
    until: async (path, fits) => {
      for (;;) {
        const response = await ask("GET", path);
        const body = await response.json();
        if (response.ok && fits(body)) return body;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    },
    /** What is told in answer to this, as it comes. */
    tell: async (method, path, body, options) => new Told(await ask(method, path, body, options)),
    /** The same folder under a new Ward, after this one was killed without a word. */
    again: async () => {
      ward.child.kill("SIGKILL");
      await ward.exited;
      return serve(t, { at, more, args });
    },
  };
}

/** Events as they come. */
export class Told {
  constructor(response) {
    this.response = response;
    this.status = response.status;
    this.events = [];
    this.over = false;
    this.waiting = new Set();
    this.read = this.#read();
  }

  async #read() {
    let text = "";
    const decoder = new TextDecoder();
    try {
      for await (const bytes of this.response.body) {
        text += decoder.decode(bytes, { stream: true });
        for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
          const field = (name) => new RegExp(`^${name}: ?(.*)$`, "m").exec(text.slice(0, end))?.[1];
          if (field("data") === undefined) continue;
          this.events.push({ id: Number(field("id")), event: field("event"), data: JSON.parse(field("data")) });
          for (const look of this.waiting) look();
        }
      }
    } catch (error) {
      this.error = error;
    }
    this.over = true;
    for (const look of this.waiting) look();
  }

  /** Waits for the first event that fits, among those that came and those that come. */
  until(fits) {
    return new Promise((resolve, reject) => {
      const look = () => {
        const found = this.events.find(fits);
        if (found === undefined && !this.over) return;
        this.waiting.delete(look);
        if (found) resolve(found);
        else reject(new Error(`it ended without it: ${JSON.stringify(this.events.slice(-3))}`));
      };
      this.waiting.add(look);
      look();
    });
  }

  /** All of them, once no more come. */
  async all() {
    await this.read;
    return this.events;
  }

  /** The kinds of all, once no more come; text and reasoning in one. */
  async kinds() {
    const kinds = (await this.all()).map((it) => it.event);
    return kinds.filter((kind, index) => !kind.endsWith(".delta") || kinds[index - 1] !== kind);
  }

  /** All text that was said. */
  text() {
    return this.events.filter((it) => it.event === "text.delta").map((it) => it.data.text).join("");
  }
}

export const is = (event) => (it) => it.event === event;
