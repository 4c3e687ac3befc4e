import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import { host } from "../host";
import { mayType } from "../model/typist";

/** xterm makes style sheets of its own: each gets the page's nonce. */
function withNonce<T>(work: () => T): T {
  const make = document.createElement;
  document.createElement = function (this: Document, ...args: Parameters<typeof make>) {
    const element = make.apply(this, args);
    if (element instanceof HTMLStyleElement) element.nonce = host.nonce;
    return element;
  } as typeof make;
  try {
    return work();
  } finally {
    document.createElement = make;
  }
}

export interface Shown {
  write: (data: string | Uint8Array) => void;
  focus: () => void;
  /** Nothing can be typed any more. */
  end: () => void;
  dispose: () => void;
}

interface Options {
  cols: number;
  rows: number;
  typed: (data: string) => void;
  resized: (cols: number, rows: number) => void;
  focused: (has: boolean) => void;
  /** Told before it loses the focus by its own key. */
  left: () => void;
}

/** The smallest and largest that a program is drawn in. */
const within = (value: number, least: number, most: number) => Math.max(least, Math.min(most, Math.trunc(value)));

const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;
const COLOURS = ["#8a8d94", "#ff8a80", "#7bd88f", "#e8c06a", "#8ab4ff", "#d7a1e8", "#7fd0de", "#d8d9da"];
const BRIGHT = ["#9b9da3", "#ffa49c", "#98e6a8", "#f5d68f", "#a9c8ff", "#e6bdf2", "#a3e2ec", "#ffffff"];

export function makeTerminal(box: HTMLElement, { cols, rows, typed, resized, focused, left }: Options): Shown {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const palette = Object.fromEntries(NAMES.flatMap((name, index) => [[name, COLOURS[index]], [`bright${name[0]?.toUpperCase()}${name.slice(1)}`, BRIGHT[index]]]));
  const terminal = new Terminal({
    convertEol: false,
    // As the agent opened it, until somebody types: others may look at it as well.
    cols: within(cols, 10, 500),
    rows: within(rows, 4, 60),
    scrollback: 10_000,
    fontFamily: colour("--mono"),
    fontSize: 12.5,
    lineHeight: 1.3,
    screenReaderMode: true,
    // Links in it are the agent's.
    linkHandler: { activate: () => {} },
    theme: { background: colour("--term"), foreground: colour("--term-text"), cursor: colour("--term-text"), ...palette },
  });
  const fit = new FitAddon();
  withNonce(() => {
    terminal.loadAddon(fit);
    terminal.open(box);
  });
  const area = terminal.textarea;
  // Reached by its button, so that whoever goes through the page by keyboard is not caught in it.
  area?.setAttribute("tabindex", "-1");
  let has = false;
  const size = () => {
    const wanted = fit.proposeDimensions();
    if (!wanted || !Number.isFinite(wanted.cols)) return;
    const wide = within(wanted.cols, 20, 500);
    if (wide === terminal.cols) return;
    terminal.resize(wide, terminal.rows);
    resized(wide, terminal.rows);
  };
  const enter = () => {
    has = true;
    focused(true);
    size();
  };
  const exit = () => {
    has = false;
    focused(false);
  };
  area?.addEventListener("focus", enter);
  area?.addEventListener("blur", exit);
  // What comes without a key, from an emoji picker or a phone, xterm leaves out for screen readers.
  let down = false;
  area?.addEventListener("keydown", () => (down = true), { capture: true });
  area?.addEventListener("keyup", () => (down = false), { capture: true });
  area?.addEventListener("input", (event) => {
    const { inputType, data, isComposing } = event as InputEvent;
    if (inputType === "insertText" && data && !down && !isComposing && mayType(data, has)) typed(data);
  });
  terminal.attachCustomKeyEventHandler((event) => {
    if (event.key !== "Escape" || !event.shiftKey) return true;
    if (event.type === "keydown") {
      event.preventDefault();
      left();
      area?.blur();
    }
    return false;
  });
  // As high as what is drawn, up to all rows; it grows and does not shrink, so that nothing jumps.
  let high = 0;
  terminal.onRender(() => {
    const { active } = terminal.buffer;
    let rows = active.type === "alternate" || active.baseY > 0 ? terminal.rows : active.cursorY + 1;
    for (let row = terminal.rows; row > rows; row--) if (active.getLine(active.baseY + row - 1)?.translateToString(true)) rows = row;
    const line = (terminal.element?.querySelector(".xterm-screen")?.clientHeight ?? 0) / terminal.rows;
    if (rows <= high || line === 0) return;
    high = rows;
    box.style.height = `${Math.ceil(line * Math.max(rows, 3)) + 10}px`;
  });
  terminal.onData((data) => {
    if (mayType(data, has)) typed(data);
  });
  const watch = new ResizeObserver(() => {
    if (has) size();
  });
  watch.observe(box);
  return {
    write: (data) => terminal.write(data),
    focus: () => terminal.focus(),
    end: () => {
      terminal.options.disableStdin = true;
      terminal.options.cursorBlink = false;
      area?.blur();
    },
    dispose: () => {
      watch.disconnect();
      terminal.dispose();
    },
  };
}
