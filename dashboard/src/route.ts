/** Which page is shown: the part of the address behind `#`. An agent's id may contain anything, so it is encoded. */

import { signal } from "@preact/signals";

export type Route =
  | { page: "fleet" }
  | { page: "agent"; id: string }
  | { page: "breakers" }
  | { page: "recovery" }
  | { page: "alerts" }
  | { page: "audit" }
  | { page: "sessions" }
  | { page: "hubs" }
  | { page: "unknown"; hash: string };

const PLAIN = ["breakers", "recovery", "alerts", "audit", "sessions", "hubs"] as const;

/** The route of an address. */
export function read(hash: string): Route {
  const path = hash.replace(/^#?\/?/, "");
  if (path === "") return { page: "fleet" };
  const plain = PLAIN.find((page) => page === path);
  if (plain) return { page: plain };
  const id = /^agents\/(.+)$/.exec(path)?.[1];
  const decoded = id === undefined ? undefined : decode(id);
  return decoded === undefined ? { page: "unknown", hash } : { page: "agent", id: decoded };
}

/** The address of an agent's page. */
export function agentHref(id: string): string {
  return `#/agents/${encodeURIComponent(id)}`;
}

export const route = signal<Route>({ page: "fleet" });

/** Follow the address from now on. */
export function followAddress(): void {
  let fleetAt = 0;
  const follow = () => {
    if (route.peek().page === "fleet") fleetAt = scrollY;
    route.value = read(location.hash);
    // Every page starts at its top, except the list of agents, which restores its position.
    requestAnimationFrame(() => scrollTo(0, route.peek().page === "fleet" ? fleetAt : 0));
  };
  addEventListener("hashchange", follow);
  follow();
}

function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}
