/** One agent: its state and the reason, its work, past interventions, and possible acts. */

import { useEffect, useMemo, useState } from "preact/hooks";
import "../../styles/agent.css";
import { agents } from "../agents";
import { get, inPath } from "../api";
import { now } from "../clock";
import { seen } from "../sync";
import { Empty } from "../parts/Empty";
import { Choice } from "../parts/Filter";
import { loading } from "../state";
import type {
  AgentHealth,
  CallHistoryView,
  CheckpointList,
  EventView,
  FindingPoint,
  History,
  InterventionList,
  LastBeat,
  Rhythm,
  SamplePoint,
} from "#types";
import { seconds } from "../words";
import { BeatCharts, UseCharts } from "./agent/Charts";
import { Checkpoints } from "./agent/Checkpoints";
import { Findings } from "./agent/Findings";
import { Head } from "./agent/Head";
import { Interventions } from "./agent/Interventions";
import { Life } from "./agent/Life";
import { Metrics } from "./agent/Metrics";
import { OnLadder } from "./agent/OnLadder";
import { Section } from "./agent/Section";
import { Tape } from "./agent/Tape";
import { usePolling } from "./polling";
import { BreakerTable } from "./breakers/Table";

const PERIODS = [
  ["900", "15 min"],
  ["3600", "1 h"],
  ["21600", "6 h"],
  ["86400", "1 day"],
  ["604800", "7 days"],
] as const;

export function Agent({ id }: { id: string }) {
  void agents.drawn.value;
  const agent = agents.all.get(id);
  useEffect(() => {
    // Polled about every two seconds, like the visible rows of the grid; also one that is not known yet.
    seen.value = [id];
    return () => void (seen.value = []);
  }, [id]);
  if (agent) return <Known agent={agent} />;
  if (!loading.value.done) return <p class="first">Loading …</p>;
  return (
    <Empty title="Nobody has heard of this agent">
      <p>
        <bdi>{id}</bdi> has not spoken since the hub remembers. With its first beat it appears here.
      </p>
      <p>
        <a href="#/">To all agents</a>
      </p>
    </Empty>
  );
}

function Known({ agent }: { agent: AgentHealth }) {
  const id = agent.agent_id;
  const path = `/api/v1/agents/${inPath(id)}`;
  const about = (event: EventView) => event.agent_id === id;
  const [lasts, setLasts] = useState<(typeof PERIODS)[number][0]>("3600");

  const told = usePolling(() => get<History>(`${path}/history`, { for: lasts }), `${path} ${lasts}`, {
    after: about,
    everyMs: 60_000,
  });
  const rhythm = usePolling(() => get<Rhythm>(`${path}/rhythm`), path, { everyMs: 1000 });
  const tape = usePolling(() => get<CallHistoryView>(`${path}/calls`), path, { after: about, everyMs: 2000 });
  const beat = usePolling(() => get<LastBeat>(`${path}/heartbeat`), path, { everyMs: 5000 });
  const done = usePolling(
    () => get<InterventionList>("/api/v1/interventions", { agent: id, limit: 50 }),
    path,
    { after: about },
  );
  const points = told.value?.points ?? NO_POINTS;
  const samples = useMemo(
    () => points.filter((point): point is SamplePoint => point.type === "sample"),
    [points],
  );
  const stack = lastStack(points);
  const unwell = agent.findings.length > 0 || stack !== null;
  const period = spanOf(points, Number(lasts), now.value);
  return (
    <article class="agent-page" data-agent={id}>
      <Head agent={agent} />
      <OnLadder agent={agent} />
      <div class="parts">
        <Findings findings={agent.findings} stack={stack} wide={unwell} />
        <Metrics agent={agent} rate={agents.rates.of(id)} beat={beat.value} wide={unwell} />
        <div class="period wide">
          <Choice label="Show the last" value={lasts} choices={PERIODS} onChange={setLasts} />
          {told.value?.complete === false && (
            <small>Not everything of this time fits: samples are put together, the oldest left out.</small>
          )}
          {told.problem !== null && (
            <small class="wrong">Its history cannot be had: {told.problem.message}</small>
          )}
        </div>
        <Life agent={agent} points={points} lasts={period} />
        <BeatCharts agent={agent} samples={samples} rhythm={rhythm.value} lasts={period} />
        <UseCharts agent={agent} samples={samples} lasts={period} />
        <div class="column">
          <Tape tape={tape.value} />
          <Saved agent={agent} />
        </div>
        <div class="column">
          <Interventions list={done.value?.interventions ?? null} />
          {agent.circuit_breakers.length === 0 && <OfBreakers agent={agent} />}
        </div>
        {agent.circuit_breakers.length > 0 && <OfBreakers agent={agent} />}
      </div>
    </article>
  );
}

function OfBreakers({ agent }: { agent: AgentHealth }) {
  return (
    <Section id="breakers" title="Circuit breakers" wide>
      <BreakerTable breakers={agent.circuit_breakers} ofOne />
    </Section>
  );
}

const NO_POINTS: History["points"] = [];

function Saved({ agent }: { agent: AgentHealth }) {
  const { task_id: task, last_checkpoint: last } = agent;
  const found = usePolling(
    async () =>
      task === null ? { checkpoints: [] } : get<CheckpointList>(`/api/v1/tasks/${inPath(task)}/checkpoints`),
    `${agent.agent_id} ${task}`,
    { everyMs: 5000 },
  );
  useEffect(() => found.again(), [last]);
  return <Checkpoints task={task} list={found.value?.checkpoints ?? []} problem={found.problem} />;
}

/** The period to show: the chosen one, but not the time before the agent was first heard. */
function spanOf(points: History["points"], wished: number, at: number): number {
  const first = points[0];
  return first ? Math.min(wished, Math.max(SPAN_MIN, at - seconds(first.at))) : wished;
}

const SPAN_MIN = 300;

/** Its stack when it last froze, if an event of this period has it. */
function lastStack(points: History["points"]): { text: string; at: string } | null {
  const frozen = points.findLast(
    (point): point is FindingPoint =>
      point.type === "finding" && typeof point.numbers?.["stack"] === "string",
  );
  return frozen ? { text: String(frozen.numbers?.["stack"]), at: frozen.at } : null;
}
