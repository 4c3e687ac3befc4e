import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from "react";

export interface Option {
  value: string;
  name: string;
  what?: ReactNode;
  disabled?: boolean;
  tone?: "ok" | "no";
}

interface Props {
  label: string;
  value: string;
  shown?: string;
  options: Option[];
  choose: (value: string) => void;
  className?: string;
  /** Lets a value be written that is not among the options. */
  other?: string;
  lead?: ReactNode;
  /** Told when somebody looks at the list. */
  opened?: () => unknown;
}

/** A button that opens a list to choose from, each with what it means. */
export function Picker({ label, value, shown, options, choose, className = "", other, lead, opened }: Props) {
  const [open, setOpen] = useState(false);
  const [written, setWritten] = useState("");
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();
  useEffect(() => {
    if (!open) return;
    const list = box.current?.querySelector<HTMLElement>('[aria-selected="true"]') ?? box.current?.querySelector<HTMLElement>('[role="option"]');
    list?.focus();
    const away = (event: PointerEvent) => {
      if (!box.current?.contains(event.target as Node)) setOpen(false);
    };
    addEventListener("pointerdown", away);
    return () => removeEventListener("pointerdown", away);
  }, [open]);
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  const take = (option: Option) => {
    if (option.disabled) return;
    close();
    choose(option.value);
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === "Escape") {
      event.stopPropagation();
      close();
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const items = [...(box.current?.querySelectorAll<HTMLElement>('[role="option"]') ?? [])];
    const at = items.indexOf(document.activeElement as HTMLElement);
    items[(at + step + items.length) % items.length]?.focus();
  };
  const chosen = options.find((option) => option.value === value);
  return (
    <div className="picker" ref={box} onKeyDown={open ? press : undefined}>
      <button ref={button} type="button" className={`pill ${className}`} title={shown ?? chosen?.name ?? value} aria-haspopup="listbox" aria-expanded={open} aria-controls={open ? id : undefined} onClick={() => {
        if (!open) opened?.();
        setOpen(!open);
      }}>
        {lead}<span className="pill-label">{label}</span> <b>{shown ?? chosen?.name ?? value}</b> <span aria-hidden="true">▾</span>
      </button>
      {open && (
        <div className="menu">
          <ul id={id} role="listbox" aria-label={label}>
            {options.map((option) => (
              <li key={option.value} role="option" tabIndex={-1} aria-selected={option.value === value} aria-disabled={option.disabled} className={option.tone}
                onClick={() => take(option)} onKeyDown={(event) => {
                  if (event.key !== "Enter" && event.key !== " ") return;
                  event.preventDefault();
                  take(option);
                }}>
                <span className="menu-name">{option.name}{option.value === value && <span aria-hidden="true"> ✓</span>}</span>
                {option.what && <span className="menu-what">{option.what}</span>}
              </li>
            ))}
          </ul>
          {other && (
            <form className="menu-other" onSubmit={(event) => {
              event.preventDefault();
              if (!written.trim()) return;
              close();
              choose(written.trim());
              setWritten("");
            }}>
              <input aria-label={other} placeholder={other} value={written} spellCheck={false} onChange={(event) => setWritten(event.target.value)} />
              <button type="submit" className="b">Take</button>
            </form>
          )}
        </div>
      )}
    </div>
  );
}
