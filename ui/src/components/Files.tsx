import { Suspense, lazy, memo, useEffect, useState } from "react";
import { api } from "../api/client";
import { Failure, sentence } from "../api/failure";
import { type ChangedFile, changeOf, kept } from "../model/changes";
import { feed } from "../model/feed";
import { readResult } from "../model/result";
import { list } from "../model/sessions";
import { useStore } from "../model/store";
import { plain } from "../text/visible";
import { baseName, clock } from "../text/words";
import { Dialog } from "./Dialog";
import { Counts, DiffView, PlusMinus } from "./DiffView";
import { Visible } from "./Visible";

const CodeView = lazy(() => import("./CodeView"));

interface Entry {
  path: string;
  kind: string;
  modified?: number;
}

/** A file action of the person's own. It goes through the gate like every other. */
async function act(action: "fs.list" | "fs.read", params: unknown, workspace: string | undefined): Promise<unknown> {
  const ended = await api.act({ action, params, ask: "deny", ...(workspace && { workspace }) });
  if (!("outcome" in ended) || !ended.outcome) throw new Failure("It takes longer than expected. Try again.", "busy", 503);
  if (ended.outcome.status === "failed") throw new Failure(ended.outcome.error, ended.outcome.kind, 0);
  return ended.outcome.result;
}

interface Marks {
  workspace: string | undefined;
  changed: ReadonlyMap<string, ChangedFile>;
  /** When the session began: what is newer was changed meanwhile, by a command perhaps. */
  since: number | undefined;
  /** Another one where folders have to be looked at again. */
  done: string;
}

/** The workspace's files, folder by folder, with what changed in this session. */
export const Files = memo(function Files({ session, changed }: { session: string | undefined; changed: ChangedFile[] }) {
  const [open, setOpen] = useState(false);
  const [file, setFile] = useState<string>();
  const { conversation } = useStore(feed);
  const since = useStore(list).sessions.find((other) => other.session_id === session)?.created_at;
  const workspace = (session && conversation.workspace) || undefined;
  const marks: Marks = {
    workspace,
    changed: new Map(changed.map((one) => [one.path, one])),
    since,
    done: session ? `${changed.length} ${conversation.running}` : "",
  };
  return (
    <section aria-label="Files">
      <h2><button type="button" className="fold" aria-expanded={open} onClick={() => setOpen(!open)}><span aria-hidden="true">{open ? "▾" : "▸"}</span> Files{changed.length > 0 && <span className="badge"><span className="sr">, </span>{changed.length}<span className="sr"> changed</span></span>}</button></h2>
      {open && <Folder path="." marks={marks} show={setFile} />}
      {file !== undefined && <FileDialog path={file} workspace={workspace} changed={marks.changed.get(file)} close={() => setFile(undefined)} />}
    </section>
  );
});

function Folder({ path, marks, show }: { path: string; marks: Marks; show: (path: string) => void }) {
  const [state, setState] = useState<{ entries?: Entry[]; failure?: string }>({});
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const { workspace, done } = marks;
  useEffect(() => {
    let current = true;
    act("fs.list", { path, hidden: false }, workspace).then(
      (result) => current && setState({ entries: readResult(result).entries ?? [] }),
      (error) => current && setState({ failure: sentence(error) }),
    );
    return () => {
      current = false;
    };
  }, [path, workspace, done]);
  const toggle = (name: string) => setOpened((now) => {
    const next = new Set(now);
    if (!next.delete(name)) next.add(name);
    return next;
  });
  const there = state.entries ?? [];
  // What is gone is still told, where it was.
  const gone = state.entries === undefined ? [] : [...marks.changed.values()].filter((file) => file.what === "deleted" && folderOf(file.path) === path && !there.some((entry) => entry.path === file.path));
  const entries = [...there, ...gone.map((file) => ({ path: file.path, kind: "gone" }))]
    .sort((a, b) => Number(b.kind === "directory") - Number(a.kind === "directory") || a.path.localeCompare(b.path));
  return (
    <ul className="tree">
      {state.failure && <li className="empty bad">{state.failure}</li>}
      {state.entries !== undefined && entries.length === 0 && <li className="empty">Empty.</li>}
      {entries.map((entry) => (
        <li key={entry.path}>
          {entry.kind === "directory" ? (
            <>
              <button type="button" className="file" aria-expanded={opened.has(entry.path)} onClick={() => toggle(entry.path)}>
                <span className="name"><span aria-hidden="true">{opened.has(entry.path) ? "▾" : "▸"}</span> <Visible text={`${baseName(entry.path)}/`} /></span>
                {[...marks.changed.keys()].some((name) => name.startsWith(`${entry.path}/`)) && <span className="touched" title="Something in it changed in this session"><span className="sr">, changed</span></span>}
              </button>
              {opened.has(entry.path) && <Folder path={entry.path} marks={marks} show={show} />}
            </>
          ) : <FileRow entry={entry} marks={marks} show={show} />}
        </li>
      ))}
    </ul>
  );
}

function FileRow({ entry, marks, show }: { entry: Entry; marks: Marks; show: (path: string) => void }) {
  const changed = marks.changed.get(entry.path);
  const newer = !changed && entry.modified !== undefined && marks.since !== undefined && entry.modified >= marks.since;
  return (
    <button type="button" className={changed ? `file is-${changed.what}` : "file"} data-changed={changed?.what ?? (newer ? "newer" : undefined)} onClick={() => show(entry.path)}>
      <span className="name"><Visible text={baseName(entry.path)} /></span>
      {changed && <span className="mark-of"><WhatChanged file={changed} /></span>}
      {newer && <span className="touched" title={`Changed since this session began: ${clock(entry.modified ?? 0)}`}><span className="sr">, changed since this session began</span></span>}
    </button>
  );
}

export function WhatChanged({ file }: { file: ChangedFile }) {
  if (file.what !== "changed" && file.what !== "new") return <span className="soft">{file.what}</span>;
  return <><PlusMinus added={file.added} removed={file.removed} />{file.what === "new" && <span className="soft"> new</span>}</>;
}

function folderOf(path: string): string {
  const at = path.lastIndexOf("/");
  return at < 0 ? "." : path.slice(0, at);
}

/** A file, and what this session changed in it. */
export function FileDialog({ path, workspace, changed, close }: { path: string; workspace: string | undefined; changed: ChangedFile | undefined; close: () => void }) {
  const [state, setState] = useState<{ text?: string; failure?: string }>({});
  const [view, setView] = useState<"file" | "changes">(changed && changed.what !== "moved" ? "changes" : "file");
  useEffect(() => {
    let current = true;
    act("fs.read", { path }, workspace).then(
      (result) => {
        const { content } = readResult(result);
        if (current) setState(content === undefined ? { failure: "This is not text." } : { text: content });
      },
      (error) => current && setState({ failure: sentence(error) }),
    );
    return () => {
      current = false;
    };
  }, [path, workspace]);
  return (
    <Dialog title={plain(path)} close={close} wide>
      {changed && (
        <div className="row-of" role="group" aria-label="What is shown">
          {(["changes", "file"] as const).map((one) => <button key={one} type="button" className={view === one ? "chip on" : "chip"} aria-pressed={view === one} onClick={() => setView(one)}>{one === "file" ? "The file as it is" : "Changes of this session"}</button>)}
        </div>
      )}
      <div className="file-box">
        {view === "changes" && changed ? <Changes file={changed} /> : (
          <>
            {state.failure && <p className="bad pad">{state.failure}</p>}
            {state.text !== undefined && <Suspense fallback={<pre className="file-plain">{state.text.slice(0, 4000)}</pre>}><CodeView text={state.text} name={path} /></Suspense>}
          </>
        )}
      </div>
    </Dialog>
  );
}

function Changes({ file }: { file: ChangedFile }) {
  const known = useStore(kept);
  return (
    <div className="changes" tabIndex={0} role="group" aria-label="Changes of this session">
      {file.calls.map((call, index) => {
        const change = changeOf(call, known);
        return (
          <section key={call.key}>
            <h3>{index + 1}. {call.called.action} {change && <Counts diff={change.diff} />}</h3>
            {change ? <DiffView diff={change.diff} label={`Change ${index + 1}`} /> : <p className="soft">There is no text to compare.</p>}
          </section>
        );
      })}
    </div>
  );
}
