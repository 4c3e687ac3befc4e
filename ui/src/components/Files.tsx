import { Suspense, lazy, memo, useCallback, useState } from "react";
import { api } from "../api/client";
import { Failure, sentence } from "../api/failure";
import { readResult } from "../model/result";
import { plain } from "../text/visible";
import { baseName } from "../text/words";
import { Dialog } from "./Dialog";
import { Visible } from "./Visible";

const CodeView = lazy(() => import("./CodeView"));

interface Entry {
  path: string;
  kind: string;
}

/** A file action of the person's own. It goes through the gate like every other. */
async function act(action: "fs.list" | "fs.read", params: unknown): Promise<unknown> {
  const ended = await api.act({ action, params, ask: "deny" });
  if (!("outcome" in ended) || !ended.outcome) throw new Failure("It takes longer than expected. Try again.", "busy", 503);
  if (ended.outcome.status === "failed") throw new Failure(ended.outcome.error, ended.outcome.kind, 0);
  return ended.outcome.result;
}

/** The workspace's files, folder by folder. */
export const Files = memo(function Files() {
  const [open, setOpen] = useState(false);
  const [file, setFile] = useState<string>();
  return (
    <section aria-label="Files">
      <h2><button type="button" className="fold" aria-expanded={open} onClick={() => setOpen(!open)}><span aria-hidden="true">{open ? "▾" : "▸"}</span> Files</button></h2>
      {open && <Folder path="." show={setFile} />}
      {file !== undefined && <FileDialog path={file} close={() => setFile(undefined)} />}
    </section>
  );
});

function Folder({ path, show }: { path: string; show: (path: string) => void }) {
  const [state, setState] = useState<{ entries?: Entry[]; failure?: string }>({});
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const load = useCallback((element: HTMLElement | null) => {
    if (!element) return;
    act("fs.list", { path, hidden: false }).then(
      (result) => setState({ entries: readResult(result).entries ?? [] }),
      (error) => setState({ failure: sentence(error) }),
    );
  }, [path]);
  const toggle = (name: string) => setOpened((now) => {
    const next = new Set(now);
    if (!next.delete(name)) next.add(name);
    return next;
  });
  const entries = [...(state.entries ?? [])].sort((a, b) => Number(b.kind === "directory") - Number(a.kind === "directory") || a.path.localeCompare(b.path));
  return (
    <ul className="tree" ref={load}>
      {state.failure && <li className="empty bad">{state.failure}</li>}
      {state.entries?.length === 0 && <li className="empty">Empty.</li>}
      {entries.map((entry) => (
        <li key={entry.path}>
          {entry.kind === "directory" ? (
            <>
              <button type="button" className="file" aria-expanded={opened.has(entry.path)} onClick={() => toggle(entry.path)}><span aria-hidden="true">{opened.has(entry.path) ? "▾" : "▸"}</span> <Visible text={`${baseName(entry.path)}/`} /></button>
              {opened.has(entry.path) && <Folder path={entry.path} show={show} />}
            </>
          ) : (
            <button type="button" className="file" onClick={() => show(entry.path)}><Visible text={baseName(entry.path)} /></button>
          )}
        </li>
      ))}
    </ul>
  );
}

function FileDialog({ path, close }: { path: string; close: () => void }) {
  const [state, setState] = useState<{ text?: string; failure?: string }>({});
  const load = useCallback((element: HTMLElement | null) => {
    if (!element) return;
    act("fs.read", { path }).then(
      (result) => {
        const { content } = readResult(result);
        setState(content === undefined ? { failure: "This is not text." } : { text: content });
      },
      (error) => setState({ failure: sentence(error) }),
    );
  }, [path]);
  return (
    <Dialog title={plain(path)} close={close} wide>
      <div className="file-box" ref={load}>
        {state.failure && <p className="bad">{state.failure}</p>}
        {state.text !== undefined && <Suspense fallback={<pre className="file-plain">{state.text.slice(0, 4000)}</pre>}><CodeView text={state.text} name={path} /></Suspense>}
      </div>
    </Dialog>
  );
}
