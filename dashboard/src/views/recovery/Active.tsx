/** Recoveries in progress: their stage, and what or whom they wait for. */

import { clear } from "../../acts";
import { now } from "../../clock";
import { Name } from "../../parts/Name";
import { agentHref } from "../../route";
import { mayAct } from "../../state";
import type { Phase, Recoveries, RecoveryView } from "#types";
import { duration, seconds } from "../../words";
import { recover } from "./acts";

const PHASES: Record<Phase, string> = {
  idle: "over",
  waiting: "waits before the next try",
  verifying: "reads its checkpoints back",
  starting: "is being started",
  probation: "lives again, watched closely",
  review: "a person has to look",
  quarantined: "quarantined: it crashed again and again",
};

const WAY: readonly Phase[] = ["waiting", "verifying", "starting", "probation"];

export function Active({ active }: { active: Recoveries["active"] }) {
  const found = [...active].sort((a, b) => urgency(a.recovery) - urgency(b.recovery));
  if (!found.length) return <p class="nothing">Nobody is being started anew. An agent that crashed or was terminated to go on would be here.</p>;
  return (
    <ul class="recoveries">
      {found.map(({ task_id: task, recovery }) => (
        <li key={recovery.agent_id} class={`recovery ${recovery.needs_a_person ? "needs" : recovery.phase}`} data-agent={recovery.agent_id} data-phase={recovery.phase}>
          <div class="who">
            <Name text={recovery.agent_id} href={agentHref(recovery.agent_id)} />
            {task !== null && <small><bdi title={task}>{task}</bdi></small>}
          </div>
          <div class="how">
            <strong>{PHASES[recovery.phase] ?? recovery.phase}</strong> <Left recovery={recovery} />
            {!recovery.needs_a_person && <Way phase={recovery.phase} />}
            <p><bdi>{recovery.reason}</bdi></p>
          </div>
          <small class="tries">
            attempt {recovery.attempt}
            {recovery.failures > 0 && `, ${recovery.failures} failed`}
            {recovery.checkpoint_id !== null && <>, from <bdi>{recovery.checkpoint_id}</bdi>{recovery.read_back === false && " (on its word)"}</>}
          </small>
          {mayAct.value && recovery.needs_a_person && (
            <div class="acts">
              {task !== null && <button type="button" class="primary" onClick={() => void recover(task, recovery.agent_id)}>Recover</button>}
              <button type="button" onClick={() => void clear(recovery.agent_id)}>Clear</button>
            </div>
          )}
        </li>
      ))}
    </ul>
  );
}

function Left({ recovery }: { recovery: RecoveryView }) {
  if (recovery.next_at === null) return null;
  const left = seconds(recovery.next_at) - now.value;
  return left > 0 ? <small>for at most another {duration(left)}</small> : null;
}

/** The stages of a recovery, with the current one. */
function Way({ phase }: { phase: Phase }) {
  const at = WAY.indexOf(phase);
  return (
    <ol class="phases" aria-hidden="true">
      {WAY.map((one, n) => (
        <li key={one} class={n < at ? "past" : n === at ? "here" : ""}>{one}</li>
      ))}
    </ol>
  );
}

/** Recoveries that need a person first, then the others. */
function urgency(recovery: RecoveryView): number {
  return recovery.needs_a_person ? 0 : recovery.on_its_way ? 1 : 2;
}
