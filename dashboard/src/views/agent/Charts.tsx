/** Charts of an agent's beats and usage. The past is loaded once; the present is polled every second. */

import { useEffect, useMemo, useRef } from "preact/hooks";
import { type BeatColumns, BeatsLive, joined, most, ofSamples } from "../../charts/beats";
import { Chart } from "../../charts/Chart";
import { PHI_MAX, phiWords, SUSPICIOUS } from "../../charts/surprise";
import { type Reading, together, totals } from "../../charts/totals";
import { hubTime, now } from "../../clock";
import type { AgentHealth, Rhythm, SamplePoint } from "#types";
import { count, duration, seconds } from "../../words";
import { span } from "./evidence";
import { Nothing, Section } from "./Section";

interface Props {
  agent: AgentHealth;
  samples: readonly SamplePoint[];
  rhythm: Rhythm | null;
  /** How much of the past is shown, in seconds. */
  lasts: number;
}

/** States in which the hub expects no beat. */
const SILENT: ReadonlySet<string> = new Set(["disconnected", "terminated", "starting"]);

/** A page that is left open for a day must not grow for a day. */
const READINGS_MAX = 3600;

export function BeatCharts({ agent, samples, rhythm, lasts }: Props) {
  const live = useRef(new BeatsLive());
  const columns = useMemo(() => {
    if (rhythm) live.current.note(rhythm);
    return joined(ofSamples(samples, rhythm?.spread_s ?? null), live.current.columns);
  }, [samples, rhythm]);
  if (agent.last_heartbeat === null) {
    return (
      <Section id="beats" title="Beats" wide>
        <Nothing>It has never beaten. Its beats would be here: what passes between them, and how late they are.</Nothing>
      </Section>
    );
  }
  const time = { at: columns.at, from: now.value - lasts, to: now.value };
  return (
    <Section id="beats" title="Beats" wide>
      <div class="charts">
        <Chart
          {...time}
          lines={[
            { label: "between beats", tone: "tone-beat", column: columns.interval, value: span },
            { label: "late by", tone: "tone-late", column: columns.late, value: span, dots: true },
          ]}
          text={timesText(columns, rhythm)}
        />
        <Chart
          {...time}
          lines={[{ label: "suspicion φ", tone: "tone-suspicion", column: columns.phi, value: (value) => value.toFixed(1) }]}
          topMin={SUSPICIOUS + 1}
          mark={{ at: SUSPICIOUS, label: "suspicious" }}
          text={phiText(agent, rhythm)}
        />
      </div>
    </Section>
  );
}

function timesText(columns: BeatColumns, rhythm: Rhythm | null): string {
  const late = most(columns.late);
  const often = rhythm ? `A beat every ${span(rhythm.interval_s)}` : "Beats";
  const lost = rhythm?.lost ? `, ${count(rhythm.lost)} lost of ${count(rhythm.beats + rhythm.lost)}` : "";
  return `${often}${lost}; the latest in this time came ${late === null || late < 0.005 ? "on time" : `${span(late)} after it was expected`}.`;
}

function phiText(agent: AgentHealth, rhythm: Rhythm | null): string {
  if (SILENT.has(agent.state)) return `It is ${agent.state}: no beat is waited for.`;
  const value = rhythm?.phi ?? agent.phi;
  const shown = value > PHI_MAX ? `over ${PHI_MAX}` : value.toFixed(1);
  const pings = rhythm?.asked ? ` It was pinged ${rhythm.asked === 1 ? "once" : `${rhythm.asked} times`} and has not answered.` : "";
  const after = rhythm ? ` Pinged after ${duration(rhythm.suspect_after_s)} of silence at the latest, sooner if its rhythm is steady.` : "";
  return `How surprising its silence is: φ ${shown}, ${phiWords(value)}.${pings}${after}`;
}

export function UseCharts({ agent, samples, lasts }: Omit<Props, "rhythm">) {
  const live = useRef<Reading[]>([]);
  useEffect(() => {
    live.current.push({ at: hubTime(), tokens: agent.metrics.token_count, errors: agent.metrics.error_count });
    if (live.current.length > READINGS_MAX) live.current.shift();
  }, [agent]);
  const columns = useMemo(() => {
    const past = samples.map((one): Reading => ({ at: seconds(one.at), tokens: one.token_count, errors: one.error_count }));
    const from = live.current[0]?.at ?? Infinity;
    // Kept apart: a sample covers a minute, so the time between the last sample and a poll is unknown.
    return together(totals(past.filter((one) => one.at < from)), totals(live.current));
  }, [samples, agent]);
  const { token_count: tokens, error_count: errors } = agent.metrics;
  const peak = most(columns.rate);
  const time = { at: columns.at, from: now.value - lasts, to: now.value };
  return (
    <Section id="use" title="Tokens and errors" wide>
      <div class="charts">
        <Chart
          {...time}
          lines={[{ label: "tokens a minute", tone: "tone-tokens", column: columns.rate, value: count }]}
          topMin={10}
          text={tokens ? `${count(tokens)} tokens in this life${peak === null ? "" : `, at most ${count(peak)} a minute in this time`}.` : "It has not told of any tokens."}
        />
        <Chart
          {...time}
          lines={[{ label: "errors in this life", tone: "tone-errors", column: columns.errors, value: count }]}
          topMin={4}
          text={errors ? `${count(errors)} errors in this life.` : "No errors in this life."}
        />
      </div>
    </Section>
  );
}
