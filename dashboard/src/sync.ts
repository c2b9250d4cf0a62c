/**
 * Keeps the page's data current at little cost:
 *
 * - A change of state arrives as an event and is shown with the next frame; we request the agent soon after.
 * - We request the visible rows every two seconds, for their beats and counters.
 * - We request all changed agents (`since=`) less often the more there are, at most a thousand a second: every beat is a
 *   change, and ten thousand agents at every beat would be two megabytes a second that nobody can read.
 */

import { effect, signal } from "@preact/signals";
import { get } from "./api";
import { agents } from "./agents";
import { hubTime, setHubTime } from "./clock";
import { link, signedOut } from "./contact";
import { gaps, onEvents } from "./live";
import { fleet, hubs, loading, me } from "./state";
import type { AgentList, EventView, FleetView, HubList, Me } from "#types";

/** The first load must be quick; a later page must be parsed and drawn without a visible pause. */
const PAGE_FIRST = 1000;
const PAGE = 500;
/** Ids in one request: the hub's limit. */
const IDS_MAX = 100;
const SEEN_EVERY_MS = 2_000;
const FLEET_EVERY_MS = 2_000;
const HUBS_EVERY_MS = 5_000;
/** A storm of events must not become a storm of requests; the hub itself renews its fleet view once a second. */
const FLEET_REST_MS = 1_000;
const ALL_EVERY_MIN_MS = 2_000;
const ALL_EVERY_MS_EACH = 1;
/** The delay after an event: long enough that a burst is one request, short enough that nobody notices it. */
const SOON_MS = 250;

/** Ids of the rows on the screen. */
export const seen = signal<readonly string[]>([]);

export function keep(): void {
  onEvents(hear);
  reload();
  effect(() => {
    if (gaps.value || link.value.live) reload();
  });
  addEventListener("visibilitychange", () => {
    if (!document.hidden) reload();
  });
  every(() => FLEET_EVERY_MS, lookAtFleet);
  every(() => HUBS_EVERY_MS, lookAtHubs);
  every(() => Math.max(ALL_EVERY_MIN_MS, agents.all.size * ALL_EVERY_MS_EACH), lookAtAll);
  every(
    () => SEEN_EVERY_MS,
    () => lookAt(seen.value),
  );
}

/** Load everything again, because events may have been missed. */
function reload(): void {
  void refresh(lookAtAll);
  void refresh(lookAtFleet);
  void refresh(lookAtHubs);
  void recognise();
}

/** Ask the hub who we are: that may have changed while it was away. */
export async function recognise(): Promise<void> {
  await refresh(async () => {
    me.value = await get<Me>("/api/v1/me");
  });
}

// --- events ----------------------------------------------------------------------------------------------

const toAsk = new Set<string>();

function hear(events: readonly EventView[]): void {
  const at = hubTime();
  for (const event of events) {
    agents.apply(event, at);
    if (event.agent_id) toAsk.add(event.agent_id);
    if (!QUIET.has(event.type)) lookAtFleetSoon();
  }
  if (toAsk.size) lookAtThoseSoon();
}

/** Events that do not change which agents need a person. */
const QUIET = new Set(["FINDING_OPENED", "FINDING_CLOSED", "NUDGE_SENT", "CLAIM_CHANGED", "SIGNAL_REFUSED"]);

const lookAtFleetSoon = soon(lookAtFleet, FLEET_REST_MS);
const lookAtThoseSoon = soon(async () => {
  const ids = [...toAsk];
  toAsk.clear();
  await (ids.length > IDS_MAX ? lookAtAll() : lookAt(ids));
}, SOON_MS);

// --- polling ---------------------------------------------------------------------------------------------

async function lookAtFleet(): Promise<void> {
  fleet.value = await get<FleetView>("/api/v1/fleet");
  setHubTime(fleet.value.hub.at);
}

async function lookAtHubs(): Promise<void> {
  hubs.value = (await get<HubList>("/api/v1/hubs")).hubs;
}

async function lookAt(ids: readonly string[]): Promise<void> {
  for (let from = 0; from < ids.length; from += IDS_MAX) {
    const some = ids.slice(from, from + IDS_MAX);
    const found = await get<AgentList>("/api/v1/agents", { id: some.join(","), limit: IDS_MAX });
    agents.put(found.agents, hubTime());
    const known = new Set(found.agents.map((agent) => agent.agent_id));
    agents.remove(some.filter((id) => !known.has(id)));
  }
}

/** All agents, or with a token only those that changed since. A second call during a request shares its answer. */
const lookAtAll = once(async () => {
  const ids = new Set<string>();
  let [next, cursor, complete]: [string | null, string | null, boolean] = [null, null, true];
  do {
    const page: AgentList = await get<AgentList>("/api/v1/agents", {
      limit: token === null ? PAGE_FIRST : PAGE,
      since: token,
      cursor,
    });
    next ??= page.updated; // What changes while the pages are turned is told again the next time.
    [cursor, complete] = [page.cursor, page.complete];
    agents.put(page.agents, hubTime());
    agents.remove(page.gone);
    for (const agent of page.agents) ids.add(agent.agent_id);
    if (!loading.value.done) loading.value = { done: false, loaded: ids.size };
  } while (cursor !== null);
  if (complete) agents.keepOnly(ids);
  token = next;
  if (!loading.value.done) loading.value = { done: true, loaded: ids.size };
});

let token: string | null = null;

// --- when ------------------------------------------------------------------------------------------------

type Look = () => Promise<void>;

/** Run this once a little later, however many callers ask, and not again before `rest` is over. */
function soon(look: Look, rest: number): () => void {
  let waiting = false;
  let askedAt = -Infinity;
  return () => {
    if (waiting) return;
    waiting = true;
    const wait = Math.max(SOON_MS, askedAt + rest - performance.now());
    setTimeout(() => {
      waiting = false;
      askedAt = performance.now();
      void refresh(look);
    }, wait);
  };
}

function once(look: Look): Look {
  let underWay: Promise<void> | null = null;
  return () =>
    (underWay ??= look().finally(() => {
      underWay = null;
    }));
}

/** Run this periodically, except while the page is hidden. */
function every(wait: () => number, look: Look): void {
  const again = async () => {
    if (!document.hidden) await refresh(look);
    setTimeout(again, wait());
  };
  setTimeout(again, wait());
}

/** No error may end the polling. `contact.ts` reports that the hub is away. */
async function refresh(look: Look): Promise<void> {
  if (signedOut.value) return;
  try {
    await look();
  } catch (error) {
    console.warn("lifesigns: could not ask the hub", error);
  }
}
