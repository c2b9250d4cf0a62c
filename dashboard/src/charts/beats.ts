/**
 * An agent's beats over time: their intervals, how late they are, how surprising the silence is. The past comes from the
 * hub's samples, one a minute; the present from a poll every second. Pure.
 */

import { PHI_MAX, phi } from "./surprise";
import type { Rhythm, SamplePoint } from "#types";
import { seconds } from "../words";

export interface BeatColumns {
  /** Seconds since 1970. */
  at: number[];
  interval: (number | null)[];
  late: (number | null)[];
  phi: (number | null)[];
}

/** A page that is left open for a day must not grow for a day. */
const LIVE_MAX = 3600;

/** The points of the samples. The first one has no interval: the time before it is unknown. */
export function ofSamples(samples: readonly SamplePoint[], spread: number | null): BeatColumns {
  const columns: BeatColumns = { at: [], interval: [], late: [], phi: [] };
  const usual = usualStep(samples);
  let before: number | null = null;
  for (const sample of samples) {
    const at = seconds(sample.at);
    // After a silence only the last stretch belongs to this sample.
    const passed = before === null ? null : Math.min(at - before, usual);
    columns.at.push(at);
    columns.interval.push(passed === null || sample.beats === 0 ? null : passed / sample.beats);
    columns.late.push(sample.late_max_s);
    columns.phi.push(spread ? phi(sample.late_max_s, spread) : null);
    before = at;
  }
  return columns;
}

/** The usual distance of two samples: a minute, or more where they were merged. */
function usualStep(samples: readonly SamplePoint[]): number {
  const steps = samples.slice(1).map((sample, n) => seconds(sample.at) - seconds(samples[n]?.at ?? ""));
  steps.sort((a, b) => a - b);
  return steps[Math.floor(steps.length / 2)] ?? 60;
}

/** Collects polls of an agent's rhythm as points. */
export class BeatsLive {
  readonly columns: BeatColumns = { at: [], interval: [], late: [], phi: [] };
  #before: Rhythm | null = null;

  /** Add the present values. */
  note(rhythm: Rhythm): void {
    const before = this.#before;
    this.#before = rhythm;
    const sameLife = before !== null && rhythm.beats >= before.beats;
    const beats = sameLife ? rhythm.beats - before.beats : 0;
    this.#push(seconds(rhythm.at), {
      interval: beats && rhythm.last_at && before?.last_at ? (seconds(rhythm.last_at) - seconds(before.last_at)) / beats : null,
      late: beats === 1 && rhythm.last_at && before?.expected_at ? Math.max(0, seconds(rhythm.last_at) - seconds(before.expected_at)) : null,
      phi: Math.min(PHI_MAX, rhythm.phi),
    });
  }

  #push(at: number, { interval, late, phi }: { interval: number | null; late: number | null; phi: number }): void {
    const { columns } = this;
    columns.at.push(at);
    columns.interval.push(interval);
    columns.late.push(late);
    columns.phi.push(phi);
    if (columns.at.length > LIVE_MAX) for (const column of Object.values(columns)) column.shift();
  }
}

/** Merges both; where they overlap, the polls are more precise. */
export function joined(past: BeatColumns, live: BeatColumns): BeatColumns {
  const from = live.at[0] ?? Infinity;
  const upTo = past.at.findLastIndex((at) => at < from) + 1;
  return {
    at: [...past.at.slice(0, upTo), ...live.at],
    interval: [...past.interval.slice(0, upTo), ...live.interval],
    late: [...past.late.slice(0, upTo), ...live.late],
    phi: [...past.phi.slice(0, upTo), ...live.phi],
  };
}

/** The largest of a column; null if it has none. */
export function most(column: readonly (number | null)[]): number | null {
  return column.reduce((most, value) => (value !== null && (most === null || value > most) ? value : most), null);
}
