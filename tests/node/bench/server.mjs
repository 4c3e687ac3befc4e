// The peer that Ward's runtime is measured beside: the same requests, on npm's vscode-jsonrpc,
// written as one would write such a server in Node. It confines nothing.

import { spawn } from "node:child_process";
import { lstat } from "node:fs/promises";
import rpc from "vscode-jsonrpc/node.js";

const connection = rpc.createMessageConnection(
  new rpc.StreamMessageReader(process.stdin),
  new rpc.StreamMessageWriter(process.stdout),
);

const kind = (stat) =>
  stat.isFile() ? "file" : stat.isDirectory() ? "directory" : stat.isSymbolicLink() ? "symlink" : "other";

async function stat({ path }) {
  const found = await lstat(path);
  const entry = { path, kind: kind(found), size: found.size, modified: Math.floor(found.mtimeMs) };
  return { entries: [entry], truncated: false };
}

function run({ argv: [program, ...words] }) {
  return new Promise((resolve, reject) => {
    const started = Date.now();
    const child = spawn(program, words, { stdio: ["ignore", "pipe", "pipe"] });
    const printed = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"]) {
      child[name].setEncoding("utf8").on("data", (text) => (printed[name] += text));
    }
    child.on("error", reject);
    child.on("close", (exit_code, signal) => {
      resolve({
        exit_code,
        signal: signal ?? undefined,
        ...printed,
        duration_ms: Date.now() - started,
        timed_out: false,
        truncated: false,
      });
    });
  });
}

const actions = { "fs.stat": stat, "terminal.run": run };

connection.onRequest("initialize", () => ({ name: "peer" }));
connection.onRequest("runtime/status", () => ({ state: "ready", running: 0, rooms: 0, terminals: 0 }));
connection.onRequest("action/execute", ({ action, params }) => actions[action](params));
connection.onClose(() => process.exit());
connection.listen();
