/** What the page knows beside the agents: who looks, the fleet in numbers, what stands and needs somebody. */

import { computed, signal } from "@preact/signals";
import type { Alert, FleetView, Me } from "#types";

export { agents } from "./agents";
export { now } from "./clock";

/** Who is signed in; null until the hub has said so. */
export const me = signal<Me | null>(null);

/** Whether the one who looks may act. The hub decides that again with every act; here it decides what is shown. */
export const mayAct = computed(() => me.value?.role === "operator" || me.value?.role === "admin");

export const fleet = signal<FleetView | null>(null);

/** What stands now (`standing`), then what happened lately, the newest first. */
export const alerts = signal<readonly Alert[]>([]);

/** How far the first load of all agents has come. */
export const loading = signal<{ done: boolean; loaded: number }>({ done: false, loaded: 0 });
