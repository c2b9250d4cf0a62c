/**
 * Keeping what the page knows true, as cheaply as it can be had:
 *
 * - What changes a verdict comes as an event and is shown with the next frame; its agent is asked about soon after.
 * - The rows on the screen are asked about every two seconds: their beats and counters go on.
 * - Everybody who changed is asked about (`since=`) ever more seldom the more there are, a thousand a second at most: all
 *   beat, so all have changed, and ten thousand at every beat would be two megabytes a second that nobody can read.
 */

import { effect, signal } from "@preact/signals";
import { get } from "./api";
import { agents } from "./agents";
import { hubTime, setHubTime } from "./clock";
import { link, signedOut } from "./contact";
import { gaps, onEvents } from "./live";
import { fleet, loading, me } from "./state";
import type { AgentList, EventView, FleetView, Me } from "#types";

/** The first load is to be over soon; later a page is read, taken in and drawn without being felt. */
const PAGE_FIRST = 1000;
const PAGE = 500;
/** Ids in one question: as many as the hub takes. */
const IDS_MAX = 100;
const SEEN_EVERY_MS = 2_000;
const FLEET_EVERY_MS = 2_000;
/** A storm of events must not become one of questions; the hub looks at its fleet once a second itself. */
const FLEET_REST_MS = 1_000;
const ALL_EVERY_MIN_MS = 2_000;
const ALL_EVERY_MS_EACH = 1;
/** After an event: long enough that a burst is one question, short enough that nobody waits for it. */
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
  every(() => Math.max(ALL_EVERY_MIN_MS, agents.all.size * ALL_EVERY_MS_EACH), lookAtAll);
  every(
    () => SEEN_EVERY_MS,
    () => lookAt(seen.value),
  );
}

/** Load everything again, because something may have been missed. */
function reload(): void {
  void refresh(lookAtAll);
  void refresh(lookAtFleet);
  void recognise();
}

/** Ask who we are to this hub: that may have changed while it was away. */
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

// --- looking ---------------------------------------------------------------------------------------------

async function lookAtFleet(): Promise<void> {
  fleet.value = await get<FleetView>("/api/v1/fleet");
  setHubTime(fleet.value.hub.at);
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

/** Everybody, or with a token only who has changed since. Who asks while it is under way waits for the same answer. */
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

/** A little later, once for however many ask for it, and not again before `rest` is over. */
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

/** Again and again; not while nobody looks. */
function every(wait: () => number, look: Look): void {
  const again = async () => {
    if (!document.hidden) await refresh(look);
    setTimeout(again, wait());
  };
  setTimeout(again, wait());
}

/** Nothing may end the looking. That the hub is away is said elsewhere (`contact.ts`). */
async function refresh(look: Look): Promise<void> {
  if (signedOut.value) return;
  try {
    await look();
  } catch (error) {
    console.warn("lifesigns: could not ask the hub", error);
  }
}
