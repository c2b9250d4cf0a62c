/** An agent's life: a strip of its states, and below it the events, newest first. */

import { useState } from "preact/hooks";
import { spells, spellsText } from "../../charts/spells";
import { now } from "../../clock";
import { StateSign } from "../../parts/State";
import type { AgentHealth, FlipPoint, History } from "#types";
import { clockTime, duration, RUNGS, seconds, STAGES } from "../../words";
import { kindWords } from "./evidence";
import { Nothing, Section } from "./Section";

type Point = History["points"][number];

const SHOWN_FIRST = 12;
/** A narrower part of the strip than this share has no room for a sign. */
const ROOM_FOR_SIGN = 0.02;

export function Life({ agent, points, lasts }: { agent: AgentHealth; points: readonly Point[]; lasts: number }) {
  const to = now.value;
  const from = to - lasts;
  const flips = points.filter((point): point is FlipPoint => point.type === "flip");
  const strip = spells(flips, from, to, agent.state, seconds(agent.state_changed_at));
  return (
    <Section id="life" title="States" wide>
      <div class="strip" aria-hidden="true">
        {strip.map((spell) => {
          const share = (spell.to - spell.from) / lasts;
          return (
            <div
              key={spell.from}
              class={`spell ${spell.state}`}
              title={`${spell.state} for ${duration(spell.to - spell.from)}${spell.reason ? `: ${spell.reason}` : ""}`}
              style={{ left: `${((spell.from - from) / lasts) * 100}%`, width: `${share * 100}%` }}
            >
              {share > ROOM_FOR_SIGN && <StateSign state={spell.state} />}
            </div>
          );
        })}
      </div>
      <p class="scale" aria-hidden="true">
        <span>{duration(lasts)} ago</span>
        <span>now</span>
      </p>
      <p class="caption">{spellsText(strip)}</p>
      <Happened points={points} />
    </Section>
  );
}

function Happened({ points }: { points: readonly Point[] }) {
  const [all, setAll] = useState(false);
  const told = points.filter((point) => point.type !== "sample").reverse();
  if (!told.length) return <Nothing>Nothing has happened to it in this time.</Nothing>;
  const shown = all ? told : told.slice(0, SHOWN_FIRST);
  return (
    <>
      <ol class="happened" aria-label="What happened, the newest first">
        {shown.map((point) => (
          <li key={keyOf(point)} class={point.type}>
            <time dateTime={point.at}>{clockTime(point.at, now.value)}</time>
            <Said point={point} />
          </li>
        ))}
      </ol>
      {told.length > SHOWN_FIRST && (
        <button type="button" class="quiet" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? "Show less" : `Show all ${told.length}`}
        </button>
      )}
    </>
  );
}

function keyOf(point: Point): string {
  return point.type === "sample" ? point.at : `${point.event_id}`;
}

function Said({ point }: { point: Point }) {
  switch (point.type) {
    case "sample":
      return null;
    case "flip":
      return (
        <p>
          <StateSign state={point.to} /> <b>{point.to}</b>
          {point.cause !== null && point.cause !== "unknown" && ` by ${point.cause}`}, was {point.from}: <bdi>{point.reason}</bdi>
        </p>
      );
    case "finding":
      return (
        <p>
          {point.open ? "found" : "over"}: <b>{kindWords(point.kind)}</b>
          {point.severity !== null && ` (${point.severity})`} <bdi>{point.text ?? ""}</bdi>
        </p>
      );
    case "intervention":
      return (
        <p>
          <b>{RUNGS[point.rung] ?? point.rung}</b> {STAGES[point.stage] ?? point.stage}
          {point.by !== "" && (
            <>
              {" "}
              by <bdi>{point.by}</bdi>
            </>
          )}
          {point.text !== "" && (
            <>
              : <bdi>{point.text}</bdi>
            </>
          )}
        </p>
      );
  }
}
