// What is known about this Ward: its models, roles, workspace and sandbox.

import { useEffect } from "react";
import { api } from "../api/client";
import { Failure, sentence } from "../api/failure";
import type { Health, Models, RoleInfo } from "../api/schema";
import { Store, useStore } from "./store";

export interface Ward {
  health?: Health;
  models?: Models;
  roles?: RoleInfo[];
  failure?: string;
  signedOut: boolean;
}

export const ward = new Store<Ward>({ signedOut: false });

export async function learn(): Promise<void> {
  const take = async <T>(name: keyof Ward, asked: Promise<T>) => {
    try {
      const found = await asked;
      ward.update((now) => ({ ...now, [name]: found }));
    } catch (error) {
      if (error instanceof Failure && error.status === 401) ward.update((now) => ({ ...now, signedOut: true }));
      else ward.update((now) => ({ ...now, failure: sentence(error) }));
    }
  };
  await Promise.all([
    take("health", api.health()),
    take("models", api.models()),
    take("roles", api.roles().then(({ roles }) => roles)),
  ]);
}

/** Something that Ward is asked for when a panel opens, and again when it is told to. */
export class Asked<T> {
  readonly store = new Store<{ value?: T; failure?: string }>({});

  constructor(private ask: () => Promise<T>) {}

  refresh = async (): Promise<void> => {
    try {
      const value = await this.ask();
      this.store.set({ value });
    } catch (error) {
      this.store.update((now) => ({ ...now, failure: sentence(error) }));
    }
  };

  use(): { value?: T; failure?: string } {
    useEffect(() => void this.refresh(), []);
    return useStore(this.store);
  }
}

export const grants = new Asked(() => api.grants().then(({ grants }) => grants));
export const runtimes = new Asked(() => api.runtimes().then(({ runtimes }) => runtimes));
