// A value that components watch. Changes within a frame are told once, so that thousands of events
// a second cost no more than the frames they are shown in.

import { useSyncExternalStore } from "react";

export class Store<T> {
  private listeners = new Set<() => void>();
  private scheduled = false;

  constructor(private current: T) {}

  get = (): T => this.current;

  set(next: T): void {
    if (Object.is(next, this.current)) return;
    this.current = next;
    if (this.scheduled) return;
    this.scheduled = true;
    const tell = () => {
      if (!this.scheduled) return;
      this.scheduled = false;
      for (const listener of [...this.listeners]) listener();
    };
    // A tab in the background has no frames.
    if (document.hidden) setTimeout(tell);
    else {
      requestAnimationFrame(tell);
      setTimeout(tell, 100);
    }
  }

  update(change: (current: T) => T): void {
    this.set(change(this.current));
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
}

export function useStore<T>(store: Store<T>): T {
  return useSyncExternalStore(store.subscribe, store.get);
}
