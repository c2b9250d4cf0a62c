/** Whether we are in contact with the hub, and whether it knows us. */

import { computed, signal } from "@preact/signals";
import { now } from "./clock";

/** Nobody is signed in, or no longer: the page explains how to sign in. */
export const signedOut = signal(false);

/** The stream of events: live, or since when it is not and why. */
export type Link = { live: true } | { live: false; since: number; why: string };

export const link = signal<Link>({ live: false, since: Date.now() / 1000, why: "connecting" });

/** We poll every few seconds; a hung hub keeps its connections open, but answers nothing. */
const SILENT_MAX = 12;

let heardAt = Date.now() / 1000;

/** Note that the hub has answered. */
export function heard(): void {
  heardAt = Date.now() / 1000;
}

/** Since when the page may be out of date, in seconds of our own clock; null if it is live. */
export const staleSince = computed<number | null>(() => {
  void now.value; // Silence causes no event: recompute with every tick.
  if (!link.value.live) return link.value.since;
  return Date.now() / 1000 - heardAt > SILENT_MAX && !document.hidden ? heardAt : null;
});
