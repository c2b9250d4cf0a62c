/** An agent's life as a strip of spells: in which state, from when to when, and why. Pure. */

import type { FlipPoint, Health } from "#types";
import { duration, seconds } from "../words";

export interface Spell {
  state: Health;
  from: number;
  to: number;
  /** Why it began; empty if that was before the time that is shown. */
  reason: string;
}

/** The spells between two moments. `now` is the state at the end: without any flip it was so all the time. */
export function spells(flips: readonly FlipPoint[], from: number, to: number, now: Health, since: number): Spell[] {
  const found: Spell[] = [];
  let state = flips[0]?.from ?? now;
  // Whoever was first heard of within this time had no state before.
  let began = flips.length === 0 ? Math.max(from, Math.min(since, to)) : state === "starting" ? seconds(flips[0]?.at ?? "") : from;
  let reason = "";
  for (const flip of flips) {
    const at = seconds(flip.at);
    if (at > began) found.push({ state, from: began, to: at, reason });
    state = flip.to;
    began = Math.max(at, from);
    reason = flip.reason;
  }
  if (to > began) found.push({ state, from: began, to, reason });
  return found;
}

/** How long it was in which state, the longest first. */
export function spent(found: readonly Spell[]): [Health, number][] {
  const sums = new Map<Health, number>();
  for (const { state, from, to } of found) sums.set(state, (sums.get(state) ?? 0) + to - from);
  return [...sums].sort((a, b) => b[1] - a[1]);
}

/** The strip in a sentence. */
export function spellsText(found: readonly Spell[]): string {
  const changes = Math.max(0, found.length - 1);
  const parts = spent(found).map(([state, span]) => `${duration(span)} ${state}`);
  if (!parts.length) return "Nothing is known of this time.";
  const often = changes === 0 ? "did not change" : changes === 1 ? "changed once" : `changed ${changes} times`;
  return `${parts.join(", ")}; its state ${often}.`;
}
