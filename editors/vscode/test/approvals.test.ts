// Which questions this window shows, and what they offer.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Approvals } from "../src/approvals";
import type { Connection } from "../src/connection";
import type { Ward } from "../src/ward";
import { moment } from "./scene";
import { bench, EventEmitter, log } from "./vscode";

const asked = { id: "q", digest: "d", action_id: "a", action: "terminal.run", role: "dev", workspace: "/work", facts: { command: { line: "ls", argv: ["sh", "-c", "ls"] } }, subject: { about: "action" }, rule: { reason: "", text: "" }, questions: [], params: { command: "ls" } };

async function told(approval: object, sessions: Record<string, object> = {}) {
  bench.reset("/work");
  bench.settings["ward.notifications"] = true;
  const changed = new EventEmitter<unknown>();
  const ward = {
    events: async function* (_: string, signal: AbortSignal) {
      yield { event: "permission.requested", data: { ...asked, ...approval } };
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    },
    call: async (_: string, path: string) => {
      const found = sessions[path];
      if (!found) throw new Error("There is no such session.");
      return found;
    },
  } as unknown as Ward;
  const connection = { onDidChange: changed.event, ward, shows: (workspace: string) => workspace === "/work", runtimes: [{ runtimeId: "mine" }] } as unknown as Connection;
  const approvals = new Approvals(connection, () => false, log as never);
  changed.fire(undefined);
  await moment(20);
  approvals.dispose();
  return bench.notices.map(({ text, answers }) => [text, answers]);
}

test("a question about this window's folder, or in a conversation that acts in it, is shown; others' are not", async () => {
  const shown = [["dev wants to run ls", ["Allow once", "Always here", "Deny", "Show"]]];
  const sessions = { "/sessions/s": { runtime: "mine" }, "/sessions/o": { runtime: "other" }, "/sessions/l": {} };
  const here = { facts: { command: { ...asked.facts.command, cwd: "/work" } } };
  assert.deepEqual(await told(here), shown);
  // As a Ward on another machine calls it.
  const elsewhere = { workspace: "/theirs", facts: { command: { ...asked.facts.command, cwd: "/theirs" } } };
  assert.deepEqual((await told({ ...elsewhere, session_id: "s" }, sessions)).length, 1);
  for (const session_id of ["o", "l", "gone", undefined]) assert.deepEqual(await told({ ...elsewhere, ...(session_id && { session_id }) }, sessions), [], session_id);
});

test("what cannot be told is asked all the same, and only refused there", async () => {
  const [notice] = await told({ action: "editor.command", params: { command: { toString: 1 } } });
  assert.deepEqual(notice, ["dev wants to run the editor's command …, which cannot be told whole here", ["Deny", "Show"]]);
});
