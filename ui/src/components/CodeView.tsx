// A file, to be read. CodeMirror is loaded when the first one is opened.

import { syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView, highlightSpecialChars, lineNumbers } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import { useEffect, useRef } from "react";
import { host } from "../host";
import { baseName } from "../text/words";
import { languageOf } from "./highlight";

/** Characters that change the direction of writing or have no width are shown too. */
export const HIDDEN = /[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

export default function CodeView({ text, name }: { text: string; name: string }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!box.current) return;
    const language = new Compartment();
    const view = new EditorView({
      parent: box.current,
      state: EditorState.create({
        doc: text,
        extensions: [
          lineNumbers(),
          highlightSpecialChars({ addSpecialChars: HIDDEN }),
          EditorState.readOnly.of(true),
          EditorView.editable.of(false),
          EditorView.contentAttributes.of({ tabindex: "0", "aria-label": `Content of ${name}` }),
          EditorView.cspNonce.of(host.nonce),
          syntaxHighlighting(classHighlighter),
          language.of([]),
        ],
      }),
    });
    const ending = /\.(\w+)$/.exec(baseName(name))?.[1];
    void (ending ? languageOf(ending) : undefined)?.then((found) => found && view.dispatch({ effects: language.reconfigure(found) }));
    return () => view.destroy();
  }, [text, name]);
  return <div ref={box} className="code-view" />;
}
