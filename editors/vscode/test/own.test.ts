// Which commands of the editor are no agent's.

import assert from "node:assert/strict";
import { test } from "node:test";
import { isOwn } from "../src/actions/own";

test("Ward's commands are its own, by their names and through what another is given", () => {
  for (const [command, given] of [
    ["ward.acceptChange", undefined],
    ["runCommands", [{ commands: ["ward.disconnect"] }]],
    ["runCommands", [{ commands: ["editor.action.clipboardCopyAction"] }]],
    ["other.run", ["ward.disconnect"]],
    ["other.run", [{ then: [{ command: "ward.acceptChange" }] }]],
    ["vscode.open", ["command:ward.acceptChange"]],
  ] as const) assert.ok(isOwn(command, given), command);
});

test("other commands are not", () => {
  for (const [command, given] of [
    ["workbench.action.files.saveAll", undefined],
    ["wardrobe.open", [null, 1, true, "forward.txt", { path: "src/ward.ts" }]],
  ] as const) assert.ok(!isOwn(command, given), command);
});
