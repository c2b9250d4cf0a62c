/** An agent's usage and errors over time, from totals that only grow during a life. Pure. */

export interface Reading {
  at: number;
  tokens: number | null;
  errors: number | null;
}

export interface TotalColumns {
  at: number[];
  /** Tokens a minute since the reading before. */
  rate: (number | null)[];
  /** Errors of its life so far. */
  errors: (number | null)[];
}

/** Readings closer than this make no rate. */
const STEP_MIN = 8;

/** Readings as points. A total that shrank belongs to a new life, which counts from zero. */
export function totals(readings: readonly Reading[]): TotalColumns {
  const columns: TotalColumns = { at: [], rate: [], errors: [] };
  let before: Reading | null = null;
  for (const reading of readings) {
    if (before !== null && reading.at - before.at < STEP_MIN) continue;
    columns.at.push(reading.at);
    columns.rate.push(before === null ? null : rate(before, reading));
    columns.errors.push(reading.errors);
    before = reading;
  }
  return columns;
}

function rate(before: Reading, { at, tokens }: Reading): number | null {
  if (tokens === null || before.tokens === null) return null;
  const used = tokens < before.tokens ? tokens : tokens - before.tokens;
  return (used / (at - before.at)) * 60;
}

/** In order of time. */
export function together(past: TotalColumns, live: TotalColumns): TotalColumns {
  return { at: [...past.at, ...live.at], rate: [...past.rate, ...live.rate], errors: [...past.errors, ...live.errors] };
}
