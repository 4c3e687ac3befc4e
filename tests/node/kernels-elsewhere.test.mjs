// Kernels where little can be had: no user namespaces, and kernels that are not ipykernel.

import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { limit, place } from "./host.mjs";
import { code, file, ids, ward } from "./kernels.mjs";

/** Runs these cells from a file; answers what they show, as text. */
async function run(t, at, cells, { more, before, kernel } = {}) {
  const metadata = kernel ? { kernelspec: { name: kernel, display_name: kernel, language: "text" } } : {};
  await writeFile(join(at.workspace, "a.ipynb"), JSON.stringify(file(ids(cells.map((source) => code(source))), { metadata })));
  const ran = await ward(t, at, ["notebook", "run", "a.ipynb", "--out", "b.ipynb", "--allow-errors"], more, before).done;
  const after = JSON.parse(await readFile(join(at.workspace, "b.ipynb"), "utf8").catch(() => "null"));
  const texts = after?.cells.map((cell) => cell.outputs.map((output) => [output.text ?? output.data?.["text/plain"] ?? output.evalue].flat().join("")).join(""));
  return { ...ran, texts, metadata: after?.metadata };
}

/** Where no user namespace can be made: in one whose own limit is none. */
const WITHOUT = ["unshare", "--user", "--map-root-user", "sh", "-c", 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"', "sh"];

test("in the tier walls a kernel runs, serves whoever started it, and connects to nothing", limit, async (t) => {
  const at = await place(t);
  await mkdir(join(at.home, ".ssh"));
  await writeFile(join(at.home, ".ssh/id"), "secret");
  const tried = `
import os, socket
def tried(what):
    try: return what()
    except OSError as error: return type(error).__name__
path = socket.socket(socket.AF_UNIX)
path.bind('made.sock')
[tried(what) for what in [
    lambda: open(${JSON.stringify(join(at.home, ".ssh/id"))}).read(),
    lambda: path.connect('made.sock'),
    lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
    lambda: socket.create_connection(('127.0.0.1', 9)),
    lambda: socket.socket(socket.AF_UNIX).bind('/var/tmp/outside.sock'),
]]`;
  const held = { more: { WARD_SANDBOX_MINIMUM: "walls" }, before: WITHOUT };
  const ran = await run(t, at, [tried, "6*7"], held);
  assert.equal(ran.code, 0, ran.stderr);
  assert.deepEqual(ran.texts, [JSON.stringify(Array(5).fill("PermissionError")).replaceAll('"', "'").replaceAll(",", ",\n "), "42"]);
  // Nobody allowed a weaker tier: then none is used.
  const refused = await run(t, at, ["1"], { before: WITHOUT });
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /namespace/);
});

const SHELL = `
import subprocess
from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel

class Shell(Kernel):
    implementation = "shell"
    implementation_version = "1"
    # It does not say which version, as many do not.
    language_info = {"name": "shell", "mimetype": "text/x-sh", "file_extension": ".sh"}
    banner = "A shell"

    def do_execute(self, code, silent, store_history=True, user_expressions=None, allow_stdin=False):
        ran = subprocess.run(["sh", "-c", code], capture_output=True, text=True)
        self.send_response(self.iopub_socket, "stream", {"name": "stdout", "text": ran.stdout})
        odd = {"execution_count": self.execution_count, "payload": [{"source": "of its own"}], "user_expressions": {}}
        if ran.returncode == 0:
            return {"status": "ok", **odd}
        error = {"ename": "", "evalue": str(ran.returncode), "traceback": []}
        self.send_response(self.iopub_socket, "error", error)
        return {"status": "error", **error, **odd}

IPKernelApp.launch_instance(kernel_class=Shell)
`;

test("a kernel of another language runs, also where it says less, or other things, than it should", limit, async (t) => {
  const at = await place(t);
  const folder = join(at.home, "jupyter/kernels/shell");
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "kernel.py"), SHELL);
  const argv = [join(process.env.WARD_IPYKERNEL, "bin/python"), "{resource_dir}/kernel.py", "-f", "{connection_file}"];
  await writeFile(join(folder, "kernel.json"), JSON.stringify({ argv, display_name: "Shell", language: "shell" }));
  const ran = await run(t, at, ["echo hello", "exit 3", "echo on"], { more: { JUPYTER_PATH: join(at.home, "jupyter") }, kernel: "shell" });
  assert.equal(ran.code, 1, ran.stderr);
  assert.match(ran.stderr, /cell 2: 3/);
  assert.deepEqual(ran.texts, ["hello\n", "3", "on\n"]);
  assert.deepEqual(ran.metadata.language_info, { name: "shell", mimetype: "text/x-sh", file_extension: ".sh" });
});
