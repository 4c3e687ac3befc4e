// Everything that the page asks Ward for. The types come from Ward's own document.

import { ask } from "../host";
import { failureOf, unreachable } from "./failure";
import type {
  ActionEnded, ActionState, AgentInfo, AgentList, Approval, Changes, GrantInfo, Grants, Health, Models, Page, PatchSession, PostAction, PostAnswer,
  NotebookInfo, NotebookList, PostAttention, PostFork, PostMessage, PostSession, Resolved, Roles, Runtimes, SessionAnswer, SessionInfo, Sessions,
  UndoParams, Undone, Verdict,
} from "./schema";

/** What may be left out of a body, may be left out here. */
type Loose<T, Needed extends keyof T> = Pick<T, Needed> & Partial<Omit<T, Needed>>;

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  let response: Response;
  try {
    response = await ask(path, {
      method,
      headers: body === undefined ? {} : { "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw unreachable();
  }
  if (!response.ok) throw await failureOf(response);
  if (response.status === 204) return undefined as T;
  return (await response.json()) as T;
}

const id = encodeURIComponent;

function query(values: Record<string, string | number | undefined>): string {
  const set = Object.entries(values).filter(([, value]) => value !== undefined && value !== "");
  if (set.length === 0) return "";
  return `?${new URLSearchParams(set.map(([name, value]) => [name, String(value)]))}`;
}

export const api = {
  health: () => call<Health>("GET", "/healthz"),
  models: () => call<Models>("GET", "/models"),
  roles: (workspace?: string) => call<Roles>("GET", `/roles${query({ workspace })}`),
  runtimes: () => call<Runtimes>("GET", "/runtimes"),

  sessions: () => call<Sessions>("GET", "/sessions"),
  session: (session: string) => call<SessionInfo>("GET", `/sessions/${id(session)}`),
  begin: (asked: Loose<PostSession, "input">) => call<SessionAnswer>("POST", "/sessions", { wait: 0, ...asked }),
  say: (session: string, asked: Loose<PostMessage, "input">) =>
    call<SessionAnswer>("POST", `/sessions/${id(session)}/messages`, { wait: 0, ...asked }),
  cancel: (session: string) => call<unknown>("POST", `/sessions/${id(session)}/cancel`),
  change: (session: string, change: PatchSession) => call<SessionInfo>("PATCH", `/sessions/${id(session)}`, change),
  remove: (session: string) => call<unknown>("DELETE", `/sessions/${id(session)}`),
  fork: (session: string, fork: PostFork) => call<SessionInfo>("POST", `/sessions/${id(session)}/fork`, fork),

  act: (asked: Loose<PostAction, "action">) => call<ActionEnded | ActionState>("POST", "/actions", asked),
  action: (action: string) => call<ActionState>("GET", `/actions/${id(action)}`),
  changes: (action: string) => call<Changes>("GET", `/actions/${id(action)}/changes`),
  undo: (what: UndoParams) => call<Undone>("POST", "/undo", what),

  approval: (approval: string) => call<Approval>("GET", `/approvals/${id(approval)}`),
  answer: (approval: string, answer: Loose<PostAnswer, "decision" | "digest">) =>
    call<Resolved>("POST", `/approvals/${id(approval)}`, answer),
  attend: (client: string, attention: PostAttention) => call<PostAttention>("POST", `/clients/${id(client)}`, attention),

  grants: () => call<Grants>("GET", "/grants"),
  revoke: (grant: string) => call<GrantInfo>("DELETE", `/grants/${id(grant)}`),

  notebooks: () => call<NotebookList>("GET", "/notebooks"),
  makeNotebook: (asked: { title?: string }) => call<NotebookInfo>("POST", "/notebooks", asked),
  /** One from a file, by its text: read and written anew here, its large numbers would lose digits. */
  openNotebook: (title: string, ipynb: string) => call<NotebookInfo>("POST", "/notebooks", { title, ipynb }),
  kernels: (notebook: string) => call<AgentList>("GET", `/notebooks/${id(notebook)}/agents`),
  startKernel: (notebook: string, kernel: string) => call<AgentInfo>("POST", `/notebooks/${id(notebook)}/agents`, { kernel }),
  stopKernel: (notebook: string, agent: string) => call<unknown>("DELETE", `/notebooks/${id(notebook)}/agents/${id(agent)}`),
  removeNotebook: (notebook: string) => call<NotebookInfo>("DELETE", `/notebooks/${id(notebook)}`),

  ledger: (filter: { after?: number; limit?: number; last?: number; kind?: string; session?: string; action?: string }) =>
    call<Page>("GET", `/ledger${query(filter)}`),
  verify: () => call<Verdict>("GET", "/ledger/verify"),

  signOut: () => call<undefined>("POST", "/logout"),
};

/** An id of our own for what is sent, so that it is done once however often it is sent. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(36).padStart(2, "0")).join("");
}
