// The status bar item: whether this window is connected, and how much waits.

import * as vscode from "vscode";
import type { State } from "./connection";

export class Status implements vscode.Disposable {
  #item = vscode.window.createStatusBarItem("ward.status", vscode.StatusBarAlignment.Left, 10);

  constructor() {
    this.#item.name = "Ward";
    this.#item.command = "ward.showStatus";
    this.show({ at: "off" }, 0);
    this.#item.show();
  }

  show(state: State, waiting: number): void {
    const { text, tooltip, warn } = told(state, waiting);
    this.#item.text = text;
    this.#item.tooltip = tooltip;
    this.#item.accessibilityInformation = { label: tooltip };
    this.#item.backgroundColor = warn ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
  }

  dispose(): void {
    this.#item.dispose();
  }
}

/** Where a conversation that is begun in this window acts, as an item of its own while it is connected. */
export class Acting implements vscode.Disposable {
  #item = vscode.window.createStatusBarItem("ward.acting", vscode.StatusBarAlignment.Left, 9);

  constructor() {
    this.#item.name = "Ward: Where the Chat Acts";
    this.#item.command = "ward.chooseRuntime";
  }

  show(where: string | undefined): void {
    if (where === undefined) return this.#item.hide();
    this.#item.text = `$(server-environment) ${where}`;
    this.#item.tooltip = `Ward: a conversation that you begin in this window acts in ${where}. Click to choose.`;
    this.#item.accessibilityInformation = { label: this.#item.tooltip };
    this.#item.show();
  }

  dispose(): void {
    this.#item.dispose();
  }
}

export function told(state: State, waiting: number): { text: string; tooltip: string; warn: boolean } {
  switch (state.at) {
    case "off":
      return { text: "$(shield) Ward: off", tooltip: "Ward: this window is not connected.", warn: false };
    case "connecting":
      return { text: "$(sync~spin) Ward: connecting", tooltip: "Ward: connecting this window.", warn: false };
    case "connected":
      return waiting === 0
        ? { text: "$(shield) Ward: connected", tooltip: `Ward: connected to ${state.ward.address.url}.`, warn: false }
        : { text: `$(bell-dot) Ward: ${waiting} waiting`, tooltip: `Ward: ${waiting} ${waiting === 1 ? "approval waits" : "approvals wait"} for you.`, warn: true };
    case "lost":
      return { text: "$(sync~spin) Ward: reconnecting", tooltip: `Ward: the connection is lost and made again by itself. ${state.why}`, warn: true };
    case "failed":
      return { text: "$(warning) Ward: not connected", tooltip: `Ward: ${state.why}`, warn: false };
  }
}
