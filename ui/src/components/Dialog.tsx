import { type ReactNode, useEffect, useId, useRef } from "react";

/** A question or a view above the page. Escape leaves it, and the focus goes back. */
export function Dialog({ title, close, children, wide = false }: { title: string; close: () => void; children: ReactNode; wide?: boolean }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const element = dialog.current;
    const before = document.activeElement;
    element?.showModal();
    return () => {
      element?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog ref={dialog} className={wide ? "wide" : ""} aria-labelledby={id} onCancel={(event) => { event.preventDefault(); close(); }}
      onClick={(event) => event.target === dialog.current && close()}>
      <div className="dialog-in">
        <header><h2 id={id}>{title}</h2><button type="button" className="icon" onClick={close} aria-label="Close">✕</button></header>
        {children}
      </div>
    </dialog>
  );
}
