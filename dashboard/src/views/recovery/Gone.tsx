/** Agents that are gone and had a task: a person can have them restarted. */

import { useState } from "preact/hooks";
import { agents } from "../../agents";
import { Age } from "../../parts/Age";
import { Name } from "../../parts/Name";
import { State } from "../../parts/State";
import { agentHref } from "../../route";
import { mayAct } from "../../state";
import type { AgentHealth } from "#types";
import { many } from "../../words";
import { recover } from "./acts";

const SHOWN_FIRST = 20;

export function Gone({ underWay }: { underWay: ReadonlySet<string> }) {
  void agents.moved.value;
  const [all, setAll] = useState(false);
  const gone = [...agents.all.values()].filter((agent) => isGone(agent) && !underWay.has(agent.agent_id));
  gone.sort((a, b) => (a.state_changed_at < b.state_changed_at ? 1 : -1));
  if (!gone.length) return <p class="nothing">Every task with an agent has one that lives. Tasks whose agent is gone would be here, to be recovered by hand.</p>;
  return (
    <>
      <ul class="gone">
        {gone.slice(0, all ? undefined : SHOWN_FIRST).map((agent) => (
          <li key={agent.agent_id} data-agent={agent.agent_id}>
            <State state={agent.state} />
            <Name text={agent.agent_id} href={agentHref(agent.agent_id)} />
            <Name text={agent.task_id ?? ""} />
            <span class="dim">
              <Age at={agent.state_changed_at} ago />
            </span>
            {mayAct.value && <button type="button" onClick={() => void recover(agent.task_id ?? "", agent.agent_id)}>Recover</button>}
          </li>
        ))}
      </ul>
      {gone.length > SHOWN_FIRST && !all && (
        <button type="button" class="quiet" onClick={() => setAll(true)}>Show {many(gone.length - SHOWN_FIRST, "more", "more")}</button>
      )}
    </>
  );
}

function isGone(agent: AgentHealth): boolean {
  return agent.task_id !== null && (agent.state === "terminated" || agent.state === "disconnected");
}
