/** Tasks that were taken back from lost workers, at the hub or in GitHub, the newest first. */

import { now } from "../../clock";
import { Name } from "../../parts/Name";
import { agentHref } from "../../route";
import type { RecoveredClaim } from "#types";
import { clockTime, duration } from "../../words";

export function Locks({ recovered }: { recovered: readonly RecoveredClaim[] }) {
  if (!recovered.length) return <p class="nothing">No worker was lost with a task it had claimed in this time.</p>;
  return (
    <div class="scroll">
      <table class="list locks">
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">Task</th>
            <th scope="col">Taken from</th>
            <th scope="col">Silent for</th>
            <th scope="col">Where</th>
          </tr>
        </thead>
        <tbody>
          {recovered.map((one) => (
            <tr key={one.event_id}>
              <td class="when"><time dateTime={one.at}>{clockTime(one.at, now.value)}</time></td>
              <td><Name text={one.task_id} /></td>
              <td class="main">{one.agent_id ? <Name text={one.agent_id} href={agentHref(one.agent_id)} /> : <span class="none">–</span>}</td>
              <td>{duration(one.silent_for_s)}</td>
              <td><Place one={one} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Place({ one }: { one: RecoveredClaim }) {
  if (!one.lock) return <>at the hub</>;
  if (!/^https?:/.test(one.comment_url)) return <Name text={one.lock} />;
  return (
    <a href={one.comment_url} rel="noreferrer" target="_blank">
      {one.lock}
    </a>
  );
}
