// What a cell says, to be edited. Each change is written as it is made, and what others change is
// taken over where it happened, so that the cursor stays where it was.

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { Annotation, Compartment, EditorState, Prec, Transaction } from "@codemirror/state";
import { EditorView, highlightSpecialChars, keymap } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import type { CellType, NotebookStore, Splice } from "@ward/runtime-browser";
import { useEffect, useRef, useState } from "react";
import { HIDDEN } from "../components/CodeView";
import { Visible } from "../components/Visible";
import { languageOf } from "../components/highlight";
import { host } from "../host";

const FromElsewhere = Annotation.define<true>();

interface Props {
  store: NotebookStore;
  cell: string;
  type: CellType;
  label: string;
  source: string;
  /** Shift and Enter: on to the next. */
  run: () => void;
  /** Ctrl and Enter: and stay. */
  runHere: () => void;
  focused: boolean;
  /** Somebody went there by themselves. */
  entered: () => void;
}

const LANGUAGES: Partial<Record<CellType, string>> = { code: "python", markdown: "markdown" };

/** How far out of sight an editor is made already. */
const AHEAD = "900px 0px";

/** An editor where somebody looks, or is about to: each that is made costs a layout of the whole page. Elsewhere only what it says. */
export function Editor(props: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [near, setNear] = useState(false);
  const made = near || props.focused;
  useEffect(() => {
    if (made || !box.current) return;
    const watch = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && setNear(true), { root: box.current.closest(".place"), rootMargin: AHEAD });
    watch.observe(box.current);
    return () => watch.disconnect();
  }, [made]);
  // It stays one, also where the focus goes on.
  useEffect(() => {
    if (props.focused) setNear(true);
  }, [props.focused]);
  if (made) return <Live {...props} />;
  return <div ref={box} className="nb-editor nb-far" role="textbox" aria-multiline="true" aria-label={props.label} tabIndex={0} onFocus={props.entered}><Visible text={props.source} /></div>;
}

function Live({ store, cell, type, label, run, runHere, focused, entered }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const made = useRef<EditorView>(undefined);
  const asked = useRef({ run, runHere, entered });
  asked.current = { run, runHere, entered };
  useEffect(() => {
    if (!box.current) return;
    const language = new Compartment();
    const view = new EditorView({
      parent: box.current,
      state: EditorState.create({
        doc: store.cell(cell)?.source ?? "",
        extensions: [
          // One line end, of one unit: places are counted as Ward counts them.
          EditorState.lineSeparator.of("\n"),
          Prec.highest(keymap.of([
            { key: "Shift-Enter", run: () => (asked.current.run(), true) },
            { key: "Mod-Enter", run: () => (asked.current.runHere(), true) },
          ])),
          history(),
          keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
          indentUnit.of("    "),
          bracketMatching(),
          EditorView.lineWrapping,
          highlightSpecialChars({ addSpecialChars: HIDDEN }),
          EditorView.contentAttributes.of({ "aria-label": label }),
          EditorView.cspNonce.of(host.nonce),
          syntaxHighlighting(classHighlighter),
          language.of([]),
          EditorView.domEventHandlers({ focus: () => asked.current.entered() }),
          EditorView.updateListener.of((update) => {
            if (!update.docChanged || update.transactions.some((one) => one.annotation(FromElsewhere))) return;
            const splices: Splice[] = [];
            update.changes.iterChanges((from, to, at, _, inserted) => splices.push({ at, delete: to - from, insert: inserted.toString() }));
            store.splice(cell, splices);
          }),
        ],
      }),
    });
    made.current = view;
    const name = LANGUAGES[type];
    void (name ? languageOf(name) : undefined)?.then((found) => found && view.dispatch({ effects: language.reconfigure(found) }));
    const take = () => {
      const source = store.cell(cell)?.source;
      const now = view.state.doc.toString();
      if (source === undefined || source === now) return;
      let from = 0;
      while (from < now.length && from < source.length && now[from] === source[from]) from++;
      let end = 0;
      while (end < Math.min(now.length, source.length) - from && now[now.length - 1 - end] === source[source.length - 1 - end]) end++;
      view.dispatch({
        changes: { from, to: now.length - end, insert: source.slice(from, source.length - end) },
        annotations: [FromElsewhere.of(true), Transaction.addToHistory.of(false)],
      });
    };
    const stop = store.subscribe(take);
    take();
    return () => {
      stop();
      view.destroy();
    };
  }, [store, cell, type]);
  useEffect(() => {
    made.current?.contentDOM.setAttribute("aria-label", label);
  }, [label]);
  useEffect(() => {
    if (focused) made.current?.focus();
  }, [focused]);
  return <div ref={box} className="nb-editor" />;
}
