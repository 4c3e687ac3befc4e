import type { Cell, CellType, Execution, NotebookStore } from "@ward/runtime-browser";
import { memo, useState } from "react";
import { AskView } from "../components/Bubble";
import { Visible } from "../components/Visible";
import { Markdown } from "../markdown/Markdown";
import { complain } from "../model/announce";
import { inbox } from "../model/inbox";
import { useStore } from "../model/store";
import { Editor } from "./Editor";
import { Outputs } from "./Outputs";
import { Question } from "./Question";

const TYPES: Record<CellType, string> = { code: "Code", markdown: "Markdown", sql: "SQL", ai: "AI", raw: "Raw" };
const STATES: Record<Execution["state"], string> = {
  requested: "waits for the gate", assigned: "waits for its turn", running: "running", completed: "done", failed: "failed", cancelled: "cancelled",
};
const OVER = new Set<Execution["state"]>(["completed", "failed", "cancelled"]);

interface Props {
  store: NotebookStore;
  cell: Cell;
  execution: Execution | undefined;
  number: number;
  first: boolean;
  last: boolean;
  before: string | undefined;
  beforeThat: string | undefined;
  next: string | undefined;
  /** Whether it can run just now, and why not. */
  cannot: string | undefined;
  focused: boolean;
  run: (cell: string, on: boolean) => void;
  focus: (cell: string | undefined) => void;
}

export const CellView = memo(function CellView({ store, cell, execution, number, first, last, before, beforeThat, next, cannot, focused, run, focus }: Props) {
  const id = cell.cell_id;
  const runs = cell.cell_type === "code" || cell.cell_type === "sql" || cell.cell_type === "ai";
  const [edits, setEdits] = useState(false);
  const shown = cell.cell_type === "markdown" && !edits && cell.source.trim() !== "" && !focused;
  const name = `cell ${number}`;
  // What went wrong in the cell itself stands among its outputs.
  const told = execution?.failed?.kind === "error" && cell.outputs?.some((output) => output.type === "error");
  const open = execution && !OVER.has(execution.state);
  const step = (on: boolean) => {
    setEdits(false);
    run(id, on);
  };
  const attempt = (work: () => void) => {
    try {
      work();
    } catch (error) {
      complain(error);
    }
  };
  return (
    <section className="nb-cell" aria-label={`Cell ${number}, ${TYPES[cell.cell_type]}`} data-cell={id} data-state={execution?.state ?? "idle"}>
      <div className="nb-gutter">
        {runs && (open ? (
          <button type="button" className="icon nb-run is-open" aria-label={`Stop ${name}`} disabled={execution.cancel === true} onClick={() => attempt(() => store.cancel(execution.execution_id))}>■</button>
        ) : (
          <button type="button" className="icon nb-run" aria-label={`Run ${name}`} title={cannot ?? "Run (Shift Enter)"} disabled={cannot !== undefined} onClick={() => step(false)}>▶</button>
        ))}
        <span className="numbers" aria-hidden="true">{cell.execution_count ? `[${cell.execution_count}]` : ""}</span>
      </div>
      <div className="nb-body">
        <div className="nb-bar">
          <select aria-label={`Type of ${name}`} value={cell.cell_type} onChange={(event) => store.setType(id, event.target.value as CellType)}>
            {Object.entries(TYPES).map(([value, name]) => <option key={value} value={value}>{name}</option>)}
          </select>
          <span className="nb-state" role="status">{execution && execution.state !== "completed" ? (execution.input ? "waits for an answer" : STATES[execution.state]) : ""}</span>
          <span className="grow" />
          <span className="nb-acts">
            <button type="button" className="icon small" aria-label={`Move ${name} up`} disabled={first} onClick={() => before !== undefined && store.moveCell(id, beforeThat)}>↑</button>
            <button type="button" className="icon small" aria-label={`Move ${name} down`} disabled={last} onClick={() => next !== undefined && store.moveCell(id, next)}>↓</button>
            <button type="button" className="icon small" aria-label={`Add a cell below ${name}`} onClick={() => focus(store.createCell({ after: id, type: cell.cell_type }))}>+</button>
            <button type="button" className="icon small" aria-label={`Delete ${name}`} onClick={() => store.deleteCell(id)}>✕</button>
          </span>
        </div>
        {shown ? (
          <div className="nb-markdown" onDoubleClick={() => { setEdits(true); focus(id); }}>
            <Markdown text={cell.source} />
            <button type="button" className="link quiet" onClick={() => { setEdits(true); focus(id); }}>edit</button>
          </div>
        ) : (
          <Editor store={store} cell={id} type={cell.cell_type} label={`Source of ${name}`} source={cell.source} run={() => step(true)} runHere={() => step(false)} focused={focused} entered={() => focus(id)} />
        )}
        {execution?.state === "requested" && <Asked execution={execution.execution_id} />}
        {cell.outputs && cell.outputs.length > 0 && <Outputs store={store} outputs={cell.outputs} label={`Output of ${name}`} />}
        {execution?.state === "running" && <Question key={execution.execution_id} store={store} execution={execution} name={name} />}
        {execution?.failed && !told && <p className="nb-failed"><Visible text={execution.failed.message} /> <span className="soft">({execution.failed.kind})</span></p>}
      </div>
    </section>
  );
});

/** The question that a run waits for. */
function Asked({ execution }: { execution: string }) {
  const { open } = useStore(inbox);
  const asked = open.find((approval) => approval.action === "cell.execute" && (approval.params as { execution_id?: unknown }).execution_id === execution);
  return asked ? <AskView approval={asked} keys={false} elsewhere={false} resolved={undefined} /> : null;
}
