/** The page's data beside the agents: who is signed in, the fleet in numbers, which agents need a person. */

import { computed, signal } from "@preact/signals";
import type { FleetView, HubView, Me } from "#types";

export { agents } from "./agents";
export { now } from "./clock";

/** Who is signed in; null until the hub has answered. */
export const me = signal<Me | null>(null);

/** Whether this user may act. It decides what the page shows; the hub checks every act again. */
export const mayAct = computed(() => me.value?.role === "operator" || me.value?.role === "admin");

export const fleet = signal<FleetView | null>(null);

/** The hubs on the same store; none if there is only this one. */
export const hubs = signal<readonly HubView[]>([]);

/** What only a person can settle, most urgent first: for the first page, the window's title and the head of every page. */
export const needs = computed(() => fleet.value?.needs ?? []);

/** How far the first load of all agents has come. */
export const loading = signal<{ done: boolean; loaded: number }>({ done: false, loaded: 0 });
