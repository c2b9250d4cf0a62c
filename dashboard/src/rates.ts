/**
 * What agents use: tokens a minute and dollars an hour. The hub serves totals; two readings that are half a minute to a
 * minute apart make a rate, as in `lifesigns watch`.
 */

import type { AgentHealth } from "#types";

const OVER = 30;
/** Seconds between the readings of a rate: a shorter time would show chance. */
const FROM = 4;

export interface Rate {
  tokensPerMinute: number;
  costPerHour: number;
}

interface Reading {
  at: number;
  tokens: number;
  cost: number;
}

interface Readings {
  older: Reading;
  newer: Reading;
  last: Reading;
  /** Computed on demand and cached until the next reading, so that a component can compare by identity. */
  rate?: Rate;
}

export class Rates {
  readonly #readings = new Map<string, Readings>();

  note(agent: AgentHealth, at: number): void {
    const { token_count: tokens, cost_usd: cost } = agent.metrics;
    const reading = { at, tokens, cost };
    const known = this.#readings.get(agent.agent_id);
    if (!known || tokens < known.last.tokens || cost < known.last.cost) {
      // A new incarnation counts from zero.
      this.#readings.set(agent.agent_id, { older: reading, newer: reading, last: reading });
      return;
    }
    known.last = reading;
    delete known.rate;
    if (at - known.newer.at >= OVER) {
      known.older = known.newer;
      known.newer = reading;
    }
  }

  /** What an agent uses; null without enough readings. */
  of(id: string): Rate | null {
    const known = this.#readings.get(id);
    if (!known) return null;
    const passed = known.last.at - known.older.at;
    if (passed < FROM) return null;
    return (known.rate ??= {
      tokensPerMinute: ((known.last.tokens - known.older.tokens) / passed) * 60,
      costPerHour: ((known.last.cost - known.older.cost) / passed) * 3600,
    });
  }

  forget(id: string): void {
    this.#readings.delete(id);
  }
}
