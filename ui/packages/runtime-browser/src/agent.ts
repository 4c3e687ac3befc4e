// The runtime agent on the page's own replica.

import type { Agent as WasmAgent, Context as WasmContext } from "../wasm/runtime_browser.js";
import { type Release, claim } from "./locks.js";
import { type RuntimeAgentOptions, named } from "./options.js";
import type { NotebookStore } from "./store.js";
import type { Bundle, Capabilities, CellType, LogSink } from "./types.js";
import { type Glue, there } from "./wasm.js";

/** For how many seconds a session waits for its page to come back: a reload goes on with it. */
const GRACE = 5;
/** How long a page that is just being loaded again may take to let go of its session. */
const PATIENCE = 2000;

/** A cell, as it was when somebody wanted it to run. */
export interface Job {
  execution_id: string;
  cell_id: string;
  cell_type: CellType;
  source: string;
  requested_by?: string | null;
}

/** What a handler has: the cell, and words for what happens in it. */
export interface ExecutionContext {
  readonly cell: Job;
  /** Aborted when somebody wants it to stop. */
  readonly signal: AbortSignal;
  stdout(text: string): void;
  stderr(text: string): void;
  /** Shows something; under an id it can become another thing later. */
  display(bundle: Bundle, id?: string): void;
  updateDisplay(id: string, bundle: Bundle): void;
  /** Says the value of the cell. */
  result(bundle: Bundle): void;
  error(name: string, value: string, traceback?: string[]): void;
  markdown(text: string): void;
  /** Takes away what the cell shows: now, or once it shows the next thing. */
  clear(wait?: boolean): void;
}

export type Finished = { success: true } | { success: false; error?: string } | { cancelled: true };

/** What runs a cell. What it throws is the cell's failure. */
export type Handler = (context: ExecutionContext) => Finished | Promise<Finished>;

/** How an agent ended: `displaced` by a newer runtime, say. */
export interface Ending {
  ending: "shutdown" | "displaced" | "terminated" | "lost" | "refused";
  message: string;
}

/** An agent on the page's store. Refuses a client id that is not who authenticated there. */
export function createBrowserRuntimeAgent(store: NotebookStore, capabilities: Capabilities, options: Partial<RuntimeAgentOptions> = {}): BrowserRuntimeAgent {
  return new BrowserRuntimeAgent(there(), store, capabilities, {
    runtimeId: named("runtimeId", options),
    runtimeType: named("runtimeType", options),
    clientId: options.clientId ?? store.user,
    sessionId: options.sessionId,
  });
}

/** A notebook's agent in a page: given a handler, and started. */
export class BrowserRuntimeAgent {
  private agent: WasmAgent;
  private handler: Handler | "echo" | undefined;
  private sink: LogSink | undefined;
  private begun = false;

  /** @internal */
  constructor(
    private readonly glue: Glue,
    readonly store: NotebookStore,
    private readonly capabilities: Capabilities,
    readonly options: RuntimeAgentOptions,
  ) {
    // What cannot be is refused here, not when it starts.
    this.agent = this.make(options.sessionId);
  }

  /** Its session, once it has one. */
  get session(): string | undefined {
    return this.agent.session;
  }

  /** Says what runs a cell. */
  onExecution(handler: Handler): void {
    this.handler = handler;
  }

  /** Lets it answer `Echo: <source>`, as it does on every platform. */
  onExecutionEcho(): void {
    this.handler = "echo";
  }

  /** Says where the agent's own words go. What cells print never goes there. */
  logTo(sink: LogSink): void {
    this.sink = sink;
  }

  /** Announces the agent and runs what is assigned to it, to its end. */
  async start(): Promise<Ending> {
    if (this.begun) throw new Error("The agent was started already. Make another one.");
    this.begun = true;
    const kept = this.options.sessionId === undefined ? remembered(this.key) : undefined;
    // A tab that is a copy of another has what the other remembers, and not its session.
    const claimed = kept && (await claim(`ward:session:${kept.session}`, PATIENCE));
    if (kept && claimed) {
      this.store.replica.setToken(kept.session, kept.token);
      const ending = await this.drive(kept.session, claimed);
      // It was over: another one begins.
      if (ending.ending !== "refused" || this.stopped) return ending;
    }
    return this.drive(this.options.sessionId);
  }

  /** Ends it: what runs is cut off, and its session is over. */
  shutdown(): void {
    this.stopped = true;
    this.agent.shutdown();
  }

  private stopped = false;

  private get key(): string {
    return `ward.session.${this.store.notebook}.${this.options.runtimeType}.${this.options.runtimeId}`;
  }

  private make(session: string | undefined): WasmAgent {
    const { runtimeId, runtimeType, clientId } = this.options;
    const options = { runtime_id: runtimeId, runtime_type: runtimeType, client_id: clientId, session_id: session ?? null };
    return new this.glue.Agent(this.store.replica, JSON.stringify(this.capabilities), JSON.stringify(options));
  }

  private async drive(session: string | undefined, claimed?: Release): Promise<Ending> {
    this.agent = this.make(session);
    const { agent, handler } = this;
    if (handler === "echo") agent.onExecutionEcho();
    else if (handler) agent.onExecution((context: WasmContext) => handler(wrap(context)));
    if (this.sink) agent.logTo(this.sink);
    if (this.stopped) agent.shutdown();
    let held = claimed;
    this.store.sessionGiven = (given, token) => {
      remember(this.key, given, token);
      if (!held) void claim(`ward:session:${given}`).then((release) => (held = release));
    };
    const leave = () => agent.session !== undefined && this.store.leave(agent.session, GRACE);
    addEventListener("pagehide", leave);
    addEventListener("beforeunload", leave);
    const let_go = this.store.hold(() => this.shutdown());
    try {
      const ending = JSON.parse(await agent.start()) as Ending;
      sessionStorage.removeItem(this.key);
      return ending;
    } finally {
      this.store.sessionGiven = undefined;
      removeEventListener("pagehide", leave);
      removeEventListener("beforeunload", leave);
      let_go();
      held?.();
    }
  }
}

function wrap(context: WasmContext): ExecutionContext {
  const stop = new AbortController();
  void context.cancelled().then(() => stop.abort());
  return {
    cell: JSON.parse(context.cell) as Job,
    signal: stop.signal,
    stdout: (text) => context.stdout(text),
    stderr: (text) => context.stderr(text),
    display: (bundle, id) => context.display(JSON.stringify(bundle), id),
    updateDisplay: (id, bundle) => context.updateDisplay(id, JSON.stringify(bundle)),
    result: (bundle) => context.result(JSON.stringify(bundle)),
    error: (name, value, traceback = []) => context.error(name, value, JSON.stringify(traceback)),
    markdown: (text) => context.markdown(text),
    clear: (wait = false) => context.clear(wait),
  };
}

// The session of this tab outlives a reload and nothing else: it is in no other tab and not on the disk.

interface Kept {
  session: string;
  token: string;
}

function remember(key: string, session: string, token: string): void {
  try {
    sessionStorage.setItem(key, JSON.stringify({ session, token } satisfies Kept));
  } catch {
    // A browser that keeps nothing: a reload begins another session.
  }
}

function remembered(key: string): Kept | undefined {
  try {
    const kept = JSON.parse(sessionStorage.getItem(key) ?? "null");
    return typeof kept?.session === "string" && typeof kept.token === "string" ? kept : undefined;
  } catch {
    return undefined;
  }
}

/** Whether this tab had a session here that a reload cut off: it can be gone on with. */
export function wasRunning(notebook: string, options: Partial<RuntimeAgentOptions> = {}): boolean {
  return remembered(`ward.session.${notebook}.${named("runtimeType", options)}.${named("runtimeId", options)}`) !== undefined;
}
