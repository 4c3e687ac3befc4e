// What outlives a page: its replicas, in the browser's database, each under the name of its writer.
// A replica belongs to the page that has its lock; what a page left behind is taken over by the next.

import { newName } from "./ask.js";
import { type Release, claim } from "./locks.js";

const DATABASE = "ward-notebooks";
const BASES = "bases";
const LIVES = "lives";
/** How long a page that is just being loaded again may take to let go of its replica. */
const PATIENCE = 2000;

/** A replica as it was kept. */
export interface Record {
  base: string;
  live: string;
}

/** A place for one replica. */
export interface Place {
  writer: string;
  /** What was kept there. */
  record?: Record;
  /** Rejects where the browser keeps nothing. */
  keep(base: string | undefined, live: string): Promise<void>;
  /** Takes it away. */
  forget(): Promise<void>;
  release: Release;
  /** Whether what is kept here outlives the page. */
  lasts: boolean;
}

type Key = [user: string, notebook: string, writer: string];

/** The places of a notebook in this browser: the first for this page, and those that pages left with edits in them. */
export async function places(user: string, notebook: string): Promise<Place[]> {
  let database: IDBDatabase;
  if (!navigator.locks) return [nowhere()];
  try {
    database = await open();
  } catch {
    return [nowhere()];
  }
  const before = [user, notebook, ""];
  const keys = await done(database.transaction(LIVES).objectStore(LIVES).getAllKeys(IDBKeyRange.bound(before, [user, notebook, "\uffff"])));
  const remembered = sessionStorage.getItem(`ward.replica.${notebook}`);
  const names = (keys as Key[]).map(([, , writer]) => writer).sort((a, b) => Number(b === remembered) - Number(a === remembered));
  const found: Place[] = [];
  for (const writer of names) {
    const release = await claim(lockOf(notebook, writer), writer === remembered ? PATIENCE : 0);
    if (!release) continue;
    const place = at(database, [user, notebook, writer], release);
    place.record = await read(database, [user, notebook, writer]);
    const edits = place.record && hasEdits(place.record);
    if (!place.record || (!edits && found.length > 0)) {
      await place.forget();
      release();
    } else found.push(place);
  }
  if (found.length === 0) {
    const writer = newName();
    const release = await claim(lockOf(notebook, writer));
    found.push(at(database, [user, notebook, writer], release ?? (() => {})));
  }
  const [own] = found;
  if (own) sessionStorage.setItem(`ward.replica.${notebook}`, own.writer);
  return found;
}

/** Takes away all that is kept in this browser, such as when a person signs out. */
export function forgetNotebooks(): Promise<void> {
  return new Promise((resolve) => {
    const request = indexedDB.deleteDatabase(DATABASE);
    request.onsuccess = request.onerror = request.onblocked = () => resolve();
  });
}

const lockOf = (notebook: string, writer: string) => `ward:replica:${notebook}:${writer}`;

function hasEdits({ live }: Record): boolean {
  try {
    return JSON.parse(live).pending.length > 0;
  } catch {
    return false;
  }
}

function nowhere(): Place {
  const nothing = () => Promise.resolve();
  return { writer: newName(), keep: nothing, forget: nothing, release: () => {}, lasts: false };
}

function at(database: IDBDatabase, key: Key, release: Release): Place {
  return {
    writer: key[2],
    release,
    lasts: true,
    keep: (base, live) =>
      change(database, (bases, lives) => {
        if (base !== undefined) bases.put(base, key);
        lives.put(live, key);
      }),
    forget: () =>
      change(database, (bases, lives) => {
        bases.delete(key);
        lives.delete(key);
      }),
  };
}

async function read(database: IDBDatabase, key: Key): Promise<Record | undefined> {
  const transaction = database.transaction([BASES, LIVES]);
  const [base, live] = await Promise.all([done(transaction.objectStore(BASES).get(key)), done(transaction.objectStore(LIVES).get(key))]);
  return typeof base === "string" && typeof live === "string" ? { base, live } : undefined;
}

function open(): Promise<IDBDatabase> {
  const request = indexedDB.open(DATABASE, 1);
  request.onupgradeneeded = () => {
    request.result.createObjectStore(BASES);
    request.result.createObjectStore(LIVES);
  };
  return done(request).then((database) => {
    // Whoever takes all of it away is not to wait for this page.
    database.onversionchange = () => database.close();
    return database;
  });
}

function change(database: IDBDatabase, work: (bases: IDBObjectStore, lives: IDBObjectStore) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const transaction = database.transaction([BASES, LIVES], "readwrite");
    transaction.oncomplete = () => resolve();
    transaction.onabort = transaction.onerror = () => reject(transaction.error);
    work(transaction.objectStore(BASES), transaction.objectStore(LIVES));
  });
}

function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
