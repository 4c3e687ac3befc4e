// The store and its runtime, for React.

import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { type BrowserRuntimeAgent, type Ending, type Handler, createBrowserRuntimeAgent, wasRunning } from "./agent.js";
import type { RuntimeAgentOptions } from "./options.js";
import type { NotebookStore } from "./store.js";
import type { Capabilities, LogSink, Snapshot } from "./types.js";

/** The notebook as it is, drawn anew when it changes. */
export function useNotebook(store: NotebookStore): Snapshot {
  return useSyncExternalStore(store.subscribe, store.snapshot);
}

export interface BrowserRuntimeProps {
  /** What runs a cell; an echo, where nobody says. */
  handler?: Handler;
  /** What it can do; run code, where nobody says. */
  capabilities?: Capabilities;
  options?: Partial<RuntimeAgentOptions>;
  log?: LogSink;
}

export interface BrowserRuntime {
  state: "stopped" | "running";
  /** How it ended last. */
  ending: Ending | undefined;
  start: () => void;
  stop: () => void;
}

/** An echo reaches nothing: it is confined by what it does not do. */
const ECHO: Capabilities = { can_execute_code: true, confined: true };

/** Starts and stops a runtime on the page's store. After a reload it goes on by itself; with the component it ends. */
export function useBrowserRuntime(store: NotebookStore, { handler, capabilities = ECHO, options, log }: BrowserRuntimeProps = {}): BrowserRuntime {
  const running = useRef<BrowserRuntimeAgent>(undefined);
  const [state, setState] = useState<BrowserRuntime["state"]>("stopped");
  const [ending, setEnding] = useState<Ending>();
  const given = useRef({ handler, capabilities, options, log });
  given.current = { handler, capabilities, options, log };

  const start = useCallback(() => {
    if (running.current) return;
    const { handler, capabilities, options, log } = given.current;
    const agent = createBrowserRuntimeAgent(store, capabilities, options);
    if (handler) agent.onExecution(handler);
    else agent.onExecutionEcho();
    if (log) agent.logTo(log);
    running.current = agent;
    setState("running");
    setEnding(undefined);
    const ended = (how: Ending) => {
      if (running.current !== agent) return;
      running.current = undefined;
      setState("stopped");
      setEnding(how);
    };
    agent.start().then(ended, (error: unknown) => ended({ ending: "lost", message: error instanceof Error ? error.message : String(error) }));
  }, [store]);

  const stop = useCallback(() => running.current?.shutdown(), []);

  useEffect(() => {
    if (wasRunning(store.notebook, given.current.options)) start();
    return () => {
      running.current?.shutdown();
      running.current = undefined;
    };
  }, [store, start]);

  return { state, ending, start, stop };
}
