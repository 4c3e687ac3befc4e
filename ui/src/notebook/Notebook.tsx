// A notebook: its cells, edited at once and offline, and run through the gate on whichever runtime it
// has; one can be started in this page.

import type { NotebookStore, Refusal, RuntimeSession, Snapshot } from "@ward/runtime-browser";
import { type BrowserRuntime, useBrowserRuntime, useNotebook } from "@ward/runtime-browser/react";
import { useCallback, useEffect, useState } from "react";
import { sentence } from "../api/failure";
import { Visible } from "../components/Visible";
import { announce, complain } from "../model/announce";
import { address, route } from "../model/route";
import { useStore } from "../model/store";
import { plain } from "../text/visible";
import { count } from "../text/words";
import { CellView } from "./CellView";
import { Kernels } from "./Kernels";
import { open } from "./wasm";

export function NotebookPlace() {
  const at = useStore(route);
  const id = at.at === "notebook" ? at.id : undefined;
  const [store, setStore] = useState<NotebookStore>();
  const [failure, setFailure] = useState<string>();
  useEffect(() => {
    if (id === undefined) return;
    let current: NotebookStore | undefined;
    let gone = false;
    setStore(undefined);
    setFailure(undefined);
    open(id).then(
      (opened) => {
        current = opened;
        if (gone) void opened.close();
        else setStore(opened);
      },
      (error) => !gone && setFailure(sentence(error)),
    );
    return () => {
      gone = true;
      void current?.close();
    };
  }, [id]);
  if (failure) {
    return <div className="place"><div className="col"><div className="empty-box"><strong>This notebook cannot be shown.</strong><p>{failure}</p><p><a href={address({ at: "notebooks" })}>To the notebooks</a></p></div></div></div>;
  }
  return store ? <Notebook store={store} /> : <div className="place" aria-busy="true" />;
}

const LOG = (level: "debug" | "info" | "warn" | "error", words: string) => {
  if (level === "warn" || level === "error") console.warn(words);
};

function Notebook({ store }: { store: NotebookStore }) {
  const seen = useNotebook(store);
  const runtime = useBrowserRuntime(store, { options: { runtimeType: "echo" }, log: LOG });
  const [focused, focus] = useState<string>();
  const { cells, sessions, executions } = seen;
  const active = sessions.findLast((session) => session.state !== "terminated");
  const cannot = seen.line !== "open" ? "Without a connection cells can be edited, not run." : active ? undefined : "No runtime is there to run it: start one above.";

  useEffect(() => store.onRefused((refused) => complain(told(refused))), [store]);
  useEffect(() => {
    document.title = `${plain(seen.title) || "Untitled"} · Ward`;
  }, [seen.title]);
  useEffect(() => {
    if (runtime.ending?.ending === "displaced") announce(runtime.ending.message);
  }, [runtime.ending]);

  const run = useCallback((cell: string, on: boolean) => {
    const { cells, line, sessions } = store.snapshot();
    const index = cells.findIndex((one) => one.cell_id === cell);
    const one = cells[index];
    if (!one) return;
    if (one.cell_type !== "markdown" && one.cell_type !== "raw") {
      if (line !== "open") return complain("There is no connection to Ward just now. Cells can be edited, but not run.");
      if (!sessions.some((session) => session.state !== "terminated")) return complain("No runtime is there to run it. Start one above.");
      try {
        store.run(cell);
      } catch (error) {
        return complain(error);
      }
    }
    if (on) focus(cells[index + 1]?.cell_id ?? store.createCell({ after: cell }));
    else if (one.cell_type === "markdown") focus(undefined);
  }, [store]);

  return (
    <div className="place nb" tabIndex={0} role="region" aria-label="Notebook" data-line={seen.line} data-pending={seen.pending}>
      <div className="col wide-col">
        <Title store={store} title={seen.title} />
        <div className="bar nb-head">
          <Saved seen={seen} />
          <Runtime active={active} own={runtime} />
          <Kernels notebook={store.notebook} active={active} />
          <span className="grow" />
          <button type="button" className="b" disabled={cannot !== undefined} title={cannot} onClick={() => cells.forEach((cell) => ["code", "sql", "ai"].includes(cell.cell_type) && run(cell.cell_id, false))}>Run all</button>
          <a className="b" href={`/notebooks/${encodeURIComponent(store.notebook)}/ipynb`} download={`${plain(seen.title) || "notebook"}.ipynb`}>Download</a>
        </div>
        {cells.length === 0 && <div className="empty-box"><strong>This notebook has no cell yet.</strong><p>Add one, and write into it. Shift Enter runs it.</p></div>}
        {cells.map((cell, index) => (
          <CellView key={cell.cell_id} store={store} cell={cell} number={index + 1} first={index === 0} last={index === cells.length - 1}
            before={cells[index - 1]?.cell_id} beforeThat={cells[index - 2]?.cell_id} next={cells[index + 1]?.cell_id}
            execution={executions.find((one) => one.execution_id === cell.execution_id)} cannot={cannot} focused={focused === cell.cell_id} run={run} focus={focus} />
        ))}
        <div className="nb-add">
          <button type="button" className="b" onClick={() => focus(store.createCell({ after: cells.at(-1)?.cell_id }))}>+ Code</button>
          <button type="button" className="b" onClick={() => focus(store.createCell({ after: cells.at(-1)?.cell_id, type: "markdown" }))}>+ Text</button>
        </div>
      </div>
    </div>
  );
}

function told(refused: Refusal[]): string {
  const [first] = refused;
  const more = refused.length > 1 ? ` And ${count(refused.length - 1, "more change")}.` : "";
  return `A change was not taken: ${first?.why ?? ""}${more}`;
}

function Title({ store, title }: { store: NotebookStore; title: string }) {
  const [text, setText] = useState<string>();
  const save = () => {
    if (text !== undefined && text !== title) store.title(text);
    setText(undefined);
  };
  return (
    <h1 className="nb-title">
      <input aria-label="Title of the notebook" placeholder="Untitled" maxLength={200} value={text ?? title} onChange={(event) => setText(event.target.value)} onBlur={save}
        onKeyDown={(event) => event.key === "Enter" && event.currentTarget.blur()} />
    </h1>
  );
}

/** Whether Ward has all of it. */
function Saved({ seen }: { seen: Snapshot }) {
  const edits = count(seen.pending, "change");
  const where = seen.kept ? "kept in this browser" : "only in this tab";
  const [tone, words] =
    seen.line === "gone" ? ["full", `This notebook is not to be had any more. ${seen.trouble ?? ""}`]
    : seen.line === "signed_out" ? ["waits", "This browser is not signed in any more."]
    : seen.line === "lost" || seen.line === "connecting" ? ["waits", [seen.pending > 0 ? `Offline: ${edits} ${where}` : "Offline", seen.trouble].filter(Boolean).join(". ")]
    : seen.pending > 0 ? ["", `Sending ${edits}…`] : ["sandbox", "Saved"];
  return <span className={`pill ${tone}`} role="status" data-saved={seen.pending === 0 && seen.line === "open"}><i className="dot" aria-hidden="true" /><b>{words}</b></span>;
}

const DOES: Record<RuntimeSession["state"], string> = { starting: "starting", ready: "ready", busy: "busy", restarting: "restarting", terminated: "over" };

/** What people call a runtime: one that Ward started has a name that says nothing. */
const nameOf = (session: RuntimeSession) => (session.runtime_id.startsWith("ward-") ? session.runtime_type : session.runtime_id);

/** Who runs the cells, and the runtime of this page. */
function Runtime({ active, own }: { active: RuntimeSession | undefined; own: BrowserRuntime }) {
  const here = own.state === "running";
  return (
    <>
      <span className={active ? "pill" : "pill waits"} role="status" data-runtime={active?.runtime_id ?? "none"} data-state={active?.state ?? "none"}>
        <span className="pill-label">runtime</span> <b>{active ? <><Visible text={nameOf(active)} />, {DOES[active.state]}</> : "none"}</b>
      </span>
      {here ? <button type="button" className="b" onClick={own.stop}>Stop the one in this page</button> : <button type="button" className="b" onClick={own.start}>{active ? "Take over in this page" : "Start one in this page"}</button>}
      {!here && own.ending && own.ending.ending !== "shutdown" && <span className="soft" data-ending={own.ending.ending}>{own.ending.message}</span>}
    </>
  );
}
