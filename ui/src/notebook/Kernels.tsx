// The runtimes that Ward starts for a notebook, on its own machine and in its sandbox.

import type { RuntimeSession } from "@ward/runtime-browser";
import { useCallback, useEffect, useState } from "react";
import { api } from "../api/client";
import type { AgentList } from "../api/schema";
import { type Option, Picker } from "../components/Picker";
import { complain } from "../model/announce";

const NONE = "";
const ECHO = "echo";

export function Kernels({ notebook, active }: { notebook: string; active: RuntimeSession | undefined }) {
  const [list, setList] = useState<AgentList>();
  const [starts, setStarts] = useState<string>();
  const look = useCallback(() => api.kernels(notebook).then(setList, complain), [notebook]);
  // Another tab may have started or stopped one.
  useEffect(() => void look(), [look, active?.session_id]);
  const started = list?.agents.find((agent) => agent.id === active?.runtime_id);
  if (started) {
    const stop = () => api.stopKernel(notebook, started.id).then(look, complain);
    return <button type="button" className="b" onClick={stop}>Stop {started.kernel}</button>;
  }
  const start = async (kernel: string) => {
    if (kernel === NONE) return;
    setStarts(kernel);
    try {
      await api.startKernel(notebook, kernel);
    } catch (error) {
      complain(error);
    }
    setStarts(undefined);
    void look();
  };
  const options: Option[] = (list?.kernels ?? []).map(({ name, display_name, language }) => ({
    value: name,
    name: display_name,
    what: name === ECHO ? "Says back what a cell says: to see that everything works." : `Runs ${language} on Ward's machine, in its sandbox: it has the workspace and no network.`,
  }));
  if (list && list.kernels.every(({ name }) => name === ECHO)) {
    options.push({ value: NONE, name: "No Jupyter kernel is installed", disabled: true, what: <>For Python: <code>pip install ipykernel</code>, in an environment that Ward is started in.</> });
  }
  return <Picker label="kernel" value={NONE} shown={starts ? `starting ${starts}…` : "start one"} options={options} choose={start} opened={look} />;
}
