/** What a person can do about an agent. The hub's answer and the list of interventions show the outcome. */

import { useState } from "preact/hooks";
import { clear, escalate, nudge, pause, resume, terminate } from "../../acts";
import type { AgentHealth } from "#types";

const PAUSES = [
  ["900", "for 15 min"],
  ["3600", "for 1 h"],
  ["28800", "for 8 h"],
  ["", "until resumed"],
] as const;

export function Acts({ agent }: { agent: AgentHealth }) {
  const id = agent.agent_id;
  const ended = agent.state === "terminated";
  return (
    <div class="agent-acts" role="group" aria-label="Act on this agent">
      {!ended && (
        <>
          <button type="button" class="primary" onClick={() => void nudge(id)}>
            Nudge
          </button>
          <button type="button" onClick={() => void escalate(id)}>
            Escalate
          </button>
          {!agent.paused ? (
            <Pause id={id} />
          ) : (
            <button type="button" onClick={() => void resume(id)}>
              Resume
            </button>
          )}
        </>
      )}
      <button type="button" title="Lift quarantine, open interventions and limits" onClick={() => void clear(id)}>
        Clear
      </button>
      {!ended && (
        <button type="button" class="danger" onClick={() => void terminate(id)}>
          Terminate
        </button>
      )}
    </div>
  );
}

function Pause({ id }: { id: string }) {
  const [lasts, setLasts] = useState<string>("900");
  return (
    <span class="pause">
      <button type="button" title="Leave it alone: it is watched, but nothing is done about it" onClick={() => void pause(id, lasts === "" ? null : Number(lasts))}>
        Pause
      </button>
      <select aria-label="How long to pause it" value={lasts} onChange={(event) => setLasts(event.currentTarget.value)}>
        {PAUSES.map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
      </select>
    </span>
  );
}
