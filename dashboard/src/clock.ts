/**
 * The hub's time, ticking once a second. All times from the hub are by its clock. The reader's clock may be wrong by
 * minutes, so we compute ages with the hub's.
 */

import { signal } from "@preact/signals";
import { seconds } from "./words";
import type { Moment } from "#types";

let ahead = 0;

/** How many seconds the hub's clock is ahead of ours. A smaller difference than this is the answer's travel time. */
const STEP = 1;

/** Seconds since 1970, by the hub's clock, at the last tick. */
export const now = signal(Date.now() / 1000);

/** Now, by the hub's clock. */
export function hubTime(): number {
  return Date.now() / 1000 + ahead;
}

/** Take the time from an answer of the hub. */
export function setHubTime(at: Moment): void {
  const told = seconds(at) - Date.now() / 1000;
  if (Math.abs(told - ahead) < STEP) return;
  ahead = told;
  now.value = hubTime();
}

export function startClock(): void {
  setInterval(() => {
    now.value = hubTime();
  }, 1000);
}
