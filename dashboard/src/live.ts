/**
 * One stream of events for the whole page (Server-Sent Events), read with `fetch` instead of `EventSource`: that one hides
 * the keep-alives by which we know that the line is alive, the status that says we are signed out, and every type it was
 * not asked for by name.
 *
 * The law: no listener misses an event unnoticed. After a cut the stream continues after the last event seen; where that is
 * impossible, `gaps` rises, and lists must be loaded again.
 */

import { signal } from "@preact/signals";
import { heard, link, signedOut } from "./contact";
import type { EventView } from "#types";

export { link } from "./contact";

/** Three keep-alives of the hub (15 s) and a little: after that the connection is dead, whatever the browser thinks. */
const SILENT_MAX_MS = 50_000;
const RETRY_FIRST_MS = 500;
const RETRY_MAX_MS = 5_000;

/** Rises when events may have been missed: views load their lists again. */
export const gaps = signal(0);

type Hear = (events: readonly EventView[]) => void;
const hearers = new Set<Hear>();

/** Receive all events from now on, in batches as they arrive. Returns a function that stops. */
export function onEvents(hear: Hear): () => void {
  hearers.add(hear);
  return () => hearers.delete(hear);
}

let last: string | null = null;

/** Listen while the hub accepts our session: it throttles a client that is refused again and again. */
export async function listen(): Promise<void> {
  let wait = RETRY_FIRST_MS;
  while (!signedOut.value) {
    try {
      await follow(() => {
        wait = RETRY_FIRST_MS;
        link.value = { live: true };
      });
      lost("the hub has ended the stream");
    } catch (error) {
      lost(error instanceof Error ? error.message : String(error));
    }
    await sleep(wait);
    wait = Math.min(wait * 2, RETRY_MAX_MS);
  }
}

function lost(why: string): void {
  if (link.value.live) link.value = { live: false, since: Date.now() / 1000, why };
}

async function follow(opened: () => void): Promise<void> {
  const cut = new AbortController();
  let watchdog = setTimeout(() => cut.abort(), SILENT_MAX_MS);
  try {
    const answer = await fetch("/api/v1/events", {
      headers: { Accept: "text/event-stream", ...(last === null ? {} : { "Last-Event-ID": last }) },
      credentials: "same-origin",
      cache: "no-store",
      signal: cut.signal,
    });
    if (answer.status === 401) signedOut.value = true;
    if (!answer.ok || !answer.body) throw new Error(`the hub answers ${answer.status}`);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new Parser();
    opened();
    for (;;) {
      const piece = await reader.read();
      if (piece.done) return;
      heard();
      clearTimeout(watchdog);
      watchdog = setTimeout(() => cut.abort(), SILENT_MAX_MS);
      tell(parser.feed(piece.value));
      last = parser.lastId ?? last;
    }
  } finally {
    clearTimeout(watchdog);
    cut.abort();
  }
}

function tell(events: EventView[]): void {
  if (!events.length) return;
  if (events.some((event) => event.type === "GAP")) gaps.value += 1;
  for (const hear of hearers) hear(events);
}

/** Parses pieces of a stream into events. A piece may end anywhere, even inside a line. */
export class Parser {
  lastId: string | null = null;
  #rest = "";

  feed(piece: string): EventView[] {
    const blocks = (this.#rest + piece).split("\n\n");
    this.#rest = blocks.pop() ?? "";
    return blocks.flatMap((block) => this.#event(block));
  }

  #event(block: string): EventView[] {
    const data: string[] = [];
    for (const line of block.split("\n")) {
      if (line.startsWith("id: ")) this.lastId = line.slice(4);
      else if (line.startsWith("data: ")) data.push(line.slice(6));
    }
    return data.length ? [JSON.parse(data.join("\n")) as EventView] : [];
  }
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise((done) => setTimeout(done, milliseconds));
}
