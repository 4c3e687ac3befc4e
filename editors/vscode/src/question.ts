// What waits for an answer, in the one line of a notification: pure.

import { lineOf, quoted } from "./shell";

export interface Asked {
  action: string;
  role: string;
  workspace: string;
  facts: { command?: { line?: string; argv: string[]; cwd?: string; env?: Record<string, string> }; paths?: { path: string }[]; unbound?: string[] };
  subject: { about: string; host?: string; widen?: { access: string; path: string }[]; wanted?: string[] };
  again?: { because: string };
  rule: { reason: string; text: string };
  questions: { why: string }[];
  params: Record<string, unknown>;
}

/** Each action: what it wants, which of its parameters the line says or change nothing of what is done, and what
 *  it is done to. Of an action that is not here only one without parameters is said whole. */
const ASKS: Record<string, { wants: string; said: readonly string[]; to: "paths" | "command" | "task" | "editor's command" }> = {
  "fs.read": { wants: "read", said: ["path", "offset", "limit", "encoding"], to: "paths" },
  "fs.list": { wants: "list", said: ["path", "depth", "hidden"], to: "paths" },
  "fs.stat": { wants: "look at", said: ["path"], to: "paths" },
  "fs.glob": { wants: "look for files in", said: ["path", "pattern"], to: "paths" },
  "fs.search": { wants: "search in", said: ["path", "pattern", "glob", "context", "limit"], to: "paths" },
  "fs.write": { wants: "write", said: ["path", "encoding", "expect"], to: "paths" },
  "fs.edit": { wants: "edit", said: ["path", "expect"], to: "paths" },
  "fs.patch": { wants: "patch", said: [], to: "paths" },
  "fs.mkdir": { wants: "make the folder", said: ["path"], to: "paths" },
  "fs.move": { wants: "move", said: ["from", "to"], to: "paths" },
  "fs.delete": { wants: "delete", said: ["path"], to: "paths" },
  "terminal.run": { wants: "run", said: ["command", "argv", "cwd", "env", "timeout_ms"], to: "command" },
  "terminal.open": { wants: "open a terminal with", said: ["command", "argv", "cwd", "env"], to: "command" },
  "editor.open": { wants: "show", said: ["path", "line", "selection"], to: "paths" },
  "editor.diagnostics": { wants: "see what is wrong in", said: ["path"], to: "paths" },
  "editor.symbols": { wants: "see the symbols of", said: ["path"], to: "paths" },
  "editor.format": { wants: "format", said: ["path"], to: "paths" },
  "editor.command": { wants: "run the editor's command", said: ["command", "arguments"], to: "editor's command" },
  "editor.task": { wants: "run the task", said: ["task"], to: "task" },
};

/** The question in one line, and whether that is the whole of it. */
export function about(asked: Asked): { text: string; whole: boolean } {
  const { role, action, params, subject, rule, questions, facts, again } = asked;
  const ask = ASKS[action];
  const said = ask?.said ?? [];
  const thing = thingOf(asked);
  const verb = subject.about === "host" ? "reach the network at" : subject.about === "again" ? "run again, with more open," : ask?.wants ?? `do ${action}`;
  const why = rule.reason || questions[0]?.why;
  // A host is asked for by what runs already.
  const isSaid = subject.about === "host" || Object.entries(params ?? {}).every(([name, value]) => said.includes(name) || value === null || value === false);
  const whole = thing !== undefined && visible(thing) === thing && isSaid;
  const unbound = facts.unbound ?? [];
  const text = [
    `${visible(role)} wants to ${verb} ${thing === undefined ? "…, which cannot be told whole here" : visible(thing)}${why ? ` (${visible(why)})` : ""}`,
    ...(again ? [`Asked again: ${visible(again.because)}`] : []),
    ...(unbound.length > 0 ? [`Your answer does not hold these to the files they name now: ${visible(unbound.join(" "))}`] : []),
  ];
  return { text: text.join(" · "), whole };
}

/** What it is done to: exactly what will be acted on, and nothing where that is not to be told in words. */
function thingOf({ action, facts, params, subject, workspace }: Asked): string | undefined {
  if (subject.about === "host") return subject.host;
  const { command, paths } = facts;
  const to = ASKS[action]?.to;
  // What an agent sends may be anything.
  const name = (value: unknown) => (typeof value === "string" && value !== "" ? value : undefined);
  if (to === "task") return name(params?.task);
  if (to === "editor's command") {
    const id = name(params?.command);
    const given = params?.arguments ?? [];
    return id === undefined || !Array.isArray(given) ? undefined : [id, ...given.map((one) => JSON.stringify(one))].join(" ");
  }
  if (to === "command" && !command) return undefined;
  if (command) {
    const env = Object.entries(command.env ?? {}).map(([name, value]) => `${name}=${quoted(value)} `);
    const where = command.cwd === undefined || command.cwd === workspace ? "" : ` in ${command.cwd}`;
    const more = (subject.widen ?? []).map(({ access, path }) => `, to ${access} ${path}`);
    const made = (subject.wanted ?? []).map((path) => `, to make ${path}`);
    return [...env, command.line ?? lineOf(command.argv), where, ...more, ...made].join("");
  }
  if (paths && paths.length > 0) return paths.map(({ path }) => path).join(action === "fs.move" ? " to " : ", ");
  return to === undefined ? "" : undefined;
}

/** Text in one line that can be read. */
export function visible(text: string): string {
  const shown = unlinked(text.replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, " "));
  return shown.length > 200 ? `${shown.slice(0, 200)}… (${text.length} characters)` : shown;
}

/** Text in which an editor finds no link. Of a `[text](address)` in one of its messages it shows the text
 *  alone, and a click goes to the address or runs the command that it names. */
export function unlinked(text: string): string {
  return text.replaceAll("](", "] (");
}
