// What the editor says in a message of its own. Words of others stand in nearly all of them, so this is the
// only way to one: none has a link in it that somebody else has put there.

import * as vscode from "vscode";
import { unlinked } from "./question";

export function inform(text: string, ...answers: string[]): Thenable<string | undefined> {
  return vscode.window.showInformationMessage(unlinked(text), ...answers);
}

export function warn(text: string, ...answers: string[]): Thenable<string | undefined> {
  return vscode.window.showWarningMessage(unlinked(text), ...answers);
}

export function fail(text: string, ...answers: string[]): Thenable<string | undefined> {
  return vscode.window.showErrorMessage(unlinked(text), ...answers);
}
