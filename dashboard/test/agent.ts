/** An agent that is well, but for what a test says. */

import type { AgentHealth, EventView, FindingView } from "#types";

export const AT = "2026-11-15T18:00:00.000Z";

export function agent(id: string, more: Partial<AgentHealth> = {}): AgentHealth {
  return {
    agent_id: id,
    task_id: null,
    state: "healthy",
    doing: "working",
    doing_since: AT,
    doing_note: "",
    cause: null,
    failure_class: null,
    class_reason: "",
    state_changed_at: AT,
    last_heartbeat: AT,
    last_checkpoint: null,
    since_heartbeat_s: 1,
    findings: [],
    why: "",
    unwell: false,
    need: 6,
    role: null,
    host: null,
    incarnation: "1",
    load: null,
    capacity_available: null,
    phi: 0,
    paused: false,
    paused_until: null,
    set_aside: false,
    metrics: {
      uptime_seconds: 0,
      token_count: 0,
      cost_usd: 0,
      error_count: 0,
      tool_call_count: 0,
      intervention_count: 0,
      missed_heartbeats: 0,
      total_heartbeats: 1,
      disconnection_count: 0,
    },
    circuit_breakers: [],
    intervention: null,
    ...more,
  };
}

export function spent(id: string, token_count: number, cost_usd = 0): AgentHealth {
  const well = agent(id);
  return { ...well, metrics: { ...well.metrics, token_count, cost_usd } };
}

export function finding(text: string, severity: FindingView["severity"] = "stuck"): FindingView {
  return { kind: "looping", since: AT, severity, text, numbers: {}, evidence: [], conclusive: false };
}

export function event(type: string, agent_id: string, data: Record<string, unknown> = {}, at = AT): EventView {
  return { id: 1, type, at, agent_id, data };
}
