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

const WANTS: Record<string, string> = {
  "fs.read": "read", "fs.list": "list", "fs.stat": "look at", "fs.glob": "look for files in", "fs.search": "search in", "fs.write": "write",
  "fs.edit": "edit", "fs.patch": "patch", "fs.mkdir": "make the folder", "fs.move": "move", "fs.delete": "delete",
  "terminal.run": "run", "terminal.open": "open a terminal with", "editor.open": "show", "editor.command": "run the editor's command", "editor.task": "run the task",
};

/** Parameters that the line says, or that change nothing of what is done. */
const SAID = new Set(["path", "from", "to", "command", "argv", "cwd", "env", "arguments", "task", "timeout_ms", "line", "selection", "offset", "limit", "depth", "hidden", "encoding", "expect", "pattern", "glob", "context"]);

/** The question in one line, and whether that is the whole of it. */
export function about(asked: Asked): { text: string; whole: boolean } {
  const { role, action, params, subject, rule, questions, facts, again } = asked;
  const thing = thingOf(asked);
  const verb = subject.about === "host" ? "reach the network at" : subject.about === "again" ? "run again, with more open," : WANTS[action] ?? `do ${action}`;
  const why = rule.reason || questions[0]?.why;
  // A host is asked for by what runs already.
  const whole = visible(thing) === thing && (subject.about === "host" || Object.entries(params).every(([name, value]) => SAID.has(name) || value === null || value === false));
  const unbound = facts.unbound ?? [];
  const text = [
    `${visible(role)} wants to ${verb} ${visible(thing)}${why ? ` (${visible(why)})` : ""}`,
    ...(again ? [`Asked again: ${visible(again.because)}`] : []),
    ...(unbound.length > 0 ? [`Your answer does not hold these to the files they name now: ${visible(unbound.join(" "))}`] : []),
  ];
  return { text: text.join(" · "), whole };
}

function thingOf({ action, facts, params, subject, workspace }: Asked): string {
  if (subject.about === "host") return subject.host ?? "";
  const { command, paths } = facts;
  if (command) {
    const env = Object.entries(command.env ?? {}).map(([name, value]) => `${name}=${quoted(value)} `);
    const where = command.cwd === undefined || command.cwd === workspace ? "" : ` in ${command.cwd}`;
    const more = (subject.widen ?? []).map(({ access, path }) => `, to ${access} ${path}`);
    const made = (subject.wanted ?? []).map((path) => `, to make ${path}`);
    return [...env, command.line ?? lineOf(command.argv), where, ...more, ...made].join("");
  }
  if (paths && paths.length > 0) return paths.map(({ path }) => path).join(action === "fs.move" ? " to " : ", ");
  if (action === "editor.command") return [params.command, ...(Array.isArray(params.arguments) ? (params.arguments as unknown[]) : [])].map((one, at) => (at === 0 ? String(one) : JSON.stringify(one))).join(" ");
  return String(params.command ?? params.task ?? "");
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
