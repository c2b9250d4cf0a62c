/**
 * The hub's time, ticking once a second. Every moment the hub tells is by its own clock, and the reader's may be wrong by
 * minutes: ages are counted by the hub's.
 */

import { signal } from "@preact/signals";
import { seconds } from "./words";
import type { Moment } from "#types";

let ahead = 0;

/** How many seconds the hub's clock is ahead of ours. A step smaller than this is the way the answer took. */
const STEP = 1;

/** Seconds since 1970, by the hub's clock, at the last tick. */
export const now = signal(Date.now() / 1000);

/** This very moment by the hub's clock. */
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
