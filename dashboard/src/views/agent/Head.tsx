/** The agent's name, its state, the reason, and the possible acts. */

import { now } from "../../clock";
import { Age } from "../../parts/Age";
import { Name } from "../../parts/Name";
import { State } from "../../parts/State";
import { mayAct } from "../../state";
import type { AgentHealth, Moment } from "#types";
import { doingWords, duration, seconds } from "../../words";
import { Acts } from "./Acts";

export function Head({ agent }: { agent: AgentHealth }) {
  const wrong = agent.why;
  return (
    <div class={`agent-head ${agent.state}`}>
      <p class="back">
        <a href="#/">All agents</a>
      </p>
      <h1 title={agent.agent_id}>
        <bdi>{agent.agent_id}</bdi>
      </h1>
      <p class="how">
        <State state={agent.state} />
        {agent.cause !== null && agent.cause !== "unknown" && <span class="cause">by {agent.cause}</span>}
        <span>
          for <Age at={agent.state_changed_at} />
        </span>
        {agent.state !== "terminated" && (
          <span>
            {doingWords(agent.doing) === "–" ? "says not what it does" : doingWords(agent.doing)}
            {agent.doing === "waiting_for_human" && (
              <>
                {" "}
                for <Age at={agent.doing_since} />
              </>
            )}
          </span>
        )}
        {agent.paused && <Paused until={agent.paused_until} />}
      </p>
      {agent.failure_class !== null && (
        <p class="failure-class">
          Its failure is <strong>{agent.failure_class}</strong>: <bdi>{agent.class_reason}</bdi>.
        </p>
      )}
      {wrong !== "" && (
        <p class="why">
          <bdi>{wrong}</bdi>
        </p>
      )}
      <dl class="facts">
        <Fact name="Task" text={agent.task_id} />
        <Fact name="Role" text={agent.role} />
        <Fact name="Host" text={agent.host} />
        <Fact name="Incarnation" text={agent.incarnation} />
        <div>
          <dt>Last beat</dt>
          <dd>
            <Age at={agent.last_heartbeat} ago />
          </dd>
        </div>
        <div>
          <dt>Last progress</dt>
          <dd>
            <Age at={agent.last_checkpoint} ago={agent.last_checkpoint !== null} />
          </dd>
        </div>
      </dl>
      {mayAct.value && <Acts agent={agent} />}
    </div>
  );
}

function Fact({ name, text }: { name: string; text: string | null }) {
  if (text === null) return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <Name text={text} />
      </dd>
    </div>
  );
}

function Paused({ until }: { until: Moment | null }) {
  const left = until === null ? "until it is resumed" : `for another ${duration(seconds(until) - now.value)}`;
  return <strong class="paused">left alone {left}</strong>;
}
