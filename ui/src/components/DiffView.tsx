import { memo, useState } from "react";
import type { Diff } from "../text/diff";
import { count } from "../text/words";
import { Visible } from "./Visible";

const FEW = 400;

export const DiffView = memo(function DiffView({ diff, label }: { diff: Diff; label: string }) {
  const [all, setAll] = useState(false);
  const lines = all ? diff.lines : diff.lines.slice(0, FEW);
  return (
    <>
      <div className="diff" tabIndex={0} role="group" aria-label={label}>
        <div className="diff-in">
          {lines.map((line, index) =>
            line.kind === "file" || line.kind === "hunk" ? (
              <div key={index} className={line.kind === "file" ? "diff-file" : "diff-hunk"}><Visible text={line.text} /></div>
            ) : (
              <div key={index} className={`diff-line ${line.kind}`}>
                <span className="diff-n" aria-hidden="true">{line.new ?? line.old}</span>
                <span className="diff-sign">{line.kind === "add" ? "+" : line.kind === "del" ? "−" : " "}</span>
                <Visible text={line.text || " "} />
              </div>
            ),
          )}
        </div>
      </div>
      {!all && diff.lines.length > FEW && (
        <button type="button" className="link more" onClick={() => setAll(true)}>Show all {count(diff.lines.length, "line")}</button>
      )}
    </>
  );
});

export function PlusMinus({ added, removed }: { added: number; removed: number }) {
  return (
    <>
      <span className="plus">+{added}</span>
      {removed > 0 && <span className="minus"> −{removed}</span>}
    </>
  );
}

export function Counts({ diff }: { diff: Diff }) {
  return (
    <span className="counts">
      <PlusMinus added={diff.added} removed={diff.removed} />
    </span>
  );
}
