/** Continues a task in a new life of its agent. The recovery's events show the outcome. */

import { tried } from "../../acts";
import { inPath, newKey, post } from "../../api";
import { confirm } from "../../parts/Confirm";
import { toast } from "../../parts/Toast";
import type { EventView } from "#types";
import { follow } from "../following";

export async function recover(taskId: string, agentId: string): Promise<void> {
  const answer = await confirm({
    title: `Recover ${taskId}?`,
    text: `${agentId} is started anew from its newest checkpoint that holds. Limits, review and quarantine are lifted.`,
    act: "Recover",
  });
  if (!answer) return;
  const say = toast("waiting", `Recovery of ${taskId}: sent to the hub …`);
  const told = ({ type, data }: EventView): boolean => {
    if (type === "RECOVERY_INITIATED") say("waiting", `${agentId} is being started anew …`);
    else if (type === "RECOVERY_COMPLETED") say("done", `${agentId} lives again, and is watched closely for a while.`);
    else if (type === "RECOVERY_FAILED") say("wrong", `${agentId} could not be started anew: ${String(data["reason"] ?? "")}`);
    return type === "RECOVERY_COMPLETED" || type === "RECOVERY_FAILED";
  };
  const stop = follow((event) => event.agent_id === agentId && told(event));
  const sent = await tried(say, async () => {
    await post(`/api/v1/tasks/${inPath(taskId)}/recover`, { agent_id: agentId }, newKey());
  });
  if (!sent) stop();
}
