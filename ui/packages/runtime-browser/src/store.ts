// The page's own replica of a notebook, which its runtime agents share.

import type { Replica } from "../wasm/runtime_browser.js";
import { type Ask, newName, sameOrigin, sentence } from "./ask.js";
import { type Place, places } from "./disk.js";
import { reader } from "./sse.js";
import { type Cell, type CellType, type Comm, type CommSaid, type Line, type NotebookEvent, type Refusal, RuntimeError, type Snapshot, type Splice } from "./types.js";
import { type Glue, type WasmSource, load } from "./wasm.js";

const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 5000;
/** Ward shows every 15 s that it is there. */
const SILENCE = 40_000;
/** Why an attempt ended that was given up while it seemed to go on. */
const DROPPED = new Error("Nothing arrives.");

export interface OpenOptions {
  /** Its id. */
  notebook: string;
  /** How to ask Ward; as a page that came from it, where nobody says. */
  ask?: Ask;
  /** Where the compiled part is; beside this package, where nobody says. */
  wasm?: WasmSource;
  /** Keeps nothing that outlives the page. */
  inMemory?: boolean;
}

/** Opens the replica of a notebook that this browser keeps, or begins one. */
export async function openNotebook({ notebook, ask = sameOrigin, wasm, inMemory = false }: OpenOptions): Promise<NotebookStore> {
  const [glue, user] = await Promise.all([load(wasm), whoAmI(ask)]);
  const found = inMemory ? undefined : await places(user, notebook);
  const store = await NotebookStore.on(glue, ask, user, notebook, found?.own ?? memory());
  // What other pages leave behind goes to Ward in their names, with a replica of each.
  found?.left((place) => void rescue(glue, ask, user, notebook, place), store.end.signal);
  return store;
}

const memory = (): Place => ({ writer: newName(), keep: async () => {}, forget: async () => {}, release: () => {}, lasts: false });

async function rescue(glue: Glue, ask: Ask, user: string, notebook: string, place: Place): Promise<void> {
  const store = await NotebookStore.on(glue, ask, user, notebook, { ...place, release: () => void place.forget().then(place.release) });
  await store.settled();
  await store.close();
}

/** Who authenticated, by Ward's word. */
async function whoAmI(ask: Ask): Promise<string> {
  const response = await ask("/healthz");
  if (!response.ok) throw new RuntimeError(await sentence(response), "internal");
  const { actor } = await response.json();
  const person = typeof actor === "string" ? /^person:(.+)$/.exec(actor)?.[1] : undefined;
  if (person === undefined) throw new RuntimeError("This page is not signed in as a person.", "unauthorized");
  return person;
}

/** A notebook's replica in a page. It is written at once, also offline; what is pending is pushed and rebased by itself. */
export class NotebookStore {
  private line: Line = "connecting";
  private trouble: string | undefined;
  private listeners = new Set<() => void>();
  private refusals = new Set<(refused: Refusal[]) => void>();
  private hearers = new Set<(said: CommSaid | undefined) => void>();
  private seen: Snapshot | undefined;
  private drawn = new Map<string, Cell>();
  private holders = new Set<() => void>();
  private attempt: AbortController | undefined;
  /** @internal Aborted when it is closed. */
  readonly end = new AbortController();
  private told = false;

  /** @internal */
  private constructor(
    /** @internal */
    readonly replica: Replica,
    private readonly ask: Ask,
    readonly notebook: string,
    private readonly place: Place,
  ) {}

  /** @internal */
  static async on(glue: Glue, ask: Ask, user: string, notebook: string, place: Place): Promise<NotebookStore> {
    let store: NotebookStore | undefined;
    const wire = {
      async call(method: string, path: string, runtime: string | undefined, contentType: string | undefined, body: Uint8Array | undefined) {
        const headers: Record<string, string> = {};
        if (runtime !== undefined) headers["x-ward-runtime"] = runtime;
        if (contentType !== undefined) headers["content-type"] = contentType;
        try {
          const response = await ask(path, { method, headers, body: body as BodyInit | undefined });
          return { status: response.status, body: new Uint8Array(await response.arrayBuffer()) };
        } catch (error) {
          // What is told still comes, perhaps, but nothing arrives: that is no connection.
          store?.drop();
          throw error;
        }
      },
      sleep: (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms)),
      keep: async (base: string | undefined, live: string) => {
        try {
          await place.keep(base, live);
        } catch (error) {
          // A full disk, say: what is written goes to Ward all the same.
          place.lasts = false;
          throw error;
        }
      },
      changed: () => store?.stir(),
      token: (session: string, token: string) => store?.sessionGiven?.(session, token),
    };
    let replica: Replica | undefined;
    if (place.record) {
      try {
        replica = glue.Replica.restored(wire, notebook, user, place.writer, place.record.base, place.record.live);
      } catch {
        // An older Ward kept it, or the disk lost a part: what is confirmed is had from Ward.
      }
    }
    replica ??= glue.Replica.opened(wire, notebook, user, place.writer, await opened(ask, notebook));
    store = new NotebookStore(replica, ask, notebook, place);
    void replica.drive();
    void replica.keepUp();
    void store.follow();
    document.addEventListener("visibilitychange", store.turn);
    addEventListener("pagehide", store.hide);
    addEventListener("offline", store.drop);
    return store;
  }

  /** Who authenticated: the client id of every runtime on this store. */
  get user(): string {
    return this.replica.user;
  }

  /** @internal Told when a runtime session on this store has another token. */
  sessionGiven: ((session: string, token: string) => void) | undefined;

  /** The notebook as it is. The same object until something changes. */
  snapshot = (): Snapshot => {
    if (this.seen) return this.seen;
    const view = JSON.parse(this.replica.view());
    const before = this.drawn;
    this.drawn = new Map();
    const cells = this.replica.cells().map((text) => {
      // What did not change is the same object as before.
      const cell = before.get(text) ?? (JSON.parse(text) as Cell);
      this.drawn.set(text, cell);
      return cell;
    });
    this.seen = {
      title: view.title,
      cells,
      sessions: view.sessions,
      executions: view.executions,
      pending: view.pending,
      seq: view.seq,
      line: this.line,
      trouble: this.trouble,
      kept: this.place.lasts,
    };
    return this.seen;
  };

  /** Calls back when something changed, until the answer is called. */
  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** Calls back with what Ward refused for good. */
  onRefused(listener: (refused: Refusal[]) => void): () => void {
    this.refusals.add(listener);
    return () => this.refusals.delete(listener);
  }

  /** Calls back with what kernels say to widgets; with nothing where some of it was lost. */
  onComm(listener: (said: CommSaid | undefined) => void): () => void {
    this.hearers.add(listener);
    return () => this.hearers.delete(listener);
  }

  /** Says something to a widget's other half in the kernel; the gate decides, as it does on a run. Answers when the runtime has it, or a person is asked. */
  async sendComm(comm: Comm): Promise<void> {
    const { notebook } = JSON.parse(await opened(this.ask, this.notebook));
    const params = { notebook_id: this.notebook, comm };
    const response = await this.post("/actions", { action: "cell.execute", params, workspace: notebook.workspace, runtime: `notebook:${this.notebook}` });
    const { outcome } = await response.json();
    if (outcome?.status === "failed") throw new RuntimeError(outcome.error, outcome.kind);
  }

  /** Answers what a run asks. The first answer counts, and it is kept nowhere. */
  async answer(execution: string, value: string): Promise<void> {
    await this.post(`/notebooks/${encodeURIComponent(this.notebook)}/input`, { execution_id: execution, value });
  }

  private async post(path: string, body: unknown): Promise<Response> {
    const response = await this.ask(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    if (!response.ok) throw new RuntimeError(await sentence(response), response.status === 403 ? "denied" : "closed");
    return response;
  }

  /** Writes any event that a person may write. */
  commit(event: NotebookEvent): void {
    this.replica.write(JSON.stringify(event));
  }

  title(title: string): void {
    this.commit({ kind: "notebook.titled", title });
  }

  /** A new cell, behind another or before all; answers its id. */
  createCell({ after, type = "code", source = "" }: { after?: string; type?: CellType; source?: string } = {}): string {
    const cell_id = newName();
    this.commit({ kind: "cell.created", cell_id, cell_type: type, place: this.replica.placeAfter(after), source });
    return cell_id;
  }

  /** What a cell says now; only the piece that differs is written. */
  setSource(cell: string, source: string): void {
    const now = this.cell(cell)?.source;
    if (now === undefined || now === source) return;
    let start = 0;
    const shorter = Math.min(now.length, source.length);
    while (start < shorter && now[start] === source[start]) start++;
    let end = 0;
    while (end < shorter - start && now[now.length - 1 - end] === source[source.length - 1 - end]) end++;
    // Half of a character is none: what is told is whole.
    if (start > 0 && /[\ud800-\udbff]/.test(now[start - 1] ?? "")) start--;
    if (end > 0 && /[\udc00-\udfff]/.test(now[now.length - end] ?? "")) end--;
    this.splice(cell, [{ at: start, delete: now.length - end - start, insert: source.slice(start, source.length - end) }]);
  }

  /** Replaces pieces of what a cell says, one after the other, in UTF-16 units as editors count. */
  splice(cell: string, splices: Splice[]): void {
    if (splices.length > 0) this.commit({ kind: "cell.source", cell_id: cell, splices });
  }

  setType(cell: string, type: CellType): void {
    this.commit({ kind: "cell.type", cell_id: cell, cell_type: type });
  }

  /** Moves a cell behind another, or before all. */
  moveCell(cell: string, after: string | undefined): void {
    this.commit({ kind: "cell.moved", cell_id: cell, place: this.replica.placeAfter(after) });
  }

  /** With its runs: nobody would see them any more. */
  deleteCell(cell: string): void {
    for (const run of this.snapshot().executions) {
      if (run.cell_id === cell && ["requested", "assigned", "running"].includes(run.state)) this.cancel(run.execution_id);
    }
    this.commit({ kind: "cell.deleted", cell_id: cell });
  }

  /** Wants a cell to run; the gate decides. Throws where there is no connection. Answers the id of the run. */
  run(cell: string): string {
    const execution_id = newName();
    this.commit({ kind: "execution.requested", execution_id, cell_id: cell });
    return execution_id;
  }

  /** Wants a run to stop. */
  cancel(execution: string): void {
    this.commit({ kind: "execution.cancel", execution_id: execution });
  }

  cell(id: string): Cell | undefined {
    return this.snapshot().cells.find((cell) => cell.cell_id === id);
  }

  /** Waits until Ward has confirmed all that was written. */
  settled(): Promise<void> {
    return this.until(({ pending, line }) => (pending === 0 && line === "open") || line === "gone");
  }

  /** Waits until the notebook is as wanted. */
  until(wanted: (snapshot: Snapshot) => boolean): Promise<void> {
    if (wanted(this.snapshot())) return Promise.resolve();
    return new Promise((resolve) => {
      const stop = this.subscribe(() => {
        if (!wanted(this.snapshot())) return;
        stop();
        resolve();
      });
    });
  }

  /** @internal Ends a runtime session soon, unless its page comes back: for a page that is going away. */
  leave(session: string, after: number): void {
    const path = `/notebooks/${encodeURIComponent(this.notebook)}/runtimes/${encodeURIComponent(session)}?after=${after}`;
    void this.ask(path, { method: "DELETE", keepalive: true }).catch(() => {});
  }

  /** @internal Keeps the connection, also while nobody looks, for as long as a runtime holds it. `end` is called when it is to let go. */
  hold(end: () => void): () => void {
    this.holders.add(end);
    this.turn();
    return () => {
      this.holders.delete(end);
      this.turn();
      this.stir();
    };
  }

  /** Ends the runtimes on it; then lets go of the connection and of the replica. */
  async close(): Promise<void> {
    for (const end of this.holders) end();
    await this.until(() => this.holders.size === 0);
    this.end.abort();
    this.attempt?.abort();
    document.removeEventListener("visibilitychange", this.turn);
    removeEventListener("pagehide", this.hide);
    removeEventListener("offline", this.drop);
    await this.replica.flush();
    this.replica.close();
    this.place.release();
  }

  /** The connection is given up, and tried anew: what was wished and not confirmed is not sent later. */
  private readonly drop = () => {
    if (this.line === "open") this.attempt?.abort(DROPPED);
  };

  private readonly hide = () => void this.replica.flush();

  /** A tab that nobody looks at follows nothing: how much one person follows at once has a limit. */
  private readonly turn = () => {
    if (this.rests()) {
      if (this.line === "open") this.attempt?.abort();
    } else if (this.line === "resting") this.wake();
  };

  private rests(): boolean {
    return document.hidden && this.holders.size === 0 && this.snapshot().pending === 0;
  }

  private wake: () => void = () => {};

  private say(line: Line, trouble?: string): void {
    this.line = line;
    this.trouble = trouble;
    this.stir();
  }

  /** Tells once for all that changes in one go. */
  private stir(): void {
    this.seen = undefined;
    if (this.told) return;
    this.told = true;
    queueMicrotask(() => {
      this.told = false;
      this.seen = undefined;
      const refused = JSON.parse(this.replica.takeRefused()) as Refusal[];
      if (refused.length > 0) for (const listener of [...this.refusals]) listener(refused);
      for (const listener of [...this.listeners]) listener();
    });
  }

  private pass(kind: string, data: string): void {
    if (kind !== "comm" && kind !== "comm.dropped") return;
    const said = kind === "comm" ? (JSON.parse(data) as CommSaid) : undefined;
    for (const hearer of [...this.hearers]) hearer(said);
  }

  private async follow(): Promise<void> {
    let pause = FIRST_PAUSE;
    while (!this.end.signal.aborted) {
      const wasOpen = await this.once();
      if (this.end.signal.aborted || this.line === "gone") return;
      if (wasOpen) pause = FIRST_PAUSE;
      const rests = this.rests();
      if (rests) this.say("resting");
      await new Promise<void>((resolve) => {
        this.wake = resolve;
        this.end.signal.addEventListener("abort", () => resolve(), { once: true });
        addEventListener("online", () => resolve(), { once: true });
        if (!rests) setTimeout(resolve, pause * (0.75 + Math.random() / 2));
      });
      pause = Math.min(pause * 2, LONGEST_PAUSE);
    }
  }

  /** Follows the notebook until the connection is lost. Whether there was one. */
  private async once(): Promise<boolean> {
    const attempt = new AbortController();
    this.attempt = attempt;
    let silence = setTimeout(() => attempt.abort(), SILENCE);
    let open = false;
    try {
      const path = `/notebooks/${encodeURIComponent(this.notebook)}/events?from=${this.replica.head}`;
      const response = await this.ask(path, { headers: { accept: "text/event-stream" }, signal: attempt.signal });
      if (response.status === 410) {
        this.replica.jump(await opened(this.ask, this.notebook));
        return true;
      }
      if (!response.ok || !response.body) {
        const why = await sentence(response);
        this.say(response.status === 404 ? "gone" : response.status === 401 ? "signed_out" : "lost", why);
        return false;
      }
      open = true;
      this.replica.connected();
      this.say("open");
      const read = reader((kind, data) => this.pass(kind, data));
      const bytes = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await bytes.read();
        if (done) break;
        clearTimeout(silence);
        silence = setTimeout(() => attempt.abort(), SILENCE);
        const events = read(value);
        if (events.length === 0) continue;
        const taken = this.replica.told(`[${events.map(([number, data]) => `[${number},${data}]`).join(",")}]`);
        // A gap, or an event that this page does not know: the state is asked for as a whole.
        if (!taken) this.replica.jump(await opened(this.ask, this.notebook));
      }
    } catch {
      // The connection is gone; below it is said.
    } finally {
      clearTimeout(silence);
      attempt.abort();
      if (open) this.replica.disconnected();
    }
    if (!this.end.signal.aborted && this.line !== "gone") this.say("lost");
    // Where only one way works, it is not tried ever faster.
    return open && attempt.signal.reason !== DROPPED;
  }
}

async function opened(ask: Ask, notebook: string): Promise<string> {
  const response = await ask(`/notebooks/${encodeURIComponent(notebook)}`);
  if (!response.ok) throw new RuntimeError(await sentence(response), response.status === 404 ? "unknown" : "internal");
  return response.text();
}
