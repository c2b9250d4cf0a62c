/** Circuit breakers, as their agents report them. */

import type { Moment } from "../types";

export type BreakerState = "closed" | "open" | "half_open" | "forced_open" | "disabled" | "observing";

export interface Breaker {
  agent_id: string;
  name: string;
  state: BreakerState;
  failures: number;
  since: Moment;
  half_open_at: Moment | null;
}

export interface BreakerList {
  breakers: Breaker[];
  cursor: string | null;
}
