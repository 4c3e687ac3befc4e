// What a screen reader is told: short, and only what somebody who looks elsewhere must know.

import { Store } from "./store";

export const spoken = new Store("");

export function announce(words: string): void {
  // The same words twice are told twice.
  spoken.set(spoken.get() === words ? `${words}\u00a0` : words);
}

/** What went wrong just now, for everybody to see. */
export const trouble = new Store<{ text: string; id: number } | undefined>(undefined);

let count = 0;

export function complain(error: unknown): void {
  trouble.set({ text: error instanceof Error ? error.message : String(error), id: ++count });
}
