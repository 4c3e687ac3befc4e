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

/** The place of this page; and those of other pages with edits in them, each once that page is gone. */
export interface Places {
  own: Place;
  left: (gone: (place: Place) => void, until: AbortSignal) => void;
}

/** The places of a notebook in this browser. */
export async function places(user: string, notebook: string): Promise<Places> {
  const none: Places["left"] = () => {};
  if (!navigator.locks) return { own: nowhere(), left: none };
  let database: IDBDatabase;
  try {
    database = await open();
  } catch {
    return { own: nowhere(), left: none };
  }
  const keys = await done(database.transaction(LIVES).objectStore(LIVES).getAllKeys(IDBKeyRange.bound([user, notebook, ""], [user, notebook, "\uffff"])));
  const remembered = sessionStorage.getItem(`ward.replica.${notebook}`);
  const names = (keys as Key[]).map(([, , writer]) => writer).sort((a, b) => Number(b === remembered) - Number(a === remembered));
  const others: string[] = [];
  let own: Place | undefined;
  for (const writer of names) {
    const release = own ? undefined : await claim(lockOf(notebook, writer), writer === remembered ? PATIENCE : 0);
    if (release) own = await taken(database, [user, notebook, writer], release);
    else others.push(writer);
  }
  if (!own) {
    const writer = newName();
    const release = await claim(lockOf(notebook, writer));
    own = at(database, [user, notebook, writer], release ?? (() => {}));
  }
  sessionStorage.setItem(`ward.replica.${notebook}`, own.writer);
  const left: Places["left"] = (gone, until) => {
    for (const writer of others) {
      void claim(lockOf(notebook, writer), until).then(async (release) => {
        const place = release && (await taken(database, [user, notebook, writer], release));
        if (!place) return;
        if (place.record && hasEdits(place.record)) return gone(place);
        await place.forget();
        place.release();
      });
    }
  };
  return { own, left };
}

/** A place that somebody left, with what is kept there. */
async function taken(database: IDBDatabase, key: Key, release: Release): Promise<Place> {
  const place = at(database, key, release);
  place.record = await read(database, key);
  return place;
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
    // A page that is going away hears of nothing more, and what it wrote last counts too.
    transaction.commit();
  });
}

function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
