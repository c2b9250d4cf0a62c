/** What the page knows beside the agents: who looks, the fleet in numbers, who needs a person. */

import { computed, signal } from "@preact/signals";
import type { FleetView, Me } from "#types";

export { agents } from "./agents";
export { now } from "./clock";

/** Who is signed in; null until the hub has answered. */
export const me = signal<Me | null>(null);

/** Whether the one who looks may act. The hub decides that again with every act; here it decides what is shown. */
export const mayAct = computed(() => me.value?.role === "operator" || me.value?.role === "admin");

export const fleet = signal<FleetView | null>(null);

/** What only a person can settle, the most urgent first: for the first page, and for the corner of the eye (the window's
 * title, the head of every page). */
export const needs = computed(() => fleet.value?.needs ?? []);

/** How far the first load of all agents has come. */
export const loading = signal<{ done: boolean; loaded: number }>({ done: false, loaded: 0 });
