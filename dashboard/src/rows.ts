/** Which agents the grid shows, in what order, in what groups. Pure. */

import type { Rates } from "./rates";
import type { AgentHealth, Health } from "#types";

export type SortBy = "need" | "agent" | "since" | "beat" | "doing" | "task" | "tokens" | "cost" | "load";
export type GroupBy = "none" | "host" | "role" | "task";

export interface Wish {
  /** Part of the id, task, role, host or reason; upper and lower case are equal. */
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

/** Each agent's sort key is computed once, not per comparison. Equal agents sort by id, so that rows do not jump. */
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
  return sort === "need" ? compare(a.since, b.since) : 0; // The longest wait first.
}

type Key = number | string;

const KEYS: Record<SortBy, (agent: AgentHealth, rates: Rates) => Key> = {
  need: (agent) => agent.need,
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

/** Groups with the most unwell agents first; inside a group the given order. */
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
    unwell: members.filter((agent) => agent.unwell).length,
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
