import { host } from "../host";
import type { Conversation } from "../model/conversation";
import { type Found, find, wanted } from "../model/place";
import { useStore } from "../model/store";
import { runtimes, ward } from "../model/ward";
import { baseName, runtimeName } from "../text/words";
import { type Option, Picker } from "./Picker";

const HERE = "";
const LOCAL = "local";
const NEED = "need:vscode";

/** Where the actions of the next session run, with what is connected. */
export function RuntimePicker() {
  const choice = useStore(wanted);
  const { health } = useStore(ward);
  const { value } = runtimes.use();
  const known = value ?? [];
  const workspace = health?.workspace ?? undefined;
  const window_ = host.kind === "webview";
  const options: Option[] = [];
  if (window_) options.push({ value: HERE, name: "this window", what: "The editor you are looking at, and its folder." });
  options.push({
    value: LOCAL,
    name: "this machine",
    tone: "ok",
    what: health?.sandbox ? `The local runtime, behind Ward's wall (tier ${health.sandbox.tier}).` : "The local runtime, behind Ward's wall.",
  });
  for (const runtime of known) {
    if (runtime.kind === LOCAL) continue;
    const ready = runtime.state === "ready" || runtime.state === "busy";
    options.push({
      value: runtime.runtime_id,
      name: `${runtimeName(runtime.kind)}, ${runtime.workspace_name || baseName(runtime.workspace)}`,
      what: <>{ready ? "Connected" : "Not connected now: the session waits for it"} · <span className="mono">{runtime.workspace}</span>. {runtime.confined ? "Its commands are confined." : "Nothing confines its commands, so they ask."}</>,
    });
  }
  const need = find({ kind: "vscode" }, known, workspace);
  options.push({ value: NEED, name: "VS Code, this workspace", disabled: need.at === "several", what: NEEDS[need.at] });
  const taken = choice === undefined ? (window_ ? HERE : LOCAL) : typeof choice.runtime === "string" ? choice.runtime : NEED;
  // What was chosen and is no longer listed can still be waited for.
  if (!options.some((option) => option.value === taken)) options.push({ value: taken, name: "an editor that left", what: "The session waits until it is back." });
  const choose = (value: string) => {
    const runtime = known.find((other) => other.runtime_id === value && other.kind !== LOCAL);
    if (value === HERE) wanted.set(undefined);
    else if (value === LOCAL) wanted.set(window_ ? { runtime: LOCAL } : undefined);
    else if (value === NEED) wanted.set({ runtime: { kind: "vscode" } });
    else wanted.set({ runtime: value, workspace: runtime?.workspace });
  };
  return <Picker label="runs in" value={taken} options={options} choose={choose} opened={runtimes.refresh} />;
}

const NEEDS: Record<Found["at"], string> = {
  here: "",
  ready: "The window that shows this folder is connected.",
  away: "Its window is not connected now: the session asks you to connect it, and waits.",
  none: "None is connected: the session asks you to connect one, and waits.",
  several: "Several windows show this folder. Choose one by its name.",
};

/** Where a session runs; said only where that is not this machine. */
export function RunsIn({ conversation }: { conversation: Conversation }) {
  const { runtime, awaits } = conversation;
  if (awaits) return <span className="pill waits" title={awaits}><b>waits for an editor</b></span>;
  if (!runtime) return null;
  return <span className="pill" title={runtime.workspace}><span className="pill-label">runs in</span> <b>{runtimeName(runtime.kind)}, {baseName(runtime.workspace)}</b></span>;
}
