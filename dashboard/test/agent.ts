/** An agent that is well, but for what a test says. */

import type { AgentHealth, Alert, EventView, FindingView, FleetView } from "#types";

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
    state_changed_at: AT,
    last_heartbeat: AT,
    last_checkpoint: null,
    since_heartbeat_s: 1,
    findings: [],
    role: null,
    host: null,
    incarnation: "1",
    load: null,
    capacity_available: null,
    phi: 0,
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
  return { kind: "looping", since: AT, severity, text, numbers: {}, conclusive: false };
}

export function event(type: string, agent_id: string, data: Record<string, unknown> = {}, at = AT): EventView {
  return { id: 1, type, at, agent_id, data };
}

export function alert(id: string, more: Partial<Alert> = {}): Alert {
  const standing = id.startsWith("standing:");
  return {
    id,
    at: AT,
    severity: "warning",
    type: "NEEDS_HUMAN",
    agent_id: "",
    text: "",
    standing,
    key: "",
    kind: "",
    open: standing,
    group: "",
    acknowledged: null,
    silenced_by: "",
    ...more,
  };
}

export function fleet(hub: Partial<FleetView["hub"]> = {}, braked: string[] = []): FleetView {
  return {
    agents: 1,
    states: {},
    doing: {},
    waiting_for_human: [],
    braked,
    least_loaded: [],
    hub: {
      blind: false,
      blind_since: null,
      score: 0,
      truce_until: null,
      look_late_s: 0,
      look_late_max_s: 0,
      inbox: 0,
      store: "ok",
      bus: "none",
      epoch: 1,
      version: "0",
      at: AT,
      ...hub,
    },
  };
}
