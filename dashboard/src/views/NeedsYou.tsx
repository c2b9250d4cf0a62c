/** Needs you: what only a person can settle, with its age, its reason, and what to press. */

import { useState } from "preact/hooks";
import { answer, clear, DECIDE, decide, decisionWords, release } from "../acts";
import { now } from "../clock";
import { needing } from "../needing";
import type { Need } from "../needs";
import { Age } from "../parts/Age";
import { Name } from "../parts/Name";
import { agentHref } from "../route";
import { fleet, mayAct } from "../state";
import { acknowledge } from "./alerts/acts";
import { count, duration, seconds } from "../words";

/** At first no more than leaves room for the grid; all of them, if asked for, up to what a page can bear. */
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
  const list = needing.value;
  const shown = list.slice(0, all ? SHOWN_MAX : SHOWN_FIRST);
  if (fleet.value === null || fleet.value.agents === 0) return null;
  return (
    <section class="needs" aria-labelledby="needs-title">
      <h2 id="needs-title">Needs you {list.length > 0 && <span class="badge">{count(list.length)}</span>}</h2>
      {list.length === 0 ? (
        <p class="nobody">Nobody waits for you.</p>
      ) : (
        <ul>
          {shown.map((need) => (
            <li key={need.key} class={`need ${need.kind}`} data-need={need.kind}>
              <OneNeed need={need} />
            </li>
          ))}
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

function OneNeed({ need }: { need: Need }) {
  return (
    <>
      <span class="label">{LABELS[need.kind]}</span>
      <div class="who">
        <Who need={need} />
        <p class="why" title={need.text}>
          <bdi>{need.text}</bdi>
        </p>
      </div>
      <span class="for">
        {need.since !== null && (
          <>
            for <Age at={need.since} />
          </>
        )}
        {need.kind === "escalated" && need.until !== null && <Left until={need.until} />}
        {need.kind === "waiting" && need.answered && <span class="left">answered, not taken up yet</span>}
      </span>
      {mayAct.value && <Buttons need={need} />}
    </>
  );
}

function Who({ need }: { need: Need }) {
  if (need.kind === "hub") return <strong>{need.title}</strong>;
  if (need.kind === "braked") return <Name text={need.group} />;
  return <Name text={need.agentId} href={agentHref(need.agentId)} />;
}

function Left({ until }: { until: string }) {
  const left = seconds(until) - now.value;
  return <span class="left">{left > 0 ? `${duration(left)} left to decide` : "time to decide is over"}</span>;
}

function Buttons({ need }: { need: Need }) {
  switch (need.kind) {
    case "hub":
      return null;
    case "braked":
      return <OneAct words="Release" act={() => release(need.group)} />;
    case "quarantined":
      return <OneAct words="Clear" act={() => clear(need.agentId)} />;
    case "look":
      return <OneAct words="Acknowledge" act={() => acknowledge(need.alert)} />;
    case "waiting":
      return <OneAct words="Answer" act={() => answer(need.agentId, need.text)} />;
    case "escalated":
      return <Decisions agentId={need.agentId} escalationId={need.escalationId} />;
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
