/**
 * What a person can do from here. A harmful act asks for confirmation first. Each act is sent once (its key makes a repetition
 * the same act), and reported as done when it was: by the hub's answer if the hub does it, by the stages of the
 * intervention if the agent's side does.
 */

import { agents } from "./agents";
import { ApiError, inPath, newKey, post } from "./api";
import { onEvents } from "./live";
import { confirm } from "./parts/Confirm";
import { toast, type Tone } from "./parts/Toast";
import type { AgentHealth, Decision, InterventionRecord, Rung, Stage } from "#types";
import { capital, RUNGS } from "./words";

export async function nudge(id: string): Promise<void> {
  const answer = await confirm({
    title: `Nudge ${id}?`,
    text: "It is told at its next turn boundary. Nothing that runs is interrupted.",
    ask: "Message (without one it is told the facts about itself)",
    act: "Nudge",
  });
  if (answer) await onTheLadder(id, "nudge", { message: answer.words });
}

/** Answer an agent that waits for a human: your text reaches it as a nudge. */
export async function answer(id: string, question: string): Promise<void> {
  const said = await confirm({
    title: `Answer ${id}`,
    text: question,
    ask: "Your answer (told at its next turn boundary)",
    required: true,
    act: "Answer",
  });
  if (said) await onTheLadder(id, "nudge", { message: said.words });
}

export async function escalate(id: string): Promise<void> {
  const answer = await confirm({
    title: `Escalate ${id}?`,
    text: "The orchestrator, or people by your channels, are asked to decide about it.",
    ask: "Reason",
    required: true,
    act: "Escalate",
  });
  if (answer) await onTheLadder(id, "escalate", { reason: answer.words });
}

export async function terminate(id: string): Promise<void> {
  const answer = await confirm({
    title: `Terminate ${id}?`,
    text: "It is asked to save, has a moment for it, and is then ended. What it did not save is lost.",
    ask: "Reason (on record, under your name)",
    required: true,
    option: "Start it anew from its last checkpoint",
    act: "Terminate",
    danger: true,
  });
  if (answer) await onTheLadder(id, "terminate", { reason: answer.words, respawn: answer.option });
}

export async function clear(id: string): Promise<void> {
  const answer = await confirm({
    title: `Clear ${id}?`,
    text: "Quarantine, open interventions and limits are lifted, and it is watched like any other again.",
    act: "Clear",
  });
  if (answer) await about(id, "clear", undefined, `${id} is cleared: quarantine and limits are lifted.`);
}

export async function pause(id: string, seconds: number | null): Promise<void> {
  const until = seconds === null ? "until it is resumed" : `for ${Math.round(seconds / 60)} min`;
  await about(id, "pause", { for: seconds }, `${id} is left alone ${until}.`);
}

export async function resume(id: string): Promise<void> {
  await about(id, "resume", undefined, `${id} is cared for again.`);
}

/** Allow interventions in a braked group. */
export async function release(group: string): Promise<void> {
  const answer = await confirm({
    title: `Release ${group}?`,
    text: "Many of it are unwell at once, so nothing is done there. Released, each of them is acted on again for an hour.",
    act: "Release",
    danger: true,
  });
  if (!answer) return;
  const said = toast("waiting", `Release: ${group} …`);
  await tried(said, async () => {
    await post(`/api/v1/groups/${inPath(group)}/release`);
    said("done", `${group} is released: interventions go on there for an hour.`);
  });
}

const DECISIONS: Record<Decision, { act: string; text: string; done: string }> = {
  more_time: {
    act: "More time",
    text: "It gets the time again before anybody is asked.",
    done: "has more time",
  },
  handoff: {
    act: "Hand off",
    text: "It is asked to save, is ended, and its task goes to another life.",
    done: "hands its task over",
  },
  terminate: {
    act: "Terminate",
    text: "It is asked to save, then ended; another life follows as the policy says.",
    done: "will be terminated",
  },
  ignore: { act: "Ignore", text: "It is left as it is.", done: "is left as it is" },
};

export const DECIDE: readonly Decision[] = ["more_time", "handoff", "terminate", "ignore"];

export function decisionWords(decision: Decision): string {
  return DECISIONS[decision].act;
}

/** Decide about an escalated agent. Ending it needs a confirmation. */
export async function decide(agentId: string, escalationId: string, decision: Decision): Promise<void> {
  const { act, text, done } = DECISIONS[decision];
  let note = "";
  if (decision === "handoff" || decision === "terminate") {
    const answer = await confirm({ title: `${act}: ${agentId}?`, text, ask: "Note", act, danger: true });
    if (!answer) return;
    note = answer.words;
  }
  const said = toast("waiting", `${act}: ${agentId} …`);
  await tried(said, async () => {
    await post(`/api/v1/escalations/${inPath(escalationId)}/decision`, { decision, note });
    said("done", `Decided: ${agentId} ${done}.`);
  });
}

async function about(id: string, act: string, body: unknown, done: string): Promise<void> {
  const said = toast("waiting", `${act}: ${id} …`);
  await tried(said, async () => {
    agents.put([await post<AgentHealth>(`/api/v1/agents/${inPath(id)}/${act}`, body)], Date.now() / 1000);
    said("done", done);
  });
}

export type Say = (tone: Tone, text: string) => void;

/** An order to the agent's side. The hub has it when it answers; its stages show the outcome. */
async function onTheLadder(id: string, act: Exclude<Rung, "respawn">, body: unknown): Promise<void> {
  const said = toast("waiting", `${nameOf(act, id)}: sent to the hub …`);
  const stages = new Map<string, Reached>();
  const heard: { id: string | null } = { id: null };
  const stop = onEvents((events) => {
    for (const event of events) {
      const stage = event.data["stage"];
      const order = event.data["id"];
      if (typeof stage !== "string" || typeof order !== "string" || event.agent_id !== id) continue;
      const reached = { stage: stage as Stage, text: String(event.data["text"] ?? "") };
      stages.set(order, reached); // The stage may arrive before the hub's answer with the order's id.
      if (order === heard.id && told(said, act, id, reached)) stop();
    }
  });
  const sent = await tried(said, async () => {
    const order = await post<InterventionRecord>(`/api/v1/agents/${inPath(id)}/${act}`, body, newKey());
    heard.id = order.id;
    if (told(said, act, id, stages.get(order.id) ?? { stage: order.stage, text: "" })) stop();
  });
  if (sent) setTimeout(stop, FOLLOWED_FOR_MS);
  else stop();
}

/** After this the agent's own page shows the rest. */
const FOLLOWED_FOR_MS = 600_000;

interface Reached {
  stage: Stage;
  text: string;
}

/** Say how far it came; true if that is the end of it. */
function told(say: Say, act: Rung, id: string, { stage, text }: Reached): boolean {
  const what = nameOf(act, id);
  const why = text ? `: ${text}` : "";
  switch (stage) {
    case "ordered":
      say(
        act === "escalate" ? "done" : "waiting",
        act === "escalate" ? `${what}: people are asked.` : `${what}: ordered …`,
      );
      return act === "escalate";
    case "held":
      say("waiting", `${what} is held back${why}`);
      return false;
    case "delivered":
      say(
        act === "nudge" ? "done" : "waiting",
        `${what}: delivered${act === "nudge" ? ", not read yet." : " …"}`,
      );
      return false;
    case "seen":
      say("done", `${what}: it has read it.`);
      return false;
    case "answered":
      say("done", `${what}: answered${why}`);
      return true;
    case "done":
      say("done", act === "terminate" ? `${id} is terminated.` : `${what}: done.`);
      return true;
    case "failed":
    case "dropped":
      say("wrong", `${what} ${stage === "failed" ? "failed" : "was dropped"}${why}`);
      return true;
  }
}

function nameOf(act: Rung, id: string): string {
  return `${capital(RUNGS[act])} ${act === "nudge" ? "to" : "of"} ${id}`;
}

/** Do it, and show the error if it fails. */
export async function tried(say: Say, act: () => Promise<void>): Promise<boolean> {
  try {
    await act();
    return true;
  } catch (error) {
    const why =
      error instanceof ApiError ? [error.title, error.detail].filter(Boolean).join(": ") : String(error);
    say("wrong", `It did not happen. ${why}`);
    return false;
  }
}
