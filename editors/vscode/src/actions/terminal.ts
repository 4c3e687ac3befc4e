// terminal.run in the integrated terminal: typed where the person sees it, its output as it comes, its
// true exit code through the shell's integration. What is confined, what a shell would not read as it
// was decided on, and what a shell without integration would not report is not typed: it runs beside.

import { readlink } from "node:fs/promises";
import { basename } from "node:path";
import * as vscode from "vscode";
import { Failure } from "../failure";
import { setting } from "../find";
import { Kept, Plain } from "../output";
import { lineOf, printable, programOf, quotes, typed } from "../shell";
import { Beside, type Ended } from "./beside";
import type { Call } from "./index";
import { number, optional } from "./place";

const NAME = "Ward";
/** How long a command that was interrupted may take to end. */
const GRACE_MS = 2000;

interface Run {
  /** How it is shown. */
  line: string;
  /** What sh is given where it is typed; nothing where no shell would read it as it was decided on. */
  script: string | undefined;
  argv: readonly [string, ...string[]];
  cwd: vscode.Uri;
  /** Where that really is. */
  folder: string;
  env: Record<string, string>;
  timeout: number | undefined;
}

export class Terminals implements vscode.Disposable {
  /** Terminals of ours in which nothing runs, and that the next command may have. */
  #idle = new Set<vscode.Terminal>();
  /** Those that no other command may have: they show what was printed until another one is made. */
  #spent = new Set<vscode.Terminal>();
  /** Those in which an action runs, or is about to. */
  #taken = new Set<vscode.Terminal>();
  #all = new Set<vscode.Terminal>();
  #beside = new Beside();
  #listening = [
    vscode.window.onDidCloseTerminal((terminal) => this.#letGo(terminal)),
    // Where the person runs something in a terminal of ours, it is theirs from then on: nothing is typed
    // into it any more, and it is not closed. What an extension types into one that is new is no person's.
    vscode.window.onDidStartTerminalShellExecution(({ terminal }) => !this.#taken.has(terminal) && this.#letGo(terminal)),
  ];

  #letGo(terminal: vscode.Terminal): void {
    for (const terminals of [this.#idle, this.#spent, this.#taken, this.#all]) terminals.delete(terminal);
  }

  async run(call: Call): Promise<unknown> {
    const run = await asked(call);
    const { script } = run;
    const started = Date.now();
    const [out, error] = [new Kept(), new Kept()];
    const timing = new AbortController();
    const timer = run.timeout === undefined ? undefined : setTimeout(() => timing.abort(), run.timeout);
    const stop = AbortSignal.any([call.signal, timing.signal]);
    let ended: Ended;
    try {
      const beside = (note: string) => this.#beside.run({ ...run, cwd: run.cwd.fsPath, note }, call, out, error, stop);
      if (call.confined) ended = await beside("Ward runs this in its sandbox, without network.");
      else if (script === undefined) ended = await beside("A shell would not read this as it was decided on, so Ward runs it beside.");
      else {
        const terminal = await this.#terminal(run, stop);
        ended = terminal?.shellIntegration
          ? await this.#typed(terminal, terminal.shellIntegration, { ...run, script }, call, out, stop)
          : await beside("This shell does not report commands, so Ward runs this beside it.");
      }
    } finally {
      clearTimeout(timer);
    }
    if (call.signal.aborted) throw new Failure("cancelled", "It was stopped.");
    const cut = { stdout: out.cut, stderr: error.cut };
    const truncated = cut.stdout + cut.stderr > 0;
    return {
      ...ended,
      stdout: out.text,
      stderr: error.text,
      duration_ms: Date.now() - started,
      timed_out: timing.signal.aborted,
      truncated,
      ...(truncated && { cut }),
      sandbox: { tier: "none" },
    };
  }

  /** A terminal of ours whose shell reports what it runs, in this folder; nothing where none does, or none is
   *  wanted any more. */
  async #terminal({ cwd, folder, env }: Run, stop: AbortSignal): Promise<vscode.Terminal | undefined> {
    for (const idle of hasNone(env) ? [...this.#idle] : []) {
      const isThere = idle.exitStatus === undefined && (await folderOf(idle)) === folder;
      if (stop.aborted) return undefined;
      // Another command, or the person, may have taken it meanwhile.
      if (!isThere || !this.#idle.delete(idle)) continue;
      this.#taken.add(idle);
      idle.show(true);
      return idle;
    }
    if (stop.aborted) return undefined;
    for (const terminal of this.#spent) terminal.dispose();
    // What is typed is quoted for these; another shell would read it otherwise.
    const shell = quotes(basename(vscode.env.shell)) ? {} : { shellPath: "/bin/bash" };
    const terminal = vscode.window.createTerminal({ name: NAME, cwd, env, iconPath: new vscode.ThemeIcon("shield"), isTransient: true, ...shell });
    this.#all.add(terminal);
    this.#taken.add(terminal);
    terminal.show(true);
    if (await integrated(terminal, stop)) return terminal;
    this.#letGo(terminal);
    terminal.dispose();
    return undefined;
  }

  async #typed(terminal: vscode.Terminal, shell: vscode.TerminalShellIntegration, run: Run & { script: string }, call: Call, out: Kept, stop: AbortSignal): Promise<Ended> {
    const listening: vscode.Disposable[] = [];
    try {
      let execution: vscode.TerminalShellExecution | undefined;
      const ended = new Promise<Ended>((resolve) => {
        listening.push(
          vscode.window.onDidEndTerminalShellExecution((event) => {
            if (event.execution !== execution) return;
            this.#taken.delete(terminal);
            resolve(event.exitCode === undefined ? {} : { exit_code: event.exitCode });
          }),
          vscode.window.onDidCloseTerminal((closed) => {
            if (closed !== terminal) return;
            resolve(closed.exitStatus?.code === undefined ? { signal: "SIGHUP" } : { exit_code: closed.exitStatus.code });
          }),
        );
      });
      execution = shell.executeCommand(typed(run.script));
      const reading = this.#read(execution, call, out);
      const halt = () => void interrupt(terminal, ended);
      if (stop.aborted) halt();
      else stop.addEventListener("abort", halt, { once: true });
      const end = await ended;
      stop.removeEventListener("abort", halt);
      // What it printed last may still be on its way; a stream that never ends is not waited for.
      await Promise.race([reading, new Promise((resolve) => setTimeout(resolve, 1000))]);
      // What is typed runs in a shell of its own (`sh -c`), so it leaves no variable, alias or folder to the next
      // command. What the terminal was made with does stay, and was decided on for this command alone.
      const mayHaveMore = hasNone(run.env) && (await folderOf(terminal)) !== undefined;
      if (this.#all.has(terminal) && !stop.aborted) (mayHaveMore ? this.#idle : this.#spent).add(terminal);
      return stop.aborted ? { signal: "SIGINT" } : end;
    } finally {
      for (const one of listening) one.dispose();
    }
  }

  async #read(execution: vscode.TerminalShellExecution, call: Call, out: Kept): Promise<void> {
    const plain = new Plain();
    const take = (text: string) => {
      out.push(text);
      call.output.push("stdout", text);
    };
    for await (const data of execution.read()) take(plain.push(data));
    take(plain.end());
  }

  dispose(): void {
    for (const one of this.#listening) one.dispose();
    for (const terminal of this.#all) terminal.dispose();
    this.#beside.dispose();
  }
}

async function asked({ place, params, confined }: Call): Promise<Run> {
  const command = optional(params, "command");
  const [program, ...rest] = Array.isArray(params.argv) ? params.argv.map(String) : [];
  if ((command === undefined) === (program === undefined)) throw new Failure("invalid_params", "Give either `command` or `argv`.");
  if (confined && program === undefined) throw new Failure("invalid_params", "What is confined comes as `argv`.");
  const argv: Run["argv"] = program === undefined ? ["sh", "-c", command ?? ""] : [program, ...rest];
  if (params.background === true) throw new Failure("not_capable", "The editor's terminal runs a command to its end. Use the local runtime for one in the background.");
  if (params.stdin !== undefined && params.stdin !== null) throw new Failure("not_capable", "The editor's terminal has no standard input to give. Use a here-document, or the local runtime.");
  const { uri, real } = await place.path(optional(params, "cwd") ?? ".");
  const env = Object.fromEntries(Object.entries((params.env ?? {}) as Record<string, unknown>).map(([name, value]) => [name, String(value)]));
  const script = command ?? programOf(argv);
  return { line: command ?? shownOf(argv, confined), script: script !== undefined && printable(script) ? script : undefined, argv, cwd: uri, folder: real, env, timeout: number(params, "timeout_ms") };
}

/** A command as it is shown: of what is confined, what runs inside. */
function shownOf(argv: readonly string[], confined: boolean): string {
  const inside = confined ? argv.slice(argv.indexOf("--") + 1) : argv;
  const [sh, flag, line, ...more] = inside;
  return confined && sh === "sh" && flag === "-c" && line !== undefined && more.length === 0 ? line : lineOf(inside);
}

const hasNone = (env: Run["env"]) => Object.keys(env).length === 0;

/** The folder that its shell is really in: one of that name may be another by now, and what the shell reports is
 *  what was printed in it. Nothing where the system does not say. */
async function folderOf(terminal: vscode.Terminal): Promise<string | undefined> {
  return readlink(`/proc/${await terminal.processId}/cwd`).catch(() => undefined);
}

/** Whether its shell says what it runs, after a moment in which it is still wanted. */
async function integrated(terminal: vscode.Terminal, stop: AbortSignal): Promise<boolean> {
  if (terminal.shellIntegration) return true;
  const listening: vscode.Disposable[] = [];
  try {
    return await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), setting<number>("shellIntegrationTimeout") * 1000);
      const is = (answer: boolean) => (clearTimeout(timer), resolve(answer));
      stop.addEventListener("abort", () => is(false), { once: true });
      listening.push(
        vscode.window.onDidChangeTerminalShellIntegration((event) => event.terminal === terminal && is(true)),
        vscode.window.onDidCloseTerminal((closed) => closed === terminal && is(false)),
      );
    });
  } finally {
    for (const one of listening) one.dispose();
  }
}

/** Ctrl-C; where that does not help, the terminal is closed, which ends all that runs in it. */
async function interrupt(terminal: vscode.Terminal, ended: Promise<unknown>): Promise<void> {
  terminal.sendText("\x03", false);
  const over = await Promise.race([ended.then(() => true), new Promise<false>((resolve) => setTimeout(() => resolve(false), GRACE_MS))]);
  if (!over) terminal.dispose();
}
