/** One alert: severity, agent, text, and who acknowledged it. */

import type { JSX } from "preact";
import { now } from "../../clock";
import { Age } from "../../parts/Age";
import { agentHref } from "../../route";
import { mayAct } from "../../state";
import type { Alert, NoticeSeverity } from "#types";
import { clockTime } from "../../words";
import { acknowledge } from "./acts";

const SIGNS: Record<NoticeSeverity, JSX.Element> = {
  info: <circle cx="8" cy="8" r="4" />,
  warning: <path d="M8 2.2 14.2 13H1.8Z" />,
  error: <path d="M8 1.4 14.6 8 8 14.6 1.4 8Z" />,
  critical: <path d="M5.2 1.5h5.6l3.7 3.7v5.6l-3.7 3.7H5.2L1.5 10.8V5.2Z" />,
};

/** The agent's name links to its page. */
function Text({ alert: { agent_id: agent, what } }: { alert: Alert }) {
  return (
    <p>
      {agent !== "" && <a href={agentHref(agent)}><bdi>{agent}</bdi></a>}
      <bdi>{what}</bdi>
    </p>
  );
}

export function AlertRow({ alert, onSilence }: { alert: Alert; onSilence: (alert: Alert) => void }) {
  return (
    <li class={`alert ${alert.severity}${alert.standing ? " standing" : ""}`} data-alert={alert.id} data-severity={alert.severity}>
      <span class={`level ${alert.severity}`}>
        <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">{SIGNS[alert.severity]}</svg>
        {alert.severity}
      </span>
      <div class="what">
        <Text alert={alert} />
        {alert.acknowledged !== null && (
          <p class="taken">
            <bdi>{alert.acknowledged.by}</bdi> has it for <Age at={alert.acknowledged.at} />
            {alert.acknowledged.reason !== "" && <>: <bdi>{alert.acknowledged.reason}</bdi></>}
          </p>
        )}
        {alert.silenced_by !== "" && <p class="taken">Nobody is told: <bdi>{alert.silenced_by}</bdi></p>}
      </div>
      <span class="when">
        {alert.standing ? (
          alert.at === null ? "now" : <>for <Age at={alert.at} /></>
        ) : (
          <time dateTime={alert.at ?? ""}>{clockTime(alert.at, now.value)}</time>
        )}
      </span>
      {mayAct.value && alert.standing && (
        <span class="acts">
          {alert.key !== "" && alert.acknowledged === null && <button type="button" onClick={() => void acknowledge(alert)}>Acknowledge</button>}
          <button type="button" class="quiet" onClick={() => onSilence(alert)}>Silence …</button>
        </span>
      )}
    </li>
  );
}
