// An editor for tests, with the real Socket.IO client: it connects, registers, and does what it is told.

import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { io } from "socket.io-client";

export const ALL = ["fs.read", "fs.write", "fs.patch", "terminal.run", "editor.open", "editor.selection", "editor.command"];

/** A connection that has said who it is. */
export async function connect(t, it, { token = it.token, ...options } = {}) {
  const socket = io(it.url, { auth: { token }, reconnection: false, forceNew: true, ...options });
  t.after(() => socket.close());
  const [outcome] = await Promise.race([
    once(socket, "connect").then(() => ["connected"]),
    once(socket, "connect_error"),
  ]);
  if (outcome !== "connected") throw outcome;
  return socket;
}

/** An editor: it does what `act` says and keeps what it was asked. */
export async function editor(t, it, { act = () => ({ ok: true, result: {} }), workspace = it.workspace, capabilities = ALL, runtime_id, former_ids, instance, options, call = it.call } = {}) {
  const socket = await connect(t, it, options);
  const asked = [];
  socket.on("action:execute", async (request, acknowledge) => {
    asked.push(request);
    const answer = await act(request, socket);
    if (answer !== undefined) acknowledge(answer);
  });
  const registered = await call("POST", "/runtimes", {
    socket_id: socket.id, kind: "vscode", workspace_path: workspace, workspace_name: "work",
    version: "1.99.0", extension_version: "0.1.0", capabilities, runtime_id, former_ids, instance,
  });
  assert.equal(registered.status, 201, JSON.stringify(registered.body));
  return { socket, asked, id: registered.body.runtime_id, lease: registered.body.lease_s, ward: registered.body.socket, hasFolder: registered.body.has_folder };
}

/** A request over Ward's own socket; the status is answered. */
export function overSocket(it, socketPath, method, path, token = it.token) {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, method, path, headers: { host: "ward.sock", authorization: `Bearer ${token}` } }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    asked.once("error", reject);
    asked.end();
  });
}

/** `ward` on the command line, in the home of this Ward. */
export function environment(it) {
  const env = { ...process.env, HOME: it.home };
  for (const name of ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "WARD_TOKEN"]) delete env[name];
  return env;
}
