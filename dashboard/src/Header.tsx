/** The head of every page: the state of the fleet and the hub, whether the page is live, who is signed in. */

import { post } from "./api";
import { link, signedOut, staleSince } from "./contact";
import { toggleState, wish } from "./listing";
import { StateSign } from "./parts/State";
import { route } from "./route";
import { fleet, hubs, me, needs, now } from "./state";
import { theme, toggleTheme } from "./theme";
import { count, duration, HEALTHS, whichHub } from "./words";

const PAGES = [
  ["fleet", "#/", "Agents"],
  ["breakers", "#/breakers", "Breakers"],
  ["recovery", "#/recovery", "Recovery"],
  ["alerts", "#/alerts", "Alerts"],
  ["audit", "#/audit", "Audit"],
  ["sessions", "#/sessions", "Sessions"],
] as const;

export function Header() {
  return (
    <header class="top">
      <div class="bar">
        <a class="brand" href="#/">
          <svg viewBox="0 0 16 16" width="20" height="20" aria-hidden="true">
            <path d="M1 9h3l2-6 3 11 2-7 1 2h3" />
          </svg>
          lifesigns
        </a>
        <Nav />
        <div class="signs">
          <WhichHub />
          <Hub />
          <Live />
          <Who />
          <button
            type="button"
            class="quiet"
            onClick={toggleTheme}
            aria-label={`Show it ${theme.value === "dark" ? "light" : "dark"}`}
          >
            {theme.value === "dark" ? "☀" : "☾"}
          </button>
        </div>
      </div>
      <Counts />
    </header>
  );
}

function Nav() {
  const here = route.value.page === "agent" ? "fleet" : route.value.page;
  return (
    <nav aria-label="Pages">
      {PAGES.map(([page, href, words]) => (
        <a key={page} href={href} {...(page === here ? { "aria-current": "page" as const } : {})}>
          {words}
          {page === "fleet" && needs.value.length > 0 && (
            <span class="badge" title="need you">
              {count(needs.value.length)}
            </span>
          )}
        </a>
      ))}
    </nav>
  );
}

/** Counts by state; a click on one shows only these agents. */
function Counts() {
  const glance = fleet.value;
  if (!glance || route.value.page !== "fleet") return null;
  return (
    <div class="counts" role="group" aria-label="Agents by state; press to show only these">
      {HEALTHS.map((state) => (
        <button
          type="button"
          key={state}
          class={`count ${state}${glance.states[state] ? "" : " zero"}`}
          aria-pressed={wish.value.states.has(state)}
          onClick={() => toggleState(state)}
        >
          <StateSign state={state} />
          <b>{(glance.states[state] ?? 0).toLocaleString("en")}</b> {state}
        </button>
      ))}
    </div>
  );
}

/** Of several hubs: the one that this page comes from, and the one that judges. */
function WhichHub() {
  const text = whichHub(hubs.value);
  if (!text) return null;
  return (
    <span class="which-hub" title={hubs.value.map((hub) => `${hub.name} ${hub.state}: ${hub.url}`).join("\n")}>
      <bdi>{text}</bdi>
    </span>
  );
}

/** A hub that was just started waits longer for a while: that is no trouble of anybody's. */
const DOUBT = "in doubt";

function Hub() {
  const hub = fleet.value?.hub;
  if (!hub) return null;
  const trouble = staleSince.value === null ? hub.trouble : "not answering";
  const outside = hub.dead_man_switch === "none" ? "" : `, dead-man's switch: ${hub.dead_man_switch}`;
  return (
    <a
      href="#/hubs"
      class={`hub ${!trouble ? "well" : trouble.startsWith(DOUBT) ? "doubting" : "wrong"}`}
      title={`lifesigns ${hub.version}, doubt of itself ${hub.score} of 8${outside}; press to see all hubs`}
    >
      hub {trouble || "well"}
    </a>
  );
}

function Live() {
  const since = staleSince.value;
  if (since === null) {
    return (
      <span class="live" role="status">
        live
      </span>
    );
  }
  void now.value;
  const away = Date.now() / 1000 - since;
  const why = link.value.live ? "the hub does not answer" : link.value.why;
  return (
    <span class="stale" role="status" title={why}>
      {away < 3 ? "connecting …" : `stale for ${duration(away)}`}
    </span>
  );
}

function Who() {
  const who = me.value;
  if (!who) return null;
  return (
    <>
      <span class="me" title={`${who.name}, ${who.role}`}>
        <bdi>{who.name}</bdi> {who.role !== who.name && <small>{who.role}</small>}
      </span>
      <button type="button" class="quiet" onClick={() => void signOut()}>
        Sign out
      </button>
    </>
  );
}

async function signOut(): Promise<void> {
  await post("/sign-out");
  signedOut.value = true;
}
