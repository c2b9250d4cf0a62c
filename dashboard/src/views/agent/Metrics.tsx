/** All numbers of an agent, and its last beat as received. */

import { Age } from "../../parts/Age";
import type { Rate } from "../../rates";
import type { AgentHealth, LastBeat } from "#types";
import { count, duration, money, percent } from "../../words";
import { Section } from "./Section";

interface Props {
  agent: AgentHealth;
  rate: Rate | null;
  beat: LastBeat | null;
  wide: boolean;
}

export function Metrics({ agent, rate, beat, wide }: Props) {
  const of = agent.metrics;
  const gauges = beat?.beat.metrics;
  const numbers: [string, string, string?][] = [
    ["Uptime", of.uptime_seconds ? duration(of.uptime_seconds) : "–"],
    ["Tokens", count(of.token_count), of.token_count.toLocaleString("en")],
    ["Tokens/min", rate ? count(rate.tokensPerMinute) : "–"],
    ["Cost", money(of.cost_usd), `$${of.cost_usd}`],
    ["Cost/h", rate ? money(rate.costPerHour) : "–"],
    ["Tool calls", count(of.tool_call_count)],
    ["Errors", count(of.error_count)],
    ["Load", percent(agent.load)],
    ["Room for tasks", agent.capacity_available === null ? "–" : count(agent.capacity_available)],
    ["CPU", gauges?.cpu_percent == null ? "–" : `${Math.round(gauges.cpu_percent)} %`],
    ["Memory", gauges?.memory_mb == null ? "–" : `${Math.round(gauges.memory_mb)} MB`],
    ["Beats", count(of.total_heartbeats), of.total_heartbeats.toLocaleString("en")],
    ["Missed just now", count(of.missed_heartbeats)],
    ["Disconnections", count(of.disconnection_count)],
    ["Interventions", count(of.intervention_count)],
  ];
  return (
    <Section id="metrics" title="In numbers" wide={wide}>
      <dl class="metrics">
        {numbers.map(([name, value, exact]) => (
          <div key={name} data-metric={name}>
            <dt>{name}</dt>
            <dd {...(exact === undefined ? {} : { title: exact })}>{value}</dd>
          </div>
        ))}
      </dl>
      {beat !== null && <AsItCame beat={beat} />}
    </Section>
  );
}

function AsItCame({ beat }: { beat: LastBeat }) {
  const metadata = Object.entries(beat.beat.metadata ?? {}).filter(([key]) => key !== "stack");
  const own = (["status", "phase", "progress", "pid"] as const).flatMap((key): [string, string][] =>
    beat.beat[key] === undefined ? [] : [[key, String(beat.beat[key])]],
  );
  if (!own.length && !metadata.length) return null;
  return (
    <details>
      <summary>
        What it says of itself <small>(<Age at={beat.received_at} ago />)</small>
      </summary>
      <dl class="said">
        {[...own, ...metadata].map(([key, value]) => (
          <div key={key}>
            <dt>
              <bdi>{key}</bdi>
            </dt>
            <dd>
              <bdi>{value}</bdi>
            </dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
