/** Which agents the grid shows, in what order, in what groups. Pure. */

import type { Rates } from "./rates";
import type { AgentHealth, Health } from "#types";
import { capital, HEALTHS, RUNGS } from "./words";

export type SortBy = "need" | "agent" | "since" | "beat" | "doing" | "task" | "tokens" | "cost" | "load";
export type GroupBy = "none" | "host" | "role" | "task";

export interface Wish {
  /** Part of the id, task, role, host or of what is wrong, whatever its case. */
  search: string;
  /** Empty for all. */
  states: ReadonlySet<Health>;
  sort: SortBy;
  descending: boolean;
  group: GroupBy;
  /** Groups of which only the heading is shown. */
  closed: ReadonlySet<string>;
}

export type Row =
  | { kind: "agent"; agent: AgentHealth }
  | { kind: "group"; name: string; size: number; unwell: number; open: boolean };

const RANK = Object.fromEntries(HEALTHS.map((state, rank) => [state, rank])) as Record<Health, number>;
/** A human who is waited for is needed more than one who is warned: before `degraded`, as the API sorts. */
const WAITING = 2.5;
export const UNWELL: ReadonlySet<Health> = new Set(["stuck", "failing", "disconnected"]);

/** How much an agent needs somebody, the neediest first. */
export function need(agent: AgentHealth): number {
  if (agent.set_aside) return -1; // Who is not judged may be anything.
  const rank = RANK[agent.state];
  return agent.doing === "waiting_for_human" ? Math.min(rank, WAITING) : rank;
}

/** The rows to show. */
export function rows(agents: Iterable<AgentHealth>, rates: Rates, wish: Wish): Row[] {
  const found = sorted([...agents].filter(wanted(wish)), rates, wish);
  if (wish.group === "none") return found.map((agent) => ({ kind: "agent", agent }));
  return grouped(found, wish);
}

function wanted(wish: Wish): (agent: AgentHealth) => boolean {
  const text = wish.search.trim().toLowerCase();
  return (agent) =>
    (!wish.states.size || wish.states.has(agent.state)) && (text === "" || searched(agent).includes(text));
}

function searched(agent: AgentHealth): string {
  const said = agent.findings.map((finding) => finding.text).join("\n");
  return `${agent.agent_id}\n${agent.task_id ?? ""}\n${agent.role ?? ""}\n${agent.host ?? ""}\n${agent.doing}\n${said}`.toLowerCase();
}

/** Each agent's key is made once, not once per comparison. Among equals the id decides, so that nothing jumps about. */
function sorted(agents: AgentHealth[], rates: Rates, wish: Wish): AgentHealth[] {
  const key = KEYS[wish.sort];
  const sign = wish.descending ? -1 : 1;
  return agents
    .map((agent) => ({ agent, key: key(agent, rates), since: agent.state_changed_at }))
    .sort(
      (a, b) =>
        sign * compare(a.key, b.key) || tie(a, b, wish.sort) || compare(a.agent.agent_id, b.agent.agent_id),
    )
    .map((one) => one.agent);
}

function tie(a: { since: string }, b: { since: string }, sort: SortBy): number {
  return sort === "need" ? compare(a.since, b.since) : 0; // Who has waited longest.
}

type Key = number | string;

const KEYS: Record<SortBy, (agent: AgentHealth, rates: Rates) => Key> = {
  need,
  agent: (agent) => agent.agent_id,
  since: (agent) => agent.state_changed_at,
  beat: (agent) => agent.last_heartbeat ?? "",
  doing: (agent) => agent.doing,
  task: (agent) => agent.task_id ?? "\uffff",
  tokens: (agent, rates) => -(rates.of(agent.agent_id)?.tokensPerMinute ?? -1),
  cost: (agent, rates) => -(rates.of(agent.agent_id)?.costPerHour ?? -1),
  load: (agent) => -(agent.load ?? -1),
};

/** Sorts whose keys change with every beat. */
export const RESTLESS: ReadonlySet<SortBy> = new Set(["beat", "tokens", "cost", "load"]);

function compare(a: Key, b: Key): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Groups with most unwell first, inside of them the order they came in. */
function grouped(agents: AgentHealth[], wish: Wish): Row[] {
  const groups = new Map<string, AgentHealth[]>();
  for (const agent of agents) {
    const name = groupOf(agent, wish.group);
    const members = groups.get(name);
    if (members) members.push(agent);
    else groups.set(name, [agent]);
  }
  const headed = [...groups].map(([name, members]) => ({
    name,
    members,
    unwell: members.filter((agent) => UNWELL.has(agent.state)).length,
  }));
  headed.sort((a, b) => b.unwell - a.unwell || compare(a.name, b.name));
  return headed.flatMap(({ name, members, unwell }): Row[] => {
    const open = !wish.closed.has(name);
    const heading: Row = { kind: "group", name, size: members.length, unwell, open };
    return open ? [heading, ...members.map((agent): Row => ({ kind: "agent", agent }))] : [heading];
  });
}

function groupOf(agent: AgentHealth, by: GroupBy): string {
  if (by === "host") return agent.host ?? "no host";
  if (by === "role") return agent.role ?? "no role";
  return agent.task_id ?? "no task";
}

/** The sentence that says what is wrong with an agent, or what is being done about it; empty if it is simply well. */
export function why(agent: AgentHealth): string {
  if (agent.set_aside) return "Not judged any more, by a bug of lifesigns, until it is cleared.";
  const worst = [...agent.findings].sort((a, b) => SEVERE[b.severity] - SEVERE[a.severity])[0];
  if (worst) return worst.text;
  if (agent.state === "disconnected")
    return agent.cause && agent.cause !== "unknown" ? `Lost: ${agent.cause}.` : "Lost.";
  if (agent.doing === "waiting_for_human") return agent.doing_note;
  const step = agent.intervention;
  return step === null ? "" : `${capital(RUNGS[step.rung])}: ${step.reason}`;
}

const SEVERE = { notice: 0, degraded: 1, stuck: 2, failing: 3, disconnected: 4 };
