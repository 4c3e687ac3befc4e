// A value that components watch. What events change is told once a frame, so that thousands of them
// a second cost no more than the frames they are shown in. What a person changes is told at once: a
// control that a value holds jumps back until it has heard of the new one.

import { useSyncExternalStore } from "react";

export class Store<T> {
  private listeners = new Set<() => void>();
  private scheduled = false;

  constructor(private current: T, private readonly told: "once a frame" | "at once" = "once a frame") {}

  get = (): T => this.current;

  set(next: T): void {
    if (Object.is(next, this.current)) return;
    this.current = next;
    if (this.told === "at once") return this.tell();
    if (this.scheduled) return;
    this.scheduled = true;
    const tell = () => {
      if (!this.scheduled) return;
      this.scheduled = false;
      this.tell();
    };
    // A tab in the background has no frames.
    if (document.hidden) setTimeout(tell);
    else {
      requestAnimationFrame(tell);
      setTimeout(tell, 100);
    }
  }

  private tell(): void {
    for (const listener of [...this.listeners]) listener();
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
