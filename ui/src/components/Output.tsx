import { memo, useLayoutEffect, useRef, useState } from "react";
import type { Lines, Style } from "../model/ansi";
import { Visible } from "./Visible";

/** The height of a line in the style sheet. */
const LINE = 19;
const MARGIN = 30;
/** Longer lines are cut: one line must not cost as much as all others. */
const LONGEST = 4000;

/** What a command printed. Only the lines that can be seen are there, so that 100,000 are no more
 *  work than ten. It stays at the end while the end is in sight. */
export const Output = memo(function Output({ lines, printed, label, tall = false }: { lines: Lines; printed: number; label: string; tall?: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const [view, setView] = useState({ first: 0, last: 60 });
  const { count } = lines;
  const look = () => {
    const element = box.current;
    if (!element) return;
    atEnd.current = element.scrollTop + element.clientHeight >= element.scrollHeight - LINE;
    const first = Math.max(0, Math.floor(element.scrollTop / LINE) - MARGIN);
    const last = Math.ceil((element.scrollTop + element.clientHeight) / LINE) + MARGIN;
    setView((now) => (now.first === first && now.last === last ? now : { first, last }));
  };
  useLayoutEffect(() => {
    const element = box.current;
    if (element && atEnd.current) element.scrollTop = element.scrollHeight;
    look();
  }, [count, printed, tall]);
  const first = Math.min(view.first, count);
  const last = Math.min(view.last, count);
  const rows = [];
  for (let index = first; index < last; index++) rows.push(<Row key={index} lines={lines} index={index} printed={index === count - 1 ? printed : 0} />);
  return (
    <div ref={box} className={tall ? "term tall" : "term"} onScroll={look} tabIndex={0} role="group" aria-label={label} data-lines={count}>
      <div className="term-all" style={{ height: count * LINE }}>
        <div className="term-seen" style={{ transform: `translateY(${first * LINE}px)` }}>{rows}</div>
      </div>
    </div>
  );
});

const Row = memo(function Row({ lines, index }: { lines: Lines; index: number; printed: number }) {
  let left = LONGEST;
  const runs = [];
  for (const [at, run] of lines.runs(index).entries()) {
    if (left <= 0) break;
    const text = run.text.length > left ? `${run.text.slice(0, left)} …` : run.text;
    left -= run.text.length;
    runs.push(<Coloured key={at} text={text} style={run.style} />);
  }
  return <div className="term-line">{runs.length > 0 ? runs : " "}</div>;
});

function Coloured({ text, style }: { text: string; style: Style }) {
  const classes: string[] = [];
  const colours: { color?: string; backgroundColor?: string } = {};
  let { fg, bg } = style;
  if (style.inverse) [fg, bg] = [bg ?? "var(--term)", fg ?? "var(--term-text)"];
  if (typeof fg === "number") classes.push(`fg${fg}`);
  else if (fg) colours.color = fg;
  if (typeof bg === "number") classes.push(`bg${bg}`);
  else if (bg) colours.backgroundColor = bg;
  for (const name of ["bold", "dim", "italic", "underline", "strike"] as const) if (style[name]) classes.push(`t-${name}`);
  if (classes.length === 0 && !colours.color && !colours.backgroundColor) return <Visible text={text} />;
  return <span className={classes.join(" ")} style={colours}><Visible text={text} /></span>;
}
