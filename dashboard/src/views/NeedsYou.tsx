/** Needs you: what only a person can settle, with its age, its reason, and what to press. */

import { useState } from "preact/hooks";
import { answer, clear, DECIDE, decide, decisionWords, release } from "../acts";
import { now } from "../clock";
import { Age } from "../parts/Age";
import { Name } from "../parts/Name";
import { agentHref } from "../route";
import { fleet, mayAct, needs } from "../state";
import type { Alert, Need } from "#types";
import { acknowledge } from "./alerts/acts";
import { count, duration, seconds } from "../words";

/** At first only as many as leave room for the grid; on request all, up to a limit. */
const SHOWN_FIRST = 8;
const SHOWN_MAX = 200;

const LABELS: Record<Need["kind"], string> = {
  hub: "hub",
  braked: "braked",
  escalated: "decide",
  quarantined: "quarantined",
  waiting: "waiting",
  look: "look",
};

export function NeedsYou() {
  const [all, setAll] = useState(false);
  const list = needs.value;
  const shown = list.slice(0, all ? SHOWN_MAX : SHOWN_FIRST);
  if (fleet.value === null || fleet.value.agents === 0) return null;
  return (
    <section class="needs" aria-labelledby="needs-title">
      <h2 id="needs-title">Needs you {list.length > 0 && <span class="badge">{count(list.length)}</span>}</h2>
      {list.length === 0 ? (
        <p class="nobody">Nobody waits for you.</p>
      ) : (
        <ul>
          {shown.map((alert) => alert.need && <OneNeed key={alert.id} alert={alert} need={alert.need} />)}
        </ul>
      )}
      {list.length > SHOWN_FIRST && (
        <button type="button" class="quiet more" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? "Show fewer" : `Show all ${list.length.toLocaleString("en")}`}
        </button>
      )}
    </section>
  );
}

interface Props {
  alert: Alert;
  need: Need;
}

function OneNeed({ alert, need }: Props) {
  return (
    <li class={`need ${need.kind}`} data-need={need.kind}>
      <span class="label">{LABELS[need.kind]}</span>
      <div class="who">
        <Who alert={alert} need={need} />
        <p class="why" title={need.text}>
          <bdi>{need.text}</bdi>
        </p>
      </div>
      <span class="for">
        {alert.at !== null && (
          <>
            for <Age at={alert.at} />
          </>
        )}
        {need.until !== null && <Left until={need.until} />}
        {need.answered && <span class="left">answered, not taken up yet</span>}
      </span>
      {mayAct.value && <Buttons alert={alert} need={need} />}
    </li>
  );
}

function Who({ alert, need }: Props) {
  if (need.kind === "hub") return <strong>{need.title}</strong>;
  return alert.agent_id ? <Name text={need.title} href={agentHref(alert.agent_id)} /> : <Name text={need.title} />;
}

function Left({ until }: { until: string }) {
  const left = seconds(until) - now.value;
  return <span class="left">{left > 0 ? `${duration(left)} left to decide` : "time to decide is over"}</span>;
}

function Buttons({ alert, need }: Props) {
  switch (need.kind) {
    case "hub":
      return null;
    case "braked":
      return <OneAct words="Release" act={() => release(need.title)} />;
    case "quarantined":
      return <OneAct words="Clear" act={() => clear(alert.agent_id)} />;
    case "look":
      return <OneAct words="Acknowledge" act={() => acknowledge(alert)} />;
    case "waiting":
      return <OneAct words="Answer" act={() => answer(alert.agent_id, need.text)} />;
    case "escalated":
      return <Decisions agentId={alert.agent_id} escalationId={need.intervention_id} />;
  }
}

function OneAct({ words, act }: { words: string; act: () => Promise<void> }) {
  return (
    <div class="acts">
      <button type="button" class="primary" onClick={() => void act()}>
        {words}
      </button>
    </div>
  );
}

function Decisions({ agentId, escalationId }: { agentId: string; escalationId: string }) {
  return (
    <div class="acts" role="group" aria-label={`Decide about ${agentId}`}>
      {DECIDE.map((decision) => (
        <button
          type="button"
          key={decision}
          class={decision === "terminate" ? "danger" : decision === "more_time" ? "primary" : ""}
          onClick={() => void decide(agentId, escalationId, decision)}
        >
          {decisionWords(decision)}
        </button>
      ))}
    </div>
  );
}
