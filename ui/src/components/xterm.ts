import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import { host } from "../host";

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
  write: (text: string) => void;
  dispose: () => void;
}

export function makeTerminal(box: HTMLElement): Shown {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const terminal = new Terminal({
    // It shows what happened; whoever wants to type has a terminal of their own.
    disableStdin: true,
    convertEol: false,
    cols: 80,
    rows: 18,
    scrollback: 10_000,
    fontFamily: colour("--mono"),
    fontSize: 12.5,
    lineHeight: 1.3,
    screenReaderMode: true,
    // Links in it are the agent's.
    linkHandler: { activate: () => {} },
    theme: { background: colour("--term"), foreground: colour("--term-text") },
  });
  const fit = new FitAddon();
  withNonce(() => {
    terminal.loadAddon(fit);
    terminal.open(box);
  });
  const watch = new ResizeObserver(() => {
    const size = fit.proposeDimensions();
    if (size && Number.isFinite(size.cols) && size.cols > 20) terminal.resize(size.cols, 18);
  });
  watch.observe(box);
  return {
    write: (text) => terminal.write(text),
    dispose: () => {
      watch.disconnect();
      terminal.dispose();
    },
  };
}
