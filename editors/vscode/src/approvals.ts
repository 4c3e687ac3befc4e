// What waits for this person's answer: followed as it changes, counted, and asked as a notification
// while the chat does not show it.

import * as vscode from "vscode";
import type { Connection } from "./connection";
import { message } from "./connection";
import { setting } from "./find";
import { Refused, type Ward } from "./ward";

export interface Approval {
  id: string;
  digest: string;
  action: string;
  action_id: string;
  role: string;
  workspace: string;
  session_id?: string;
  facts: { command?: { line?: string; argv: string[] }; paths?: { path: string }[] };
  subject: { about: string; host?: string };
  rule: { reason: string; text: string };
  questions: { touch: string; why: string; pattern?: string }[];
  params: Record<string, unknown>;
}

const WANTS: Record<string, string> = {
  "fs.read": "read", "fs.list": "list", "fs.stat": "look at", "fs.glob": "look for files in", "fs.search": "search in", "fs.write": "write",
  "fs.edit": "edit", "fs.patch": "patch", "fs.mkdir": "make the folder", "fs.move": "move", "fs.delete": "delete",
  "terminal.run": "run", "terminal.open": "open a terminal with", "editor.open": "show", "editor.command": "run the editor's command", "editor.task": "run the task",
};

export class Approvals implements vscode.Disposable {
  #open = new Map<string, Approval>();
  #told = new Set<string>();
  #changed = new vscode.EventEmitter<number>();
  #following: AbortController | undefined;
  #subscription: vscode.Disposable;

  readonly onDidChange = this.#changed.event;

  constructor(private readonly connection: Connection, private readonly chatShows: () => boolean, private readonly log: vscode.LogOutputChannel) {
    this.#subscription = connection.onDidChange(() => this.#turn());
  }

  get count(): number {
    return this.#open.size;
  }

  #turn(): void {
    const { ward } = this.connection;
    if (ward && !this.#following) {
      this.#following = new AbortController();
      void this.#follow(ward, this.#following.signal);
    } else if (!ward) {
      this.#following?.abort();
      this.#following = undefined;
      this.#open.clear();
      this.#changed.fire(0);
    }
  }

  async #follow(ward: Ward, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      // All that is open is told anew on each connection.
      this.#open.clear();
      try {
        for await (const { event, data } of ward.events("/approvals/events?front=false", signal)) {
          if (event === "permission.requested") this.#requested(ward, data as Approval);
          else if (event === "permission.resolved") this.#open.delete((data as { approval_id: string }).approval_id);
          this.#changed.fire(this.#open.size);
        }
      } catch (error) {
        if (!signal.aborted) this.log.debug(`approvals: ${message(error)}`);
      }
      if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }

  #requested(ward: Ward, approval: Approval): void {
    this.#open.set(approval.id, approval);
    if (this.#told.has(approval.id)) return;
    this.#told.add(approval.id);
    const ours = (vscode.workspace.workspaceFolders ?? []).some(({ uri }) => uri.fsPath === approval.workspace);
    if (ours && !this.chatShows() && setting<boolean>("notifications")) void this.#notify(ward, approval);
  }

  /** What the chat asked while it was shown is asked here when it is hidden. */
  chatHidden(): void {
    const { ward } = this.connection;
    if (!ward || !setting<boolean>("notifications")) return;
    for (const approval of this.#open.values()) {
      if ((vscode.workspace.workspaceFolders ?? []).some(({ uri }) => uri.fsPath === approval.workspace)) void this.#notify(ward, approval);
    }
  }

  async #notify(ward: Ward, approval: Approval): Promise<void> {
    const longer = approval.questions.every(({ pattern }) => pattern !== undefined);
    const answers = ["Allow once", ...(longer && approval.session_id ? ["This session"] : []), ...(longer ? ["Always here"] : []), "Deny"];
    const chosen = await vscode.window.showWarningMessage(about(approval), ...answers, "Show");
    if (chosen === undefined) return;
    if (chosen === "Show") {
      await vscode.commands.executeCommand("ward.showApprovals", approval);
      return;
    }
    const scope = { "Allow once": "once", "This session": "session", "Always here": "workspace", Deny: "once" }[chosen];
    try {
      await ward.call("POST", `/approvals/${approval.id}`, { decision: chosen === "Deny" ? "deny" : "allow", scope, digest: approval.digest });
    } catch (error) {
      const closed = error instanceof Refused && (error.kind === "closed" || error.status === 404);
      void vscode.window.showInformationMessage(closed ? "Ward: that question was closed already." : `Ward: ${message(error)}`);
    }
  }

  dispose(): void {
    this.#following?.abort();
    this.#subscription.dispose();
    this.#changed.dispose();
  }
}

/** The question in one line, its thing shortened but never hidden by what is in it. */
function about({ role, action, facts, params, subject, rule, questions }: Approval): string {
  const command = facts.command?.line ?? facts.command?.argv.join(" ");
  const thing = subject.about === "host" ? subject.host : command ?? facts.paths?.map(({ path }) => path).join(", ") ?? params.command ?? params.task;
  const verb = subject.about === "host" ? "reach the network at" : WANTS[action] ?? `do ${action}`;
  const why = rule.reason || questions[0]?.why;
  return `${visible(role)} wants to ${verb} ${visible(String(thing ?? ""))}${why ? ` (${visible(why)})` : ""}`;
}

function visible(text: string): string {
  const shown = text.replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, " ");
  return shown.length > 300 ? `${shown.slice(0, 300)}… (${text.length} characters)` : shown;
}
