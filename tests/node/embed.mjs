// A host that embeds `ward gate`, with what these tests need of it.

import assert from "node:assert/strict";
import { converse, start } from "./host.mjs";

/** A host that has said hello. */
export async function embed(t, at, env) {
  const gate = await start(t, ["gate", "--stdio"], at, env);
  const it = { ...gate, ...converse(gate.child.stdout, gate.child.stdin) };
  it.about = await it.connection.sendRequest("initialize", { client: { name: "test" } });
  it.answer = (asked, decision, more = {}) =>
    it.connection.sendRequest("permission/respond", { id: asked.id, digest: asked.digest, decision, ...more });
  return it;
}

/** A question to a person. */
export const requested = (it) => it.method === "permission/requested";

/** Looks at the data of an error. */
export const refused = (fields) => (error) => {
  assert.ok(error.data, String(error));
  for (const [name, value] of Object.entries(fields)) assert.deepEqual(error.data[name], value, name);
  return true;
};
