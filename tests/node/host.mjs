// What the hosts in these tests share: a Ward of their own, and a client with npm's vscode-jsonrpc.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import rpc from "vscode-jsonrpc/node.js";

const ward = process.env.WARD_BIN;
assert.ok(ward, "WARD_BIN is not set: `cargo xtask test` sets it, or point it at a built ward");

/** How long one test may take. */
export const limit = { timeout: 60_000 };

/** A home folder with a workspace in it, gone after the test. */
export async function place(t) {
  const home = await realpath(await mkdtemp(join(tmpdir(), "ward-node-")));
  const workspace = join(home, "work");
  await mkdir(workspace);
  // What runs there ends before it is taken away.
  const ending = [];
  t.after(async () => {
    await Promise.all(ending.map((end) => end()));
    // The runtime of a Ward that was killed tidies up after itself in the same moment.
    await rm(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 });
  });
  return { home, workspace, ending };
}

/** Ward with these arguments, in a place of its own; ended after the test. */
export async function start(t, args, at, more = {}) {
  const { home, workspace, ending, program = ward, stderr = "inherit" } = at ?? (await place(t));
  const env = { ...process.env, HOME: home, WARD_LOG: "warn" };
  for (const name of ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "WARD_TOKEN"]) delete env[name];
  Object.assign(env, more);
  const child = spawn(program, [...args, "--workspace", workspace], { env, stdio: ["pipe", "pipe", stderr] });
  const exited = once(child, "exit");
  ending.push(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  return { child, exited, home, workspace, ending };
}

/** A client that has the usual things to hand. */
export function converse(input, output) {
  const connection = rpc.createMessageConnection(
    new rpc.StreamMessageReader(input),
    new rpc.StreamMessageWriter(output),
  );
  const told = [];
  const waiting = new Set();
  const keep = (method) => (params) => {
    told.push({ method, ...params });
    for (const look of waiting) look();
  };
  for (const method of ["action/output", "terminal/exited", "runtime/status", "permission/requested", "permission/resolved"]) {
    connection.onNotification(method, keep(method));
  }
  connection.listen();
  let next = 0;
  return {
    connection,
    told,
    execute: (action, params, { id = `action-${next++}`, cancel, ...more } = {}) =>
      connection.sendRequest("action/execute", { id, action, params, ...more }, cancel ?? rpc.CancellationToken.None),
    /** Waits until something that was told fits. */
    until: (fits) =>
      new Promise((resolve) => {
        const look = () => {
          const found = told.find(fits);
          if (found === undefined) return;
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
      }),
    /** All that was printed under an id, after looking that no number is missing. */
    printed: (id, stream) => {
      const pieces = told.filter((it) => it.method === "action/output" && it.id === id);
      assert.deepEqual(pieces.map((it) => it.seq), pieces.map((_, index) => index));
      return pieces
        .filter((it) => it.stream === stream)
        .map((it) => (it.encoding === "base64" ? Buffer.from(it.data, "base64").toString("latin1") : it.data))
        .join("");
    },
  };
}
