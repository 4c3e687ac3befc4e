// Events committed one at a time, by npm's LiveStore or by SQLite alone. It is asked over its standard
// streams, in lines of JSON-RPC: `commit {count}` is answered with seconds.
//
//     node notebook.mjs livestore|better-sqlite3 FOLDER

import { join } from "node:path";
import { createInterface } from "node:readline";

const CELL = "a";
const source = (number) => `print(${number})`;
const millis = 1000;

/** A notebook's cells in LiveStore, as its own guide has it: tables, events, materializers, a file. */
async function livestore(folder) {
  const { makeAdapter } = await import("@livestore/adapter-node");
  const { createStorePromise, Events, makeSchema, Schema, State } = await import("@livestore/livestore");
  const { text } = State.SQLite;
  const cells = State.SQLite.table({
    name: "cells",
    columns: { id: text({ primaryKey: true }), source: text({ default: "" }) },
  });
  const named = (name, fields) => Events.synced({ name, schema: Schema.Struct(fields) });
  const events = {
    created: named("v1.CellCreated", { id: Schema.String }),
    changed: named("v1.CellSourceChanged", { id: Schema.String, source: Schema.String }),
  };
  const materializers = State.SQLite.materializers(events, {
    "v1.CellCreated": ({ id }) => cells.insert({ id }),
    "v1.CellSourceChanged": ({ id, source }) => cells.update({ source }).where({ id }),
  });
  const store = await createStorePromise({
    adapter: makeAdapter({ storage: { type: "fs", baseDirectory: folder } }),
    schema: makeSchema({ events, state: State.SQLite.makeState({ tables: { cells }, materializers }) }),
    storeId: "notebook",
    disableDevtools: true,
  });
  store.commit(events.created({ id: CELL }));
  // What was committed is written later, and must not be written while others take their turn.
  const settled = async () => {
    while (store.syncStatus().pendingCount > 0) await new Promise((later) => setTimeout(later, 1));
  };
  await settled();
  return {
    commit: (number) => store.commit(events.changed({ id: CELL, source: source(number) })),
    settled,
    last: () => store.query(cells.where({ id: CELL }))[0].source,
  };
}

/** Rows of the same bytes as Ward's into a table like its store's, each a transaction. */
async function sqlite(folder) {
  const { default: Database } = await import("better-sqlite3");
  const database = new Database(join(folder, "raw.db"));
  database.pragma("journal_mode = WAL");
  database.pragma("synchronous = NORMAL");
  database.exec(`CREATE TABLE events (
    stream INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    kind   TEXT NOT NULL,
    data   TEXT NOT NULL,
    PRIMARY KEY (stream, seq)
  ) STRICT, WITHOUT ROWID`);
  const kind = "cell.source";
  const insert = database.prepare("INSERT INTO events (stream, seq, at, kind, data) VALUES (1, ?, ?, ?, ?)");
  const row = (number, at) => ({
    id: { writer: "http:person:bench", number },
    event: { kind, cell_id: CELL, source: source(number) },
    actor: "person:bench",
    at,
  });
  return {
    commit: (number) => {
      const at = Date.now();
      insert.run(number, at, kind, JSON.stringify(row(number, at)));
    },
    settled: async () => {},
    last: () => JSON.parse(database.prepare("SELECT data FROM events ORDER BY seq DESC LIMIT 1").get().data).event.source,
  };
}

const [, , which, folder] = process.argv;
const store = await { livestore, "better-sqlite3": sqlite }[which](folder);
let number = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const { id, params } = JSON.parse(line);
  const began = performance.now();
  for (let count = 0; count < params.count; count++) store.commit(++number);
  const committed = (performance.now() - began) / millis;
  await store.settled();
  const settled = (performance.now() - began) / millis;
  const result = { committed, settled, is_there: store.last() === source(number) };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
}
