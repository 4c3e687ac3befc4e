// Commands as processes of their own, beside the person's shells and shown in a terminal: what is
// confined, and what a shell could not be given as it is. Nothing is typed, so nothing can be mistyped.

import { spawn } from "node:child_process";
import * as vscode from "vscode";
import type { Kept } from "../output";
import type { Call } from "./index";

const NAME = "Ward";
/** How long a command that was told to end may take. */
const GRACE_MS = 2000;
/** How long what it printed last may be on its way. */
const LAST_MS = 1000;

export interface Program {
  argv: readonly [string, ...string[]];
  cwd: string;
  env: Record<string, string>;
  /** How it is shown. */
  line: string;
  /** Why it runs here. */
  note: string;
}

export interface Ended {
  exit_code?: number;
  signal?: string;
}

/** A terminal that shows what runs beside it. */
class Shown {
  #written = new vscode.EventEmitter<string>();
  // What is written before the terminal is open would be lost.
  #early: string | undefined = "";
  closed = false;
  /** Ends what runs. */
  stop: (() => void) | undefined;
  readonly terminal = vscode.window.createTerminal({
    name: NAME,
    iconPath: new vscode.ThemeIcon("shield"),
    isTransient: true,
    pty: {
      onDidWrite: this.#written.event,
      open: () => {
        const before = this.#early ?? "";
        this.#early = undefined;
        this.#written.fire(before);
      },
      close: () => {
        this.closed = true;
        this.stop?.();
      },
      handleInput: (data: string) => data === "\x03" && this.stop?.(),
    },
  });

  write(text: string): void {
    const lines = text.replaceAll(/\r?\n/g, "\r\n");
    if (this.#early === undefined) this.#written.fire(lines);
    else this.#early += lines;
  }
}

export class Beside implements vscode.Disposable {
  /** Those in which nothing runs. */
  #idle: Shown[] = [];
  #all = new Set<Shown>();

  async run(program: Program, call: Call, out: Kept, error: Kept, stop: AbortSignal): Promise<Ended> {
    if (stop.aborted) return { signal: "SIGTERM" };
    const shown = this.#shown();
    shown.terminal.show(true);
    shown.write(`\x1b[2m${program.note}\x1b[0m\n$ ${visible(program.line)}\n`);
    const [file, ...args] = program.argv;
    const child = spawn(file, args, { cwd: program.cwd, env: { ...process.env, ...program.env }, stdio: ["ignore", "pipe", "pipe"], detached: true });
    const kill = () => {
      const { pid } = child;
      if (pid === undefined) return;
      // It leads a group of its own: all of it ends, also what does not heed the first word and outlives its leader.
      signal(pid, "SIGTERM");
      setTimeout(() => signal(pid, "SIGKILL"), GRACE_MS).unref();
    };
    shown.stop = kill;
    let isOver = false;
    for (const [stream, from, kept] of [["stdout", child.stdout, out], ["stderr", child.stderr, error]] as const) {
      from.setEncoding("utf8");
      from.on("data", (data: string) => {
        // What was left in the background is read on, so that it can write, but it is nobody's output.
        if (isOver) return;
        kept.push(data);
        call.output.push(stream, data);
        shown.write(data);
      });
    }
    stop.addEventListener("abort", kill, { once: true });
    try {
      return await new Promise<Ended>((resolve, reject) => {
        child.once("error", reject);
        const end = (code: number | null, signal: NodeJS.Signals | null) => {
          if (isOver) return;
          isOver = true;
          shown.write(`\x1b[2m${code === null ? `ended by ${signal}` : `exit code ${code}`}\x1b[0m\n`);
          resolve(code === null ? { signal: signal ?? "SIGKILL" } : { exit_code: code });
        };
        // The pipes are open for as long as anything in the background holds them.
        child.once("exit", (code, signal) => setTimeout(() => end(code, signal), LAST_MS));
        child.once("close", end);
      });
    } finally {
      stop.removeEventListener("abort", kill);
      shown.stop = undefined;
      if (shown.closed) this.#all.delete(shown);
      else this.#idle.push(shown);
    }
  }

  #shown(): Shown {
    for (let idle; (idle = this.#idle.pop()); this.#all.delete(idle)) if (!idle.closed) return idle;
    const shown = new Shown();
    this.#all.add(shown);
    return shown;
  }

  dispose(): void {
    for (const { terminal } of this.#all) terminal.dispose();
  }
}

function signal(leader: number, name: NodeJS.Signals): void {
  try {
    process.kill(-leader, name);
  } catch {
    // It has ended.
  }
}

/** A line as it is shown: what would steer the terminal is written out. */
function visible(line: string): string {
  return line.replaceAll(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/g, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`);
}
