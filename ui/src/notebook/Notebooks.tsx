// The list of notebooks. It needs nothing of what shows one.

import { useRef, useState } from "react";
import { api } from "../api/client";
import { sentence } from "../api/failure";
import type { NotebookInfo } from "../api/schema";
import { Dialog } from "../components/Dialog";
import { complain } from "../model/announce";
import { address, go } from "../model/route";
import { Asked } from "../model/ward";
import { plain } from "../text/visible";
import { ago, baseName } from "../text/words";

const notebooks = new Asked(() => api.notebooks().then(({ notebooks }) => notebooks));

export function Notebooks() {
  const { value, failure } = notebooks.use();
  const [removes, setRemoves] = useState<NotebookInfo>();
  const file = useRef<HTMLInputElement>(null);
  const show = async (made: Promise<NotebookInfo>) => {
    try {
      const { id } = await made;
      go({ at: "notebook", id });
    } catch (error) {
      complain(error);
    }
  };
  const read = async (chosen: File) => {
    const opened = api.openNotebook(chosen.name.replace(/\.ipynb$/, "").slice(0, 200), await chosen.text());
    await show(opened.catch((error: unknown) => {
      throw new Error(`${chosen.name} cannot be opened: ${sentence(error)}`);
    }));
  };
  return (
    <div className="place" tabIndex={0} role="region" aria-label="Notebooks">
      <div className="col wide-col">
        <h1>Notebooks</h1>
        <p className="lead">Cells that people edit together, also offline. Every run of one goes through the gate, to whichever runtime the notebook has.</p>
        <div className="bar">
          <button type="button" className="b p" onClick={() => show(api.makeNotebook({ title: "Untitled" }))}>New notebook</button>
          <button type="button" className="b" onClick={() => file.current?.click()}>Open a file…</button>
          <input ref={file} type="file" accept=".ipynb,application/json" hidden aria-label="A notebook file" onChange={(event) => {
            const [chosen] = event.target.files ?? [];
            event.target.value = "";
            if (chosen) void read(chosen);
          }} />
        </div>
        {failure && <p className="bad">{failure}</p>}
        {value?.length === 0 && <div className="empty-box"><strong>There is no notebook yet.</strong><p>Make one, or open an <code>.ipynb</code> file.</p></div>}
        {value && value.length > 0 && (
          <div className="scroll" tabIndex={0} role="group" aria-label="Notebooks, the latest first">
            <table className="list">
              <thead><tr><th>Title</th><th>Workspace</th><th>Made</th><th>By</th><th><span className="sr">Delete</span></th></tr></thead>
              <tbody>
                {value.map((notebook) => (
                  <tr key={notebook.id}>
                    <td><a href={address({ at: "notebook", id: notebook.id })}>{plain(notebook.title) || "Untitled"}</a></td>
                    <td title={notebook.workspace}>{baseName(notebook.workspace)}</td>
                    <td>{ago(notebook.made_at)}</td>
                    <td>{notebook.owner}</td>
                    <td><button type="button" className="b n" aria-label={`Delete ${plain(notebook.title) || "Untitled"}`} onClick={() => setRemoves(notebook)}>Delete</button></td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </div>
      {removes && (
        <Dialog title="Delete this notebook?" close={() => setRemoves(undefined)}>
          <p>“{plain(removes.title) || "Untitled"}” goes, with all that is kept beside it. What ran stays in the ledger.</p>
          <div className="row-of">
            <button type="button" className="b n" onClick={async () => {
              setRemoves(undefined);
              try {
                await api.removeNotebook(removes.id);
                await notebooks.refresh();
              } catch (error) {
                complain(error);
              }
            }}>Delete</button>
            <button type="button" className="b p" autoFocus onClick={() => setRemoves(undefined)}>Keep it</button>
          </div>
        </Dialog>
      )}
    </div>
  );
}
