/** Whether we are in contact with the hub, and whether it knows us. */

import { computed, signal } from "@preact/signals";
import { now } from "./clock";

/** No one is signed in, or not any more: the whole page says so and how to sign in. */
export const signedOut = signal(false);

/** The stream of events: live, or since when it is not and why. */
export type Link = { live: true } | { live: false; since: number; why: string };

export const link = signal<Link>({ live: false, since: Date.now() / 1000, why: "connecting" });

/** We ask every few seconds; a hub that hangs keeps its connections open, and yet says nothing. */
const SILENT_MAX = 12;

let heardAt = Date.now() / 1000;

/** Note that the hub has answered. */
export function heard(): void {
  heardAt = Date.now() / 1000;
}

/** Since when what is on the screen may not be so any more, in seconds of our own clock; null if it is live. */
export const staleSince = computed<number | null>(() => {
  void now.value; // Silence causes no event: recompute with every tick.
  if (!link.value.live) return link.value.since;
  return Date.now() / 1000 - heardAt > SILENT_MAX && !document.hidden ? heardAt : null;
});
