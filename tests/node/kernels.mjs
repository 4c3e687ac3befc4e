// A notebook on a Ward of its own, with runtimes that are processes, and files of notebooks.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, readdir } from "node:fs/promises";
import { serve } from "./served.mjs";

const environment = (at, more = {}) => {
  const env = { ...process.env, HOME: at.home, VIRTUAL_ENV: process.env.WARD_IPYKERNEL, ...more };
  for (const name of ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "WARD_TOKEN"]) delete env[name];
  return { ...env, ...more };
};

/** Ward with these arguments; `done` is its end. `before` is what starts it, where it is not started by itself. */
export function ward(t, at, args, more, before = []) {
  const [program, ...words] = [...before, process.env.WARD_BIN, ...args];
  const child = spawn(program, words, { env: environment(at, more), cwd: at.workspace, stdio: ["ignore", "pipe", "pipe"] });
  const out = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"]) child[stream].setEncoding("utf8").on("data", (text) => (out[stream] += text));
  const done = once(child, "close").then(([code]) => ({ code, ...out }));
  t.after(async () => {
    child.kill("SIGKILL");
    await done;
  });
  return { child, out, done };
}

export const code = (source, more = {}) => ({ cell_type: "code", metadata: {}, source, outputs: [], execution_count: null, ...more });
export const file = (cells, more = {}) => ({ cells, metadata: {}, nbformat: 4, nbformat_minor: 5, ...more });
export const ids = (cells) => cells.map((cell, index) => ({ id: `c${index}`, ...cell }));

/** A notebook on a Ward of its own, and what can be done with it. */
export async function book(t, cells) {
  const at = await serve(t, { more: { VIRTUAL_ENV: process.env.WARD_IPYKERNEL } });
  const made = await at.call("POST", "/notebooks", { title: "n", workspace: at.workspace, ipynb: file(ids(cells)) });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const path = `/notebooks/${made.body.id}`;
  const user = (await at.call("GET", "/healthz")).body.actor.replace("person:", "");
  let runs = 0;
  return {
    ...at,
    path,
    user,
    agent: (kernel, more = []) => ward(t, at, ["notebook", "agent", "--notebook", made.body.id, "--client-id", user, "--kernel", kernel, "--url", at.url, ...more]),
    ready: (fits = () => true) => at.until(path, ({ state }) => state.sessions.some((one) => one.state === "ready" && fits(one))),
    want: async (cell, event = { kind: "execution.requested", execution_id: `e${++runs}`, cell_id: cell }) => {
      const taken = await at.call("POST", `${path}/events`, { events: [event] });
      assert.equal(taken.status, 200, JSON.stringify(taken.body));
      return event.execution_id;
    },
    over: async (id) => {
      const ended = ["completed", "failed", "cancelled"];
      const { state } = await at.until(path, ({ state }) => state.executions.some((run) => run.execution_id === id && ended.includes(run.state)));
      const run = state.executions.find((one) => one.execution_id === id);
      return { run, cell: state.cells[run.cell_id] };
    },
  };
}

/** The kernels whose sockets are below this home folder. */
export async function spawnedBy(home) {
  const processes = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(processes.map((id) => readFile(`/proc/${id}/cmdline`, "utf8").catch(() => "")));
  return lines.map((line) => line.replaceAll("\0", " ")).filter((line) => line.includes("ipykernel_launcher") && line.includes(home));
}
