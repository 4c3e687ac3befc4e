// What came of an action, as far as the page shows it. Results are the actions' own; what is not
// as expected is simply not shown.

import type { Call } from "./conversation";

interface Stopped {
  access: string;
  target: string;
}

export interface Result {
  exit?: number;
  signal?: string;
  timedOut?: boolean;
  stdout?: string;
  stderr?: string;
  truncated?: boolean;
  tier?: string;
  stopped: Stopped[];
  setAside: { id: string; path: string; reason: string }[];
  scratch: string[];
  limit?: string;
  diff?: string;
  created?: boolean;
  changed?: boolean;
  /** What a patch did to each file. */
  files?: { path: string; change: string }[];
  content?: string;
  entries?: { path: string; kind: string; size?: number; modified?: number }[];
  matches?: { path: string; line: number; text: string }[];
  terminal?: string;
  /** Whether it could be read at all. */
  known: boolean;
}

type Json = Record<string, unknown>;

const text = (value: unknown) => (typeof value === "string" ? value : undefined);
const number = (value: unknown) => (typeof value === "number" ? value : undefined);
const list = (value: unknown): Json[] => (Array.isArray(value) ? value.filter((item) => typeof item === "object" && item !== null) : []);

export function readResult(value: unknown): Result {
  const result: Result = { stopped: [], setAside: [], scratch: [], known: false };
  if (typeof value !== "object" || value === null) return result;
  const json = value as Json;
  const sandbox = (typeof json.sandbox === "object" && json.sandbox !== null ? json.sandbox : {}) as Json;
  return {
    known: true,
    exit: number(json.exit_code),
    signal: text(json.signal),
    timedOut: json.timed_out === true,
    stdout: json.stdout_encoding === "base64" ? undefined : text(json.stdout),
    stderr: json.stderr_encoding === "base64" ? undefined : text(json.stderr),
    truncated: json.truncated === true,
    tier: text(sandbox.tier),
    stopped: list(sandbox.stopped).map((stop) => ({ access: text(stop.access) ?? "", target: text(stop.target) ?? "" })),
    setAside: list(sandbox.set_aside).map((aside) => ({ id: text(aside.id) ?? "", path: text(aside.path) ?? "", reason: text(aside.reason) ?? "" })),
    scratch: (Array.isArray(sandbox.scratch) ? sandbox.scratch : []).filter((path) => typeof path === "string"),
    limit: text(sandbox.limit),
    diff: text(json.diff),
    created: typeof json.created === "boolean" ? json.created : undefined,
    changed: typeof json.changed === "boolean" ? json.changed : undefined,
    files: Array.isArray(json.files) ? list(json.files).map((file) => ({ path: text(file.path) ?? "?", change: text(file.change) ?? "" })) : undefined,
    content: json.encoding === "base64" ? undefined : text(json.content),
    entries: Array.isArray(json.entries) ? list(json.entries).map((entry) => ({ path: text(entry.path) ?? "?", kind: text(entry.kind) ?? "", size: number(entry.size), modified: number(entry.modified) })) : undefined,
    matches: Array.isArray(json.matches) ? list(json.matches).map((match) => ({ path: text(match.path) ?? "?", line: number(match.line) ?? 0, text: text(match.text) ?? "" })) : undefined,
    terminal: text(json.terminal_id),
  };
}

const read = new WeakMap<object, Result>();

export function resultOf(call: Call): Result {
  const { output } = call;
  if (!output) return readResult(undefined);
  let result = read.get(output);
  if (!result) {
    let value: unknown;
    try {
      value = JSON.parse(output.output);
    } catch {
      // A sentence, or cut.
    }
    result = readResult(value);
    read.set(output, result);
  }
  return result;
}

/** An argument of a call, where it is text. */
export function argument(call: Call, name: string): string | undefined {
  const values = call.called.arguments;
  return typeof values === "object" && values !== null ? text((values as Json)[name]) : undefined;
}

export function argumentList(call: Call, name: string): unknown[] {
  const values = call.called.arguments;
  const value = typeof values === "object" && values !== null ? (values as Json)[name] : undefined;
  return Array.isArray(value) ? value : [];
}

export function numberOf(call: Call, name: string): number | undefined {
  const values = call.called.arguments;
  return typeof values === "object" && values !== null ? number((values as Json)[name]) : undefined;
}
