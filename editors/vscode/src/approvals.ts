// What waits for this person's answer: followed as it changes, counted, and asked as a notification
// while the chat does not show it.

import * as vscode from "vscode";
import type { Connection } from "./connection";
import { message } from "./connection";
import { setting } from "./find";
import { inform, warn } from "./notice";
import { about, type Asked } from "./question";
import { Refused, type Ward } from "./ward";

export interface Approval extends Asked {
  id: string;
  digest: string;
  action_id: string;
  session_id?: string;
  questions: { touch: string; why: string; pattern?: string }[];
}

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
    void this.#show(ward, approval);
  }

  async #show(ward: Ward, approval: Approval): Promise<void> {
    if (!setting<boolean>("notifications") || !(await isOurs(this.connection, ward, approval))) return;
    if (this.#open.has(approval.id) && !this.chatShows()) await this.#notify(ward, approval);
  }

  /** What the chat asked while it was shown is asked here when it is hidden. */
  chatHidden(): void {
    const { ward } = this.connection;
    if (!ward) return;
    for (const approval of this.#open.values()) void this.#show(ward, approval);
  }

  async #notify(ward: Ward, approval: Approval): Promise<void> {
    const { text, whole } = about(approval);
    const longer = approval.questions.every(({ pattern }) => pattern !== undefined);
    // A yes is only offered to what is seen whole.
    const yes = whole ? ["Allow once", ...(longer && approval.session_id ? ["This session"] : []), ...(longer ? ["Always here"] : [])] : [];
    const chosen = await warn(text, ...yes, "Deny", "Show");
    if (chosen === undefined) return;
    if (chosen === "Show") {
      await vscode.commands.executeCommand("ward.showApprovals", approval);
      return;
    }
    const scope = chosen === "This session" ? "session" : chosen === "Always here" ? "workspace" : "once";
    const patterns = scope === "once" ? undefined : await narrowed(approval, scope);
    // Who thinks better of it is asked again.
    if (scope !== "once" && !patterns) return this.#open.has(approval.id) ? this.#notify(ward, approval) : undefined;
    try {
      await ward.call("POST", `/approvals/${approval.id}`, { decision: chosen === "Deny" ? "deny" : "allow", scope, patterns, digest: approval.digest });
    } catch (error) {
      const closed = error instanceof Refused && (error.kind === "closed" || error.status === 404);
      void inform(closed ? "Ward: that question was closed already." : `Ward: ${message(error)}`);
    }
  }

  dispose(): void {
    this.#following?.abort();
    this.#subscription.dispose();
    this.#changed.dispose();
  }
}

/** Whether a question is this window's: about a folder that it shows, or in a conversation that acts in it. A Ward on
 *  another machine has no such folder, and calls the workspace by one of its own. */
async function isOurs(connection: Connection, ward: Ward, { workspace, session_id }: Approval): Promise<boolean> {
  if (connection.shows(workspace)) return true;
  if (session_id === undefined) return false;
  const session = await ward.call<{ runtime?: unknown }>("GET", `/sessions/${encodeURIComponent(session_id)}`).catch(() => undefined);
  return connection.runtimes.some(({ runtimeId }) => runtimeId === session?.runtime);
}

/** What a longer yes is to cover, as the person has seen and perhaps narrowed it; nothing where they think better of it. */
async function narrowed({ questions }: Approval, scope: "session" | "workspace"): Promise<string[] | undefined> {
  const patterns: string[] = [];
  for (const offered of new Set(questions.map(({ pattern }) => pattern ?? ""))) {
    const pattern = await vscode.window.showInputBox({
      title: scope === "session" ? "Ward: allowed until this session ends" : "Ward: always allowed in this workspace",
      prompt: "From now on this is not asked about. Narrow it where you mean less; Escape gives nothing.",
      value: offered,
      ignoreFocusOut: true,
      validateInput: (text) => (text.trim() === "" ? "Without a pattern nothing is allowed." : undefined),
    });
    if (pattern === undefined) return undefined;
    patterns.push(pattern);
  }
  return patterns;
}
