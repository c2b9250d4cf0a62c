/** Who needs a person right now, and why; the most urgent first. Pure. */

import type { AgentHealth, Alert, FleetView, Moment } from "#types";

export type Need = { key: string; since: Moment | null; text: string } & (
  | { kind: "hub"; title: string }
  | { kind: "braked"; group: string }
  | { kind: "quarantined"; agentId: string }
  | { kind: "escalated"; agentId: string; escalationId: string; until: Moment | null }
  | { kind: "waiting"; agentId: string; answered: boolean }
  | { kind: "look"; agentId: string; alert: Alert }
);

const ORDER: Record<Need["kind"], number> = {
  hub: 0,
  braked: 1,
  escalated: 2,
  quarantined: 3,
  waiting: 4,
  look: 5,
};

export function needs(
  agents: Iterable<AgentHealth>,
  fleet: FleetView | null,
  alerts: readonly Alert[],
): Need[] {
  const found: Need[] = fleet ? [...ofHub(fleet, alerts), ...ofGroups(fleet, alerts)] : [];
  found.push(...ofRecoveries(alerts));
  const toDecide = new Set(alerts.filter(isDecision).map((alert) => alert.agent_id));
  for (const agent of agents) {
    if (agent.state === "terminated") continue;
    if (toDecide.has(agent.agent_id)) found.push(...ofLadder(agent));
    if (agent.doing === "waiting_for_human") found.push(ofWaiting(agent));
  }
  const settled = new Set(found.map((need) => "agentId" in need && need.agentId));
  found.push(...toLookAt(alerts.filter((alert) => !settled.has(alert.agent_id))));
  return found.sort((a, b) => ORDER[a.kind] - ORDER[b.kind] || compare(a.since, b.since));
}

function* ofHub({ hub }: FleetView, alerts: readonly Alert[]): Generator<Need> {
  const standing = (what: string) => alerts.find((alert) => alert.id === `standing:${what}`);
  if (hub.blind) {
    const text = standing("blind")?.text ?? "It judges nobody until it can see. Look at the hub and its bus.";
    yield { kind: "hub", key: "blind", title: "The hub is blind", text, since: hub.blind_since };
  }
  for (const part of ["store", "bus"] as const) {
    if (hub[part] === "ok" || hub[part] === "none") continue;
    const since = standing(part)?.at ?? null;
    yield { kind: "hub", key: part, title: `The hub's ${part} is away`, text: hub[part], since };
  }
  for (const part of ["tokens", "connections", "rows"]) {
    const alert = standing(part);
    if (!alert) continue;
    const [title = "", ...why] = alert.text.split(": ");
    yield { kind: "hub", key: part, title, text: why.join(": "), since: alert.at };
  }
}

function* ofGroups({ braked }: FleetView, alerts: readonly Alert[]): Generator<Need> {
  for (const group of braked) {
    const alert = alerts.find((one) => one.id === `standing:braked:${group}`);
    const happened = alerts.find(
      (one) => one.type === "GROUP_BRAKED" && !one.standing && one.text === alert?.text,
    );
    const text =
      alert?.text ??
      "Too many of this group are unwell at once; nothing is done there until a person decides.";
    yield { kind: "braked", key: `braked ${group}`, group, text, since: alert?.at ?? happened?.at ?? null };
  }
}

/** Agents that are not started anew any more until a person says so. */
function* ofRecoveries(alerts: readonly Alert[]): Generator<Need> {
  for (const alert of alerts) {
    if (!alert.standing || alert.type !== "RECOVERY_FAILED") continue;
    yield { kind: "quarantined", key: alert.id, agentId: alert.agent_id, text: alert.text, since: alert.at };
  }
}

/** That an agent stands on this rung is not enough: who was given more time needs no decision until it is over. */
function isDecision(alert: Alert): boolean {
  return alert.standing && alert.type === "ESCALATION_TRIGGERED";
}

function* ofLadder({ agent_id: agentId, intervention }: AgentHealth): Generator<Need> {
  if (intervention?.rung !== "escalate" || !intervention.id) return;
  const { id: escalationId, reason: text, since, next_at: until } = intervention;
  yield { kind: "escalated", key: `escalated ${escalationId}`, agentId, escalationId, text, since, until };
}

function ofWaiting({ agent_id: agentId, doing_note, doing_since: since, intervention }: AgentHealth): Need {
  const text = doing_note || "It waits for a human and does not say for what.";
  const answered = intervention?.rung === "nudge";
  return { kind: "waiting", key: `waiting ${agentId}`, agentId, text, since, answered };
}

/** Who waits for a human says so itself, and sooner when it is over. */
function isWaiting({ id, key }: Alert): boolean {
  return id.startsWith("standing:waiting:") || key.endsWith(":waiting_for_human");
}

const TO_LOOK_AT = new Set(["NEEDS_HUMAN", "AGENT_POISONED"]);

/** What else stands and asks for a person, until somebody has taken it on: who could not be stopped, or not be judged. */
function* toLookAt(alerts: readonly Alert[]): Generator<Need> {
  for (const alert of alerts) {
    if (!alert.standing || !TO_LOOK_AT.has(alert.type) || alert.acknowledged || !alert.agent_id) continue;
    if (isWaiting(alert)) continue;
    const { id: key, agent_id: agentId, at: since } = alert;
    const text = alert.text.replace(`${agentId} needs a human: `, "");
    yield { kind: "look", key, agentId, text, since, alert };
  }
}

/** Who has waited longest; who has no age comes last. */
function compare(a: Moment | null, b: Moment | null): number {
  return (a ?? "9") < (b ?? "9") ? -1 : a === b ? 0 : 1;
}
