/** Past steps of recoveries, newest first. */

import { now } from "../../clock";
import { Name } from "../../parts/Name";
import { agentHref } from "../../route";
import type { RecoveryStep } from "#types";
import { clockTime } from "../../words";

const STAGES: Record<RecoveryStep["stage"], string> = { initiated: "started anew", completed: "lives again", failed: "given up" };
const SIGNS: Record<RecoveryStep["stage"], string> = { initiated: "→", completed: "✓", failed: "✕" };

export function Steps({ steps }: { steps: readonly RecoveryStep[] }) {
  if (!steps.length) return <p class="nothing">Nobody was started anew in this time.</p>;
  return (
    <div class="scroll">
      <table class="list steps">
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">What</th>
            <th scope="col">Agent</th>
            <th scope="col">Task</th>
            <th scope="col">From</th>
            <th scope="col">Why</th>
          </tr>
        </thead>
        <tbody>
          {steps.map((step) => (
            <tr key={step.event_id} class={step.stage}>
              <td class="when"><time dateTime={step.at}>{clockTime(step.at, now.value)}</time></td>
              <td><span class={`outcome ${step.stage}`}><span aria-hidden="true">{SIGNS[step.stage]}</span> {STAGES[step.stage]}</span></td>
              <td class="main"><Name text={step.agent_id} href={agentHref(step.agent_id)} /></td>
              <td>{step.task_id === null ? <span class="none">–</span> : <Name text={step.task_id} />}</td>
              <td>{step.checkpoint_id === null ? <span class="none">task's start</span> : <Name text={step.checkpoint_id} />}</td>
              <td class="text"><bdi>{step.reason}</bdi></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
