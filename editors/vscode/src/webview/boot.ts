// Runs before the page in the webview, and gives it what a browser would: requests (which the extension
// makes), the theme, an address and drafts that survive, links that lead where they say.

import type { FromPage, ToPage } from "./messages";

/** What outlives the page: the editor lets go of it where another view is shown. */
interface Kept {
  hash?: string;
  drafts?: Record<string, string>;
}

declare function acquireVsCodeApi(): {
  postMessage(message: FromPage): void;
  getState(): Kept | undefined;
  setState(state: Kept): void;
};

const editor = acquireVsCodeApi();

interface Waiting {
  answer: (response: Response) => void;
  refuse: (error: Error) => void;
  body?: ReadableStreamDefaultController<Uint8Array>;
}

const waiting = new Map<number, Waiting>();
const encoder = new TextEncoder();
let next = 0;

/** Asks Ward through the extension. There is no other way out of here. */
function ask(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  const id = next++;
  return new Promise<Response>((answer, refuse) => {
    const stop = () => {
      editor.postMessage({ kind: "stop", id });
      const one = waiting.get(id);
      waiting.delete(id);
      const error = new DOMException("It was stopped.", "AbortError");
      refuse(error);
      one?.body?.error(error);
    };
    if (init.signal?.aborted) return refuse(new DOMException("It was stopped.", "AbortError"));
    init.signal?.addEventListener("abort", stop, { once: true });
    waiting.set(id, { answer, refuse });
    const headers = Object.fromEntries(new Headers(init.headers));
    editor.postMessage({ kind: "ask", id, path: String(input), method: init.method ?? "GET", headers, ...(typeof init.body === "string" && { body: init.body }) });
  });
}

function hear(told: ToPage): void {
  if (told.kind === "go") {
    location.hash = told.hash;
    return;
  }
  if (told.kind === "add") {
    void add(told.text);
    return;
  }
  const one = waiting.get(told.id);
  if (!one) return;
  switch (told.kind) {
    case "answered": {
      const empty = [204, 205, 304].includes(told.status);
      const body = empty ? null : new ReadableStream<Uint8Array>({
        start: (controller) => {
          one.body = controller;
        },
        cancel: () => {
          waiting.delete(told.id);
          editor.postMessage({ kind: "stop", id: told.id });
        },
      });
      one.answer(new Response(body, { status: told.status, headers: told.headers }));
      return;
    }
    case "piece":
      one.body?.enqueue(encoder.encode(told.data));
      return;
    case "ended":
      waiting.delete(told.id);
      one.body?.close();
      return;
    case "failed": {
      waiting.delete(told.id);
      const error = new TypeError(told.why);
      one.refuse(error);
      one.body?.error(error);
    }
  }
}

/** Puts words into the message box, as if they were written there. */
async function add(text: string): Promise<void> {
  let box: HTMLTextAreaElement | null = null;
  for (let tries = 0; tries < 100 && !(box = document.querySelector("textarea")); tries++) await new Promise((resolve) => setTimeout(resolve, 100));
  if (!box) return;
  const value = box.value === "" ? text : `${box.value.trimEnd()}\n${text}`;
  Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value")?.set?.call(box, value);
  box.dispatchEvent(new Event("input", { bubbles: true }));
  box.focus();
}

/** The editor's theme is the page's: what it asks the browser for, the editor answers. */
function themed(): void {
  const isDark = () => !document.body.classList.contains("vscode-light") && !document.body.classList.contains("vscode-high-contrast-light");
  const usual = window.matchMedia.bind(window);
  const query = "(prefers-color-scheme: dark)";
  const answer = Object.assign(new EventTarget(), { media: query, onchange: null, addListener() {}, removeListener() {} });
  Object.defineProperty(answer, "matches", { get: isDark });
  window.matchMedia = (asked) => (asked === query ? (answer as unknown as MediaQueryList) : usual(asked));
  new MutationObserver(() => answer.dispatchEvent(new Event("change"))).observe(document.body, { attributeFilter: ["class"] });
}

addEventListener("message", ({ data }: MessageEvent<ToPage>) => hear(data));
document.getElementById("connect")?.addEventListener("click", () => editor.postMessage({ kind: "connect" }));

if (document.getElementById("root")) {
  window.fetch = ask;
  themed();
  const { hash: start, drafts } = editor.getState() ?? {};
  const keep = (more: Kept) => editor.setState({ ...editor.getState(), ...more });
  Object.assign(window, { wardHost: { base: "", token: "", ...(start !== undefined && { start }), ...(drafts && { drafts }), keep: (drafts: Record<string, string>) => keep({ drafts }) } });
  addEventListener("hashchange", () => keep({ hash: location.hash }));
  // The webview keeps links from changing the address.
  document.addEventListener("click", (event) => {
    const link = (event.target as Element | null)?.closest?.("a");
    const href = link?.getAttribute("href");
    if (!href) return;
    if (href.startsWith("#/")) {
      event.preventDefault();
      location.hash = href;
    }
  });
  // Files that are dragged here are named in the message. The editor lets them through with Shift.
  addEventListener("dragover", (event) => {
    if (event.dataTransfer?.types.includes("text/uri-list")) event.preventDefault();
  });
  addEventListener("drop", (event) => {
    const uris = (event.dataTransfer?.getData("text/uri-list") ?? "").split(/\r?\n/).filter((uri) => uri !== "" && !uri.startsWith("#"));
    if (uris.length === 0) return;
    event.preventDefault();
    editor.postMessage({ kind: "dropped", uris });
  });
  editor.postMessage({ kind: "ready" });
}
