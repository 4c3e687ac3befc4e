// Where the actions of the next session run. It is kept for as long as the page is open and not
// longer: editors come and go.

import type { PostSession, RuntimeChoice, RuntimeInfo, RuntimeNeed } from "../api/schema";
import { Store } from "./store";

/** What was chosen; nothing is where the host of this page is: this machine, or an editor's window. */
export type Wanted = { runtime: RuntimeChoice; workspace?: string } | undefined;

export const wanted = new Store<Wanted>(undefined);

/** As the body of a new session has it. */
export function asked(choice: Wanted): Pick<PostSession, "runtime" | "workspace"> {
  return choice ? { runtime: choice.runtime, ...(choice.workspace && { workspace: choice.workspace }) } : {};
}

/** The runtime of a choice, such as it is connected now. */
export type Found = { at: "here" } | { at: "ready"; runtime: RuntimeInfo } | { at: "away"; runtime: RuntimeInfo } | { at: "none" } | { at: "several"; count: number };

/** As Ward would find it: exactly one that is there, or why not. */
export function find(choice: RuntimeChoice, runtimes: RuntimeInfo[], workspace: string | undefined): Found {
  if (choice === "local") return { at: "here" };
  const editors = runtimes.filter((runtime) => runtime.kind !== "local");
  const fitting = editors.filter((runtime) => (typeof choice === "string" ? runtime.runtime_id === choice : fits(choice, runtime, workspace)));
  const ready = fitting.filter(({ state }) => state === "ready" || state === "busy");
  const [one] = ready;
  if (one && ready.length === 1) return { at: "ready", runtime: one };
  if (ready.length > 1) return { at: "several", count: ready.length };
  const [away] = fitting;
  return away ? { at: "away", runtime: away } : { at: "none" };
}

function fits(need: RuntimeNeed, runtime: RuntimeInfo, workspace: string | undefined): boolean {
  return (!need.kind || need.kind === runtime.kind) && (!need.capability || (runtime.capabilities ?? []).includes(need.capability)) && runtime.workspace === (need.workspace ?? workspace);
}
