/** The shapes an agent's own page reads; only what it uses. */

import type { Cause, Health, Moment, Rung, Severity, Stage } from "../types";

export interface SamplePoint {
  type: "sample";
  at: Moment;
  beats: number;
  late_max_s: number;
  load: number | null;
  cpu_percent: number | null;
  memory_mb: number | null;
  token_count: number | null;
  cost_usd: number | null;
  error_count: number | null;
}

export interface FlipPoint {
  type: "flip";
  at: Moment;
  event_id: number;
  from: Health;
  to: Health;
  reason: string;
  cause: Cause | null;
}

export interface FindingPoint {
  type: "finding";
  at: Moment;
  event_id: number;
  kind: string;
  open: boolean;
  severity: Severity | null;
  text: string | null;
  numbers: Record<string, number | string> | null;
}

export interface InterventionPoint {
  type: "intervention";
  at: Moment;
  event_id: number;
  id: string;
  rung: Rung;
  stage: Stage;
  attempt: number;
  text: string;
  by: string;
}

export type Point = SamplePoint | FlipPoint | FindingPoint | InterventionPoint;

export interface History {
  agent_id: string;
  from: Moment;
  to: Moment;
  points: Point[];
  complete: boolean;
}

/** When beats come, and when the next one should. */
export interface Rhythm {
  at: Moment;
  beats: number;
  lost: number;
  interval_s: number;
  last_at: Moment | null;
  expected_at: Moment | null;
  spread_s: number | null;
  suspect_after_s: number;
  asked: number;
  phi: number;
}

export interface TapedCall {
  at: Moment;
  tool: string | null;
  args: string | null;
  outcome: string | null;
  failed: boolean;
  times: number;
  in_a_row: number;
}

export interface OpenCall {
  what: string;
  started_at: Moment;
  bound_s: number;
}

export interface CallTape {
  tool_call_count: number;
  calls: TapedCall[];
  open: OpenCall[];
}

/** The last beat, as it came. */
export interface LastBeat {
  received_at: Moment;
  beat: Record<string, unknown>;
}

export interface Checkpoint {
  checkpoint_id: string;
  parent_id: string | null;
  digest: string;
  size: number;
  saved_at: Moment;
  agent_id: string;
}

export interface CheckpointList {
  checkpoints: Checkpoint[];
}

export interface InterventionList {
  interventions: import("../types").Intervention[];
}
