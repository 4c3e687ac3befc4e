// What this browser remembers about its person's taste. Nothing here gives or takes a right.

import type { Mode } from "../api/schema";
import { Store } from "./store";

export interface Settings {
  theme: "system" | "light" | "dark";
  notify: boolean;
  /** What a new session begins with. */
  role?: string;
  model?: string;
  mode: Mode;
  side: boolean;
}

const KEY = "ward";
const usual: Settings = { theme: "system", notify: false, mode: "sandbox", side: true };

function load(): Settings {
  try {
    // Full mode is chosen each time, never remembered.
    return { ...usual, ...JSON.parse(localStorage.getItem(KEY) ?? "{}"), mode: "sandbox" };
  } catch {
    return usual;
  }
}

export const settings = new Store<Settings>(load(), "at once");

export function remember(change: Partial<Settings>): void {
  settings.update((now) => ({ ...now, ...change }));
  try {
    localStorage.setItem(KEY, JSON.stringify(settings.get()));
  } catch {
    // A browser that keeps nothing.
  }
  applyTheme();
}

const dark = matchMedia("(prefers-color-scheme: dark)");

export function isDark(): boolean {
  const { theme } = settings.get();
  return theme === "system" ? dark.matches : theme === "dark";
}

export function applyTheme(): void {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
}

dark.addEventListener("change", applyTheme);
