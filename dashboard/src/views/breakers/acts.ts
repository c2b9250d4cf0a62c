/** Turning a breaker: the hub orders it from the agent's side; the stages of the intervention show the outcome. */

import { tried } from "../../acts";
import { inPath, newKey, post } from "../../api";
import { confirm } from "../../parts/Confirm";
import { toast } from "../../parts/Toast";
import type { BreakerView, InterventionList } from "#types";
import { follow } from "../following";

export type Turn = "reset" | "open" | "close";

const QUESTIONS: Record<Turn, { act: string; text: string; done: string }> = {
  reset: { act: "Reset", text: "It is closed and forgets everything, as if it were new: the next call goes through.", done: "is reset" },
  open: { act: "Open", text: "Its calls are refused until its wait is over, then one is tried.", done: "is open" },
  close: { act: "Close", text: "Calls go through again, and failures are counted from zero.", done: "is closed" },
};

export function turnWords(turn: Turn): string {
  return QUESTIONS[turn].act;
}

export async function turnBreaker({ agent_id: agentId, name }: BreakerView, turn: Turn): Promise<void> {
  const { act, text, done } = QUESTIONS[turn];
  const what = `${name} of ${agentId}`;
  const answer = await confirm({ title: `${act} ${what}?`, text, ask: "Reason", act, danger: turn === "open" });
  if (!answer) return;
  const say = toast("waiting", `${act} ${what}: sent to the hub …`);
  const early = new Map<string, string>();
  let order: string | null = null;
  const told = (stage: string, why: string): boolean => {
    if (stage === "done") say("done", `${what} ${done}.`);
    else if (stage === "failed" || stage === "dropped") say("wrong", `${what} was not turned${why ? `: ${why}` : "."}`);
    else say("waiting", `${act} ${what}: ${stage}, and the agent has to do it …`);
    return stage === "done" || stage === "failed" || stage === "dropped";
  };
  const stop = follow((event) => {
    const { id, stage, text: why } = event.data as { id?: string; stage?: string; text?: string };
    if (event.agent_id !== agentId || !id || !stage) return false;
    early.set(id, stage);
    return id === order && told(stage, why ?? "");
  });
  const sent = await tried(say, async () => {
    const path = `/api/v1/breakers/${inPath(name)}/${turn}?agent=${encodeURIComponent(agentId)}`;
    const kept = (await post<InterventionList>(path, { reason: answer.words }, newKey())).interventions[0];
    order = kept?.id ?? null;
    if (kept && told(early.get(kept.id) ?? kept.stage, "")) stop();
  });
  if (!sent) stop();
}
