/** The interventions on an agent: who, why, and the stages reached. */

import { now } from "../../clock";
import type { InterventionRecord, Stage } from "#types";
import { clockTime, RUNGS, STAGES } from "../../words";
import { Nothing, Section } from "./Section";

export function Interventions({ list }: { list: readonly InterventionRecord[] | null }) {
  return (
    <Section id="interventions" title="Interventions">
      {list?.length === 0 && <Nothing>Nothing was ever done about it. Nudges, escalations, terminations and respawns would be here.</Nothing>}
      <ol class="interventions">
        {list?.map((one) => (
          <li key={one.id} data-intervention={one.id} data-stage={one.stage}>
            <h3>
              {RUNGS[one.rung] ?? one.rung}
              {one.attempt > 1 && ` ${one.attempt}`}
              <span class={`stage ${one.stage}`}>{STAGES[one.stage] ?? one.stage}</span>
              <small>
                by <bdi>{one.by || "lifesigns"}</bdi>, {clockTime(one.ordered_at, now.value)}
              </small>
            </h3>
            <p>
              <bdi>{one.reason}</bdi>
            </p>
            <Stages one={one} />
          </li>
        ))}
      </ol>
    </Section>
  );
}

const SAY_NOTHING_NEW: ReadonlySet<Stage> = new Set(["ordered"]);

/** Its stages, each once, with the reason given there. */
function Stages({ one }: { one: InterventionRecord }) {
  const reached = one.stages.filter((stage, n) => stage.stage !== one.stages[n - 1]?.stage);
  return (
    <ol class="way" aria-label="How far it came">
      {reached.map((stage) => (
        <li key={`${stage.stage} ${stage.at}`} class={stage.stage}>
          <span title={clockTime(stage.at, now.value)}>{STAGES[stage.stage] ?? stage.stage}</span>
          {stage.text !== "" && stage.text !== one.reason && !SAY_NOTHING_NEW.has(stage.stage) && (
            <q>
              <bdi>{stage.text}</bdi>
            </q>
          )}
          {stage.by !== "" && stage.by !== one.by && (
            <small>
              by <bdi>{stage.by}</bdi>
            </small>
          )}
        </li>
      ))}
    </ol>
  );
}
