// Plain words for what Ward tells in its own.

import type { Mode, SessionInfo, Tier, Usage } from "../api/schema";

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 60_000) return `${Math.round(ms / 1000)} s`;
  const minutes = Math.floor(ms / 60_000);
  return minutes < 60 ? `${minutes} min ${Math.round((ms % 60_000) / 1000)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** How long ago, short enough for a list. */
export function ago(at: number, now = Date.now()): string {
  const seconds = Math.max(0, (now - at) / 1000);
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

export function clock(at: number): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: "short", timeStyle: "medium" });
}

/** Until when something waits. */
export function until(at: number, now = Date.now()): string {
  const left = at - now;
  if (left <= 0) return "runs out now";
  if (left < 90_000) return `${Math.ceil(left / 1000)} s`;
  if (left < 5_400_000) return `${Math.round(left / 60_000)} min`;
  return `${Math.round(left / 3_600_000)} h`;
}

export function bytes(size: number): string {
  if (size < 1000) return `${size} B`;
  if (size < 1_000_000) return `${(size / 1000).toFixed(1)} kB`;
  return `${(size / 1_000_000).toFixed(1)} MB`;
}

export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

export function tokens(number: number): string {
  if (number < 1000) return String(number);
  if (number < 1_000_000) return `${(number / 1000).toFixed(1)}k`;
  return `${(number / 1_000_000).toFixed(1)}M`;
}

export function total(usage: Usage): number {
  return usage.input + usage.output + usage.cache_read + usage.cache_write;
}

export function dollars(cost: number): string {
  return `$${cost < 0.1 ? cost.toFixed(3) : cost.toFixed(2)}`;
}

export const modeWords: Record<Mode, { name: string; what: string }> = {
  sandbox: { name: "Sandbox", what: "Commands are held by the kernel: they write the workspace and nothing else, read no keys, reach no network. What would cross the wall asks you." },
  full: { name: "Full", what: "Commands run unconfined and can reach whatever you can, Ward's own files too. Skills, rules and the ledger still hold." },
};

export const tierWords: Record<Tier, string> = {
  room: "Commands run in a room of their own: its own root, namespaces, Landlock, seccomp and limits.",
  walls: "Commands are held by Landlock, seccomp and limits. Without namespaces they see other processes and share the network's names.",
  none: "Nothing holds commands here.",
};

export const stateWords: Record<SessionInfo["state"], string> = {
  running: "works",
  waiting: "asks",
  idle: "",
  failed: "failed",
};

const DOES: Record<string, string> = {
  "fs.read": "read files",
  "fs.list": "list folders",
  "fs.stat": "look at files",
  "fs.glob": "find files by name",
  "fs.search": "search in files",
  "fs.write": "write files",
  "fs.edit": "change files",
  "fs.patch": "apply patches",
  "fs.mkdir": "make folders",
  "fs.move": "move files",
  "fs.delete": "delete files",
  "fs.*": "read and change files",
  "terminal.run": "run commands",
  "terminal.open": "open terminals",
  "terminal.write": "type into terminals",
  "terminal.resize": "resize terminals",
  "terminal.close": "close terminals",
  "terminal.list": "list terminals",
  "terminal.read": "read what terminals printed",
  "terminal.stop": "stop commands",
  "terminal.*": "run commands and open terminals",
  "editor.open": "open files in the editor",
  "editor.selection": "see what is selected in the editor",
  "editor.diagnostics": "see the editor's errors and warnings",
  "editor.symbols": "look names up in the editor",
  "editor.diff": "show changes in the editor",
  "editor.format": "format files in the editor",
  "editor.rename": "rename a name everywhere, in the editor",
  "editor.command": "run the editor's commands",
  "editor.task": "run the editor's tasks",
  "editor.*": "use all that the editor can",
  "cell.execute": "run cells of notebooks",
  "cell.*": "run cells of notebooks",
  net: "reach hosts",
  wall: "go beyond the wall",
};

/** A skill, such as `fs.write(src/**)`, in words. */
export function skillWords(skill: string): string {
  const match = /^([\w.*]+)(?:\((.*)\))?$/s.exec(skill);
  const does = match?.[1] === undefined ? undefined : DOES[match[1]];
  if (!match || !does) return skill === "*" ? "do everything" : skill;
  const where = match[2];
  if (where === undefined || where === "**" || where === "*") return does;
  return match[1]?.startsWith("terminal") ? `${does} like ${where}` : `${does} in ${where}`;
}

const WANTS: Record<string, string> = {
  "fs.read": "wants to read a file",
  "fs.list": "wants to list a folder",
  "fs.stat": "wants to look at a file",
  "fs.glob": "wants to find files",
  "fs.search": "wants to search in files",
  "fs.write": "wants to write a file",
  "fs.edit": "wants to change a file",
  "fs.patch": "wants to apply a patch",
  "fs.mkdir": "wants to make a folder",
  "fs.move": "wants to move a file",
  "fs.delete": "wants to delete",
  "terminal.run": "wants to run a command",
  "terminal.open": "wants to open a terminal",
  "terminal.write": "wants to type into a terminal",
  "editor.open": "wants to open a file in the editor",
  "editor.selection": "wants to see what is selected in the editor",
  "editor.diagnostics": "wants to see the editor's errors and warnings",
  "editor.symbols": "wants to look a name up in the editor",
  "editor.diff": "wants to show a change in the editor",
  "editor.format": "wants to format a file in the editor",
  "editor.rename": "wants to rename a name everywhere",
  "editor.command": "wants to run a command of the editor's",
  "editor.task": "wants to run a task of the editor's",
  "cell.execute": "wants to run a cell",
};

export function wants(action: string): string {
  return WANTS[action] ?? `wants ${action}`;
}

/** Who acted or answered, by name: `person:ada` is Ada to people. */
export function actorName(actor: string): string {
  return actor.replace(/^(?:person|agent|runtime):/, "");
}

const RUNTIMES: Record<string, string> = { local: "the local runtime", vscode: "VS Code" };

export function runtimeName(kind: string): string {
  return RUNTIMES[kind] ?? kind;
}

/** The last part of a path, for where there is little room. */
export function baseName(path: string): string {
  return path.replace(/\/+$/, "").split("/").pop() || path;
}

/** A path as seen from the workspace. */
export function within(path: string, workspace: string | undefined): string {
  if (workspace && path === workspace) return ".";
  return workspace && path.startsWith(`${workspace}/`) ? path.slice(workspace.length + 1) : path;
}
