// The words of a notebook, as Ward's own document has them.

import type { components } from "./schema.js";

type Schemas = components["schemas"];

export type Cell = Schemas["Cell"];
export type CellType = Schemas["CellType"];
export type Output = Schemas["Output"];
export type Bundle = Schemas["Bundle"];
export type Media = Schemas["Media"];
export type ArtifactRef = Schemas["ArtifactRef"];
export type Execution = Schemas["Execution"];
export type RuntimeSession = Schemas["RuntimeSession"];
export type Splice = Schemas["Splice"];

/** A message over a line between a kernel and whoever shows its widgets. Bytes are base64. */
export type Comm = Pick<Schemas["Comm"], "type" | "comm_id"> & Partial<Schemas["Comm"]>;

/** What a kernel said over such a line; it is told once and kept nowhere. */
export type CommSaid = Comm & { session_id: string };

/** An event of a kind; only what is named has to be said. */
type Said<Kind extends string, Event, Needed extends keyof Event> = { kind: Kind } & Pick<Event, Needed> & Partial<Omit<Event, Needed>>;

/** What a person may write: edits, and wishes that something runs or stops. */
export type NotebookEvent =
  | Said<"notebook.titled", Schemas["NotebookTitled"], "title">
  | Said<"notebook.metadata", Schemas["NotebookMetadata"], "set">
  | Said<"notebook.runtimes", Schemas["RuntimesChanged"], "runtimes">
  | Said<"cell.created", Schemas["CellCreated"], "cell_id" | "cell_type" | "place">
  | Said<"cell.source", Schemas["CellSource"], "cell_id">
  | Said<"cell.type", Schemas["CellTyped"], "cell_id" | "cell_type">
  | Said<"cell.moved", Schemas["CellMoved"], "cell_id" | "place">
  | Said<"cell.deleted", Schemas["CellDeleted"], "cell_id">
  | Said<"cell.visibility", Schemas["CellVisibility"], "cell_id">
  | Said<"cell.metadata", Schemas["CellMetadata"], "cell_id" | "set">
  | Said<"execution.requested", Schemas["ExecutionRequested"], "execution_id" | "cell_id">
  | Said<"execution.cancel", Schemas["ExecutionCancel"], "execution_id">;

/** What a runtime can do. What is left out it cannot. */
export type Capabilities = Partial<Schemas["Capabilities"]>;

/** How the connection to Ward is. */
export type Line = "connecting" | "open" | "lost" | "resting" | "signed_out" | "gone";

/** A notebook as it is seen here, with what is only here so far. The same object until something changes. */
export interface Snapshot {
  readonly title: string;
  readonly cells: readonly Cell[];
  readonly sessions: readonly RuntimeSession[];
  readonly executions: readonly Execution[];
  /** How many events Ward has not confirmed. */
  readonly pending: number;
  /** Up to which event Ward has confirmed. */
  readonly seq: number;
  readonly line: Line;
  /** Why the line is as it is, where there is more to say. */
  readonly trouble?: string;
  /** Whether edits outlive the page. */
  readonly kept: boolean;
}

/** What Ward refused for good, and why. It is not in the notebook any more. */
export interface Refusal {
  event: NotebookEvent;
  why: string;
}

export type LogLevel = "debug" | "info" | "warn" | "error";
export type LogSink = (level: LogLevel, words: string) => void;

/** An error with a stable word. */
export class RuntimeError extends Error {
  constructor(
    sentence: string,
    readonly kind: string,
  ) {
    super(sentence);
  }
}
