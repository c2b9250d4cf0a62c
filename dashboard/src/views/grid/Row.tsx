/** One row of the grid: an agent, or the heading of a group. On a phone a row is a card. */

import { Component } from "preact";
import { nudge, terminate } from "../../acts";
import { cursor } from "../../listing";
import { Name } from "../../parts/Name";
import { State } from "../../parts/State";
import type { Rate } from "../../rates";
import { agentHref } from "../../route";
import type { Row } from "../../rows";
import { narrow } from "../../screen";
import { mayAct } from "../../state";
import type { AgentHealth } from "#types";
import { age, count, doingWords, many, money, percent } from "../../words";

/** As the style sheet has them. */
export const ROW_HEIGHT = 36;
export const CARD_HEIGHT = 132;

export interface RowProps {
  agent: AgentHealth;
  rate: Rate | null;
  index: number;
  here: boolean;
  now: number;
}

/** Redrawn only if its content changed: while the page scrolls, most rows stay the same. */
export class AgentRow extends Component<RowProps> {
  override shouldComponentUpdate(next: RowProps): boolean {
    const was = this.props;
    return (
      next.agent !== was.agent ||
      next.rate !== was.rate ||
      next.index !== was.index ||
      next.here !== was.here ||
      next.now !== was.now
    );
  }

  override render(props: RowProps) {
    return <Drawn {...props} />;
  }
}

function Drawn(props: RowProps) {
  const { agent, index, here } = props;
  const id = agent.agent_id;
  return (
    <div
      role="row"
      class={`row agent ${agent.state}${here ? " here" : ""}`}
      aria-rowindex={index + 2}
      aria-selected={here}
      data-agent={id}
      onClick={(event) => {
        if (!(event.target as Element).closest("a, button")) cursor.value = id;
      }}
      onDblClick={() => {
        location.hash = agentHref(id);
      }}
    >
      {narrow.value ? <Card {...props} /> : <Cells {...props} />}
    </div>
  );
}

function Cells({ agent, rate, now }: RowProps) {
  return (
    <>
      <div role="gridcell" class="cell">
        <State state={agent.state} />
      </div>
      <div role="gridcell" class="cell who">
        <Who agent={agent} />
      </div>
      <div role="gridcell" class="cell">
        <Doing agent={agent} />
      </div>
      <div role="gridcell" class="cell c-task">
        {agent.task_id === null ? <span class="none">–</span> : <Name text={agent.task_id} />}
      </div>
      <div role="gridcell" class="cell number">
        {age(agent.state_changed_at, now)}
      </div>
      <div role="gridcell" class="cell number">
        {age(agent.last_heartbeat, now)}
      </div>
      <div role="gridcell" class="cell number">
        {rate ? count(rate.tokensPerMinute) : "–"}
      </div>
      <div role="gridcell" class="cell number">
        {rate ? money(rate.costPerHour) : "–"}
      </div>
      <div role="gridcell" class="cell number c-load">
        <Load load={agent.load} />
      </div>
      {mayAct.value && (
        <div role="gridcell" class="cell acts">
          <Acts agent={agent} />
        </div>
      )}
    </>
  );
}

/** The same on a phone, in four lines. */
function Card({ agent, rate, now }: RowProps) {
  return (
    <div role="gridcell" class="card">
      <div class="line">
        <State state={agent.state} />
        <small>for {age(agent.state_changed_at, now)}</small>
        {mayAct.value && (
          <div class="acts">
            <Acts agent={agent} />
          </div>
        )}
      </div>
      <div class="line who">
        <Who agent={agent} />
        {agent.task_id !== null && <Name text={agent.task_id} />}
      </div>
      <Doing agent={agent} />
      <small class="line">
        <span>beat {age(agent.last_heartbeat, now)} ago</span>
        {rate && <span>{count(rate.tokensPerMinute)} tok/min</span>}
        {rate && <span>{money(rate.costPerHour)}/h</span>}
        {agent.load !== null && <span>load {percent(agent.load)}</span>}
      </small>
    </div>
  );
}

function Who({ agent }: { agent: AgentHealth }) {
  return (
    <>
      <Name text={agent.agent_id} href={agentHref(agent.agent_id)} />
      {agent.role !== null && (
        <bdi class="name dim" title={agent.role}>
          {agent.role}
        </bdi>
      )}
    </>
  );
}

function Doing({ agent }: { agent: AgentHealth }) {
  const wrong = agent.why;
  const paused = agent.paused ? " · left alone" : "";
  return (
    <span class="name" title={wrong || doingWords(agent.doing)}>
      <span class="doing-word">
        {doingWords(agent.doing)}
        {paused}
      </span>
      {wrong !== "" && (
        <>
          {" "}
          <bdi class="wrong">{wrong}</bdi>
        </>
      )}
    </span>
  );
}

function Load({ load }: { load: number | null }) {
  if (load === null) return <>–</>;
  const part = Math.min(1, Math.max(0, load));
  return (
    <span class="load">
      <i aria-hidden="true">
        <i style={{ transform: `scaleX(${part})` }} class={part > 0.9 ? "high" : ""} />
      </i>
      {percent(load)}
    </span>
  );
}

function Acts({ agent: { agent_id: id, state } }: { agent: AgentHealth }) {
  if (state === "terminated") return null;
  return (
    <>
      <button type="button" class="quiet" aria-label={`Nudge ${id}`} onClick={() => void nudge(id)}>
        Nudge
      </button>
      <button
        type="button"
        class="quiet danger"
        aria-label={`Terminate ${id}`}
        onClick={() => void terminate(id)}
      >
        Terminate
      </button>
    </>
  );
}

interface GroupProps {
  row: Extract<Row, { kind: "group" }>;
  index: number;
  onToggle: (name: string) => void;
}

export function GroupRow({ row, index, onToggle }: GroupProps) {
  return (
    <div role="row" class="row group" aria-rowindex={index + 2}>
      <div role="gridcell" class="cell">
        <button type="button" class="quiet" aria-expanded={row.open} onClick={() => onToggle(row.name)}>
          <span class="arrow" aria-hidden="true">
            {row.open ? "▾" : "▸"}
          </span>
          <bdi class="name" title={row.name}>
            {row.name}
          </bdi>
          <small>
            {many(row.size, "agent")}
            {row.unwell > 0 && <span class="wrong"> · {row.unwell} unwell</span>}
          </small>
        </button>
      </div>
    </div>
  );
}
