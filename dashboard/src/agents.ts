/**
 * All agents, as last received. Plain data, not signals: ten thousand of them change all the time, and a screen shows
 * forty. Components read `drawn`, which rises once per animation frame, however much has changed.
 */

import { signal } from "@preact/signals";
import { Rates } from "./rates";
import type { AgentHealth, Cause, EventView, Health } from "#types";
import { seconds } from "./words";

/** Seconds; no answer takes longer. */
const OVERTAKEN_FOR = 3;

export class Agents {
  readonly all = new Map<string, AgentHealth>();
  readonly rates = new Rates();
  /** Rises with every frame in which something has changed. */
  readonly drawn = signal(0);
  /** Rises when an agent came or went, or changed in more than its numbers. */
  readonly moved = signal(0);

  /** When the last event about an agent came. */
  readonly #told = new Map<string, number>();
  #moved = false;
  #frame = 0;

  /** Set the current state of these. */
  put(agents: readonly AgentHealth[], at: number): void {
    for (const agent of agents) {
      const was = this.all.get(agent.agent_id);
      const told = this.#told.has(agent.agent_id);
      if (was && this.#overtaken(was, agent, at)) continue;
      if (!was || told || differs(was, agent)) this.#moved = true;
      this.all.set(agent.agent_id, agent);
      this.rates.note(agent, at);
    }
    if (agents.length) this.#draw();
  }

  /** Remove these. */
  remove(ids: Iterable<string>): void {
    for (const id of ids) {
      if (!this.all.delete(id)) continue;
      this.rates.forget(id);
      this.#told.delete(id);
      this.#moved = true;
    }
    if (this.#moved) this.#draw();
  }

  /** Remove all but these. */
  keepOnly(ids: ReadonlySet<string>): void {
    this.remove([...this.all.keys()].filter((id) => !ids.has(id)));
  }

  /**
   * Apply an event at once; the rest of the agent follows with the next answer, and only then does its row move: how much it
   * needs a person is the hub's to say. Sorted without that, an agent that begins to fail would be the last of the healthy.
   */
  apply(event: EventView, at: number): void {
    const agent = this.all.get(event.agent_id);
    if (!agent) return;
    const changed = told(agent, event);
    if (!changed) return;
    this.all.set(event.agent_id, changed);
    this.#told.set(event.agent_id, at);
    this.#draw();
  }

  /** An answer made before an event and received after it must not undo the event. */
  #overtaken(was: AgentHealth, agent: AgentHealth, at: number): boolean {
    const told = this.#told.get(agent.agent_id);
    if (told === undefined) return false;
    if (at - told < OVERTAKEN_FOR && seconds(agent.state_changed_at) < seconds(was.state_changed_at) - 0.002)
      return true;
    this.#told.delete(agent.agent_id);
    return false;
  }

  #draw(): void {
    if (this.#frame) return;
    this.#frame = nextFrame(() => {
      this.#frame = 0;
      if (this.#moved) {
        this.#moved = false;
        this.moved.value += 1;
      }
      this.drawn.value += 1;
    });
  }
}

export const agents = new Agents();

/** An agent after an event; undefined if the event does not change its state. */
export function told(agent: AgentHealth, event: EventView): AgentHealth | undefined {
  if (event.type === "HEALTH_STATE_CHANGED") {
    const state = event.data["to"] as Health;
    const cause = state === "disconnected" ? ((event.data["cause"] as Cause | null) ?? null) : null;
    return { ...agent, state, cause, ...failure(event, "failure_class", "class_reason"), state_changed_at: event.at };
  }
  if (event.type === "FAILURE_CLASSIFIED") {
    return { ...agent, ...failure(event, "to", "reason") };
  }
  if (event.type === "NEEDS_HUMAN" && event.data["reason"] === "waiting_for_human") {
    return { ...agent, doing: "waiting_for_human", doing_since: event.at };
  }
  return undefined;
}

function failure(event: EventView, named: string, because: string) {
  return {
    failure_class: (event.data[named] as AgentHealth["failure_class"]) ?? null,
    class_reason: (event.data[because] as string | undefined) ?? "",
  };
}

/** Whether an agent's row changed: its group, its place, whether a filter shows it, or its text. */
function differs(a: AgentHealth, b: AgentHealth): boolean {
  return (
    a.state !== b.state ||
    a.state_changed_at !== b.state_changed_at ||
    a.doing !== b.doing ||
    a.why !== b.why ||
    a.need !== b.need ||
    a.task_id !== b.task_id ||
    a.role !== b.role ||
    a.host !== b.host ||
    a.findings.length !== b.findings.length
  );
}

/** A hidden page draws no frames, and must not collect changes for them. */
function nextFrame(draw: () => void): number {
  return document.hidden ? window.setTimeout(draw, 500) : requestAnimationFrame(draw);
}
