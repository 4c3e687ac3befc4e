// What a running cell asks whoever is in front, and the box for the answer.

import type { Execution, NotebookStore } from "@ward/runtime-browser";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { Visible } from "../components/Visible";
import { announce, complain } from "../model/announce";

/** There for as long as the cell runs, so that it can say that it was answered. */
export function Question({ store, execution, name }: { store: NotebookStore; execution: Execution; name: string }) {
  const [answered, setAnswered] = useState(false);
  const [sends, setSends] = useState(false);
  const box = useRef<HTMLInputElement>(null);
  const asked = execution.input;
  const asks = Boolean(asked);
  useEffect(() => {
    if (!asks) return;
    announce(`${name} asks for a line.`);
    // Who writes elsewhere goes on writing there.
    if (document.activeElement === document.body || document.activeElement?.closest(`[data-cell="${execution.cell_id}"]`)) box.current?.focus();
  }, [asks, name, execution.cell_id]);
  if (!asked) return answered ? <p className="nb-asked soft" role="status">Answered.</p> : null;
  const send = async (event: FormEvent) => {
    event.preventDefault();
    if (!box.current || sends) return;
    setSends(true);
    try {
      await store.answer(execution.execution_id, box.current.value);
      setAnswered(true);
      // It is kept nowhere, and not here either.
      if (box.current) box.current.value = "";
    } catch (error) {
      complain(error);
    }
    setSends(false);
  };
  return (
    <form className="nb-asked" onSubmit={send} autoComplete="off">
      <label>
        <span className="soft">The cell asks:</span> <span className="nb-prompt"><Visible text={asked.prompt} /></span>
        <input ref={box} type={asked.password ? "password" : "text"} autoComplete={asked.password ? "new-password" : "off"} spellCheck={false} maxLength={65536} readOnly={sends} aria-label={`Answer to ${name}`} />
      </label>
      <button type="submit" className="b" disabled={sends}>Answer</button>
    </form>
  );
}
