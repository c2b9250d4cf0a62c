/** The step of the ladder an agent is on, how long it has, and the decision that people are asked for. */

import { DECIDE, decide, decisionWords } from "../../acts";
import { now } from "../../clock";
import { Age } from "../../parts/Age";
import { mayAct } from "../../state";
import type { AgentHealth, InterventionView as Step } from "#types";
import { duration, RUNGS, seconds } from "../../words";

/** What the time until the first step of a case is left for: nothing has been done yet. */
const FIRST: Record<string, string> = {
  nudge: "it is nudged",
  escalate: "people are asked",
  terminate: "it is ended",
};

const NEXT: Record<string, string> = {
  nudge: "the next step",
  escalate: "it is decided without you",
  terminate: "it is forced",
  respawn: "the next try",
};

export function OnLadder({ agent }: { agent: AgentHealth }) {
  const step = agent.intervention;
  if (step === null || agent.state === "terminated") return null;
  return (
    <div class={`on-ladder ${step.rung}`} role="region" aria-label="What is being done about it">
      <div>
        <strong>
          {RUNGS[step.rung] ?? step.rung}
          {step.attempt > 1 && `, attempt ${step.attempt}`}
        </strong>{" "}
        <small>
          for <Age at={step.since} />
          {step.decided ? <Granted step={step} /> : <Left step={step} />}
        </small>
        <p>
          <bdi>{step.reason}</bdi>
        </p>
      </div>
      {step.rung === "escalate" && step.id !== "" && !step.decided && mayAct.value && (
        <div class="acts" role="group" aria-label={`Decide about ${agent.agent_id}`}>
          {DECIDE.map((decision) => (
            <button
              type="button"
              key={decision}
              class={decision === "terminate" ? "danger" : decision === "more_time" ? "primary" : ""}
              onClick={() => void decide(agent.agent_id, step.id, decision)}
            >
              {decisionWords(decision)}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

function Granted({ step }: { step: Step }) {
  const left = step.next_at === null ? 0 : seconds(step.next_at) - now.value;
  return (
    <>
      , decided: <bdi>{step.decided.replaceAll("_", " ")}</bdi>
      {left > 0 && `, looked at again in ${duration(left)}`}
    </>
  );
}

function Left({ step }: { step: Step }) {
  if (step.next_at === null) return null;
  const left = seconds(step.next_at) - now.value;
  const steps = step.id === "" ? FIRST : NEXT;
  return left > 0 ? (
    <>
      , {duration(left)} until {steps[step.rung] ?? "the next step"}
    </>
  ) : null;
}
