/** The first page: agents that need a person, then all agents. */

import { Empty } from "../parts/Empty";
import { fleet, loading } from "../state";
import { Grid } from "./Grid";
import { NeedsYou } from "./NeedsYou";

export function Fleet() {
  if (fleet.value?.agents === 0 && loading.value.done) return <NoAgents />;
  return (
    <>
      <h1 class="unseen">The fleet</h1>
      <NeedsYou />
      <Grid />
    </>
  );
}

const CURL = `curl ${location.origin}/api/v1/beats \\
  -H "Authorization: Bearer $LIFESIGNS_TOKEN" \\
  -d '{"agent_id": "my-agent"}'`;

function NoAgents() {
  return (
    <Empty title="No agents yet">
      <p>This page fills by itself with the first beat. On this machine, put this before any command:</p>
      <pre>
        <code>lifesigns run -- your-command</code>
      </pre>
      <p>Or send one beat from anywhere:</p>
      <pre>
        <code>{CURL}</code>
      </pre>
      <p>
        Just looking around? <code>lifesigns demo</code> brings a fleet in which everything goes wrong.
      </p>
    </Empty>
  );
}
