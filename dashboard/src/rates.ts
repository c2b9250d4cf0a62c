/**
 * What agents use: tokens a minute and dollars an hour, from two readings of their counters. The hub tells totals; over the
 * last half to whole minute of looking a rate is made of them, as `lifesigns watch` does it.
 */

import type { AgentHealth } from "#types";

const OVER = 30;
/** Seconds of readings before a rate is shown: over less it would be chance. */
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
  /** Made when it is asked for, and the same until there is another reading: who draws compares. */
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
