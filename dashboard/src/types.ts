/** The shapes of the API, as `/openapi.json` tells them; only what this page reads. */

import type { Breaker } from "./types/breakers";

/** A moment: RFC 3339 in UTC. */
export type Moment = string;

export type Health =
  "starting" | "healthy" | "degraded" | "stuck" | "failing" | "disconnected" | "terminated";
export type Doing =
  "unknown" | "working" | "idle" | "waiting_for_human" | "rate_limited" | "busy" | "draining";
export type Cause = "crash" | "freeze" | "partition" | "unknown";
export type Severity = "notice" | "degraded" | "stuck" | "failing" | "disconnected";
export type Rung = "nudge" | "escalate" | "terminate" | "respawn" | "breaker" | "cleanup";
export type Stage = "ordered" | "delivered" | "seen" | "answered" | "done" | "failed" | "held" | "dropped";
export type Decision = "more_time" | "handoff" | "terminate" | "ignore";
export type Level = "info" | "warning" | "error" | "critical";
export type Role = "agent" | "viewer" | "operator" | "admin";

export interface Finding {
  kind: string;
  since: Moment;
  severity: Severity;
  text: string;
  numbers: Record<string, number | string>;
  conclusive: boolean;
}

export interface AgentMetrics {
  uptime_seconds: number;
  token_count: number;
  cost_usd: number;
  error_count: number;
  tool_call_count: number;
  intervention_count: number;
  missed_heartbeats: number;
  total_heartbeats: number;
  disconnection_count: number;
}

/** The step of the ladder an agent is on. */
export interface OnLadder {
  id: string;
  rung: Rung;
  attempt: number;
  reason: string;
  since: Moment;
  next_at: Moment | null;
}

export interface AgentHealth {
  agent_id: string;
  task_id: string | null;
  state: Health;
  doing: Doing;
  doing_since: Moment | null;
  /** In the agent's words: what it asks a human, what it is busy with. */
  doing_note: string;
  cause: Cause | null;
  state_changed_at: Moment;
  last_heartbeat: Moment | null;
  last_checkpoint: Moment | null;
  since_heartbeat_s: number | null;
  findings: Finding[];
  role: string | null;
  host: string | null;
  incarnation: string | null;
  load: number | null;
  capacity_available: number | null;
  phi: number;
  paused_until: Moment | null;
  /** A bug of the hub tripped over it: its state is the last that was known. */
  set_aside: boolean;
  metrics: AgentMetrics;
  circuit_breakers: Breaker[];
  intervention: OnLadder | null;
}

export interface AgentList {
  agents: AgentHealth[];
  updated: string;
  cursor: string | null;
  complete: boolean;
  gone: string[];
}

export interface HubHealth {
  blind: boolean;
  blind_since: Moment | null;
  score: number;
  truce_until: Moment | null;
  look_late_s: number;
  look_late_max_s: number;
  inbox: number;
  store: string;
  bus: string;
  epoch: number;
  version: string;
  at: Moment;
}

export interface Fleet {
  agents: number;
  states: Partial<Record<Health, number>>;
  doing: Partial<Record<Doing, number>>;
  waiting_for_human: string[];
  braked: string[];
  hub: HubHealth;
}

export interface Alert {
  id: string;
  at: Moment | null;
  severity: Level;
  type: string;
  agent_id: string;
  text: string;
  standing: boolean;
}

export interface HubEvent {
  id: number;
  type: string;
  at: Moment;
  agent_id: string;
  data: Record<string, unknown>;
}

export interface Me {
  name: string;
  role: Role;
  token_id: string;
  agents: string[];
}

export interface StageReached {
  at: Moment;
  stage: Stage;
  attempt: number;
  text: string;
  by: string;
}

/** One intervention from its order to its outcome. */
export interface Intervention {
  id: string;
  agent_id: string;
  rung: Rung;
  stage: Stage;
  attempt: number;
  reason: string;
  by: string;
  ordered_at: Moment;
  open: boolean;
  stages: StageReached[];
}

export interface ProblemDetails {
  type: string;
  title: string;
  status: number;
  detail: string;
  field?: string | null;
}
