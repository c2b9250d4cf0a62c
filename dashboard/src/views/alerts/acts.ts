/** Acknowledging and silencing alerts. The hub does both itself, so its answer is the confirmation. */

import { tried } from "../../acts";
import { inPath, newKey, post, remove } from "../../api";
import { confirm } from "../../parts/Confirm";
import { toast } from "../../parts/Toast";
import type { Alert, SilenceView } from "#types";

export async function acknowledge(alert: Alert): Promise<void> {
  const answer = await confirm({
    title: "Take this alert on?",
    text: `${alert.text} Nobody is reminded of it any more, unless it gets worse; that it is over is told all the same.`,
    ask: "Note for the others",
    act: "Acknowledge",
  });
  if (!answer) return;
  const say = toast("waiting", "Acknowledging …");
  await tried(say, async () => {
    await post(`/api/v1/alerts/${inPath(alert.id)}/ack`, { reason: answer.words }, newKey());
    say("done", "It is yours: the others are told that you have it.");
  });
}

export interface Wanted {
  agents: readonly string[];
  kinds: readonly string[];
  for: number;
  reason: string;
}

/** True if the silence was made. */
export async function silence(wanted: Wanted): Promise<boolean> {
  const say = toast("waiting", "Silencing …");
  return tried(say, async () => {
    await post("/api/v1/silences", wanted, newKey());
    say("done", "Nobody is told of it for a while. Everything is on record all the same.");
  });
}

export async function unsilence({ id, reason }: SilenceView): Promise<void> {
  const answer = await confirm({
    title: "End this silence?",
    text: `“${reason}” What it kept from people and still lasts is told now.`,
    act: "End it",
  });
  if (!answer) return;
  const say = toast("waiting", "Ending the silence …");
  await tried(say, async () => {
    await remove(`/api/v1/silences/${inPath(id)}`);
    say("done", "The silence is over.");
  });
}
