/** Breakers in a table: state, failures, how long until a call is tried again, and what can be done. */

import { now } from "../../clock";
import { Age } from "../../parts/Age";
import { Name } from "../../parts/Name";
import { agentHref } from "../../route";
import { mayAct } from "../../state";
import type { BreakerView } from "#types";
import { count, duration, seconds } from "../../words";
import { Nothing } from "../agent/Section";
import { type Turn, turnBreaker, turnWords } from "./acts";
import { BreakerState } from "./BreakerState";

export function BreakerTable({ breakers, ofOne = false }: { breakers: readonly BreakerView[]; ofOne?: boolean }) {
  if (!breakers.length) return <Nothing>It has reported none. What it guards with a breaker would be here.</Nothing>;
  return (
    <div class="scroll">
      <table class="list breakers">
        <thead>
          <tr>
            <th scope="col">State</th>
            <th scope="col">Breaker</th>
            {!ofOne && <th scope="col">Agent</th>}
            <th scope="col" class="number">Failures</th>
            <th scope="col" class="number">Since</th>
            <th scope="col">Half-open</th>
            {mayAct.value && <th scope="col"><span class="unseen">Acts</span></th>}
          </tr>
        </thead>
        <tbody>
          {breakers.map((one) => (
            <tr key={`${one.agent_id} ${one.name}`} class={one.state} data-breaker={one.name} data-agent={one.agent_id}>
              <td><BreakerState state={one.state} /></td>
              <td class="main"><Name text={one.name} /></td>
              {!ofOne && <td><Name text={one.agent_id} href={agentHref(one.agent_id)} /></td>}
              <td class="number" data-label="failures in a row">{count(one.failures)}</td>
              <td class="number" data-label="for"><Age at={one.since} /></td>
              <td data-label="half-open"><HalfOpen breaker={one} /></td>
              {mayAct.value && <td class="acts"><Turns breaker={one} /></td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function HalfOpen({ breaker }: { breaker: BreakerView }) {
  if (breaker.state === "half_open") return <>a call is being tried</>;
  if (breaker.state === "forced_open") return <>until somebody turns it</>;
  if (breaker.half_open_at === null) return <span class="none">–</span>;
  const left = seconds(breaker.half_open_at) - now.value;
  return left > 0 ? <span class="countdown">in {duration(Math.ceil(left))}</span> : <>with the next call</>;
}

const TURNS: Record<BreakerView["state"], readonly Turn[]> = {
  closed: ["open"],
  open: ["reset", "close"],
  half_open: ["reset", "open"],
  forced_open: ["reset", "close"],
  disabled: ["reset"],
  observing: ["reset"],
};

function Turns({ breaker }: { breaker: BreakerView }) {
  return (
    <>
      {TURNS[breaker.state].map((turn) => (
        <button type="button" key={turn} class={turn === "open" ? "danger" : ""} onClick={() => void turnBreaker(breaker, turn)}>
          {turnWords(turn)}
        </button>
      ))}
    </>
  );
}
