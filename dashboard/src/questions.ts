/**
 * What agents that wait for a human want to know, and since when. It comes with the event; who waits since before this page
 * was opened is found among the last alerts, or in the agent's own events.
 */

import { signal } from "@preact/signals";
import { get } from "./api";
import type { Alert, HubEvent, Moment } from "./types";

export interface Question {
  at: Moment;
  /** Empty if it did not say. */
  text: string;
}

/** By agent. Those of agents that do not wait any more are left, and do no harm. */
export const questions = signal<ReadonlyMap<string, Question>>(new Map());

/** How many are looked up in one go: a fleet that waits as a whole is not worth a thousand questions. */
const LOOKED_UP_MAX = 20;

const lookedUp = new Set<string>();

/** Who said what, where it is a question to a human. */
export function noteQuestions(events: readonly HubEvent[]): void {
  const asked = events.filter(
    (event) => event.type === "NEEDS_HUMAN" && event.data["reason"] === "waiting_for_human",
  );
  add(asked.map((event) => [event.agent_id, event.at, String(event.data["text"] ?? "")]));
}

/** The alerts tell of the same, the newest first; who is not among them is asked about. */
export async function findQuestions(alerts: readonly Alert[]): Promise<void> {
  const asking = alerts.filter(
    (alert) => alert.type === "NEEDS_HUMAN" && alert.text.startsWith(waits(alert.agent_id)),
  );
  add(asking.filter((alert) => !alert.standing).map((alert) => [alert.agent_id, alert.at ?? "", alert.text]));
  const waiting = asking.filter((alert) => alert.standing).map((alert) => alert.agent_id);
  const unknown = waiting
    .filter((id) => !questions.value.has(id) && !lookedUp.has(id))
    .slice(0, LOOKED_UP_MAX);
  for (const id of unknown) {
    lookedUp.add(id);
    noteQuestions(
      (
        await get<{ events: HubEvent[] }>("/api/v1/events/list", {
          agent: id,
          types: "NEEDS_HUMAN",
          limit: 1000,
        })
      ).events,
    );
  }
}

function add(said: readonly (readonly [string, Moment, string])[]): void {
  if (!said.length) return;
  const next = new Map(questions.value);
  for (const [id, at, text] of said) {
    if (at >= (next.get(id)?.at ?? "")) next.set(id, { at, text: question(id, text) });
  }
  questions.value = next;
}

/** What it asks, without who asks: that stands beside it. */
export function question(agentId: string, text: string): string {
  const who = `${waits(agentId)}: `;
  return text.startsWith(who) ? text.slice(who.length) : "";
}

/** How the hub says it. */
function waits(agentId: string): string {
  return `${agentId} waits for a human`;
}
