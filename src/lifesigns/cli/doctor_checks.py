"""The doctor's checks, one after the other; each has a finding and, if that is not good, a remedy."""

from __future__ import annotations

import re
import shutil
import stat
import time
from collections.abc import Generator, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from lifesigns import __version__
from lifesigns.cli.output import counted, seconds, since
from lifesigns.client import Client
from lifesigns.config.errors import ConfigErrors
from lifesigns.config.hub_locator import TOKEN_FILE, HubLocator, state_folder
from lifesigns.config.load import load
from lifesigns.core.health import UNWELL, Health
from lifesigns.core.words import duration
from lifesigns.errors import HubError, LifesignsError, UsageError
from lifesigns.events import fact_told, types_of
from lifesigns.events.hub_facts import AuditBroken, HubPart, HubTroubleBegan, TokenExpiring
from lifesigns.hub.state_folder import faults
from lifesigns.views import FleetView, Me
from lifesigns.wire.addresses import is_loopback

Level = Literal["ok", "warn", "bad"]

TIMEOUT: Final = 5.0
FREE_BAD: Final = 50 * 2**20
FREE_WARN: Final = 1 * 2**30
SKEW_WARN: Final = 3.0
"""The fleet's page is up to a second old, and the network adds to that."""
SKEW_BAD: Final = 60.0
LATE_WARN: Final = 0.25
INBOX_WARN: Final = 20_000
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO

COUNTERS: Final = {
    "lifesigns_signals_unreadable_total": (
        "unreadable",
        "messages that could not be read",
        "the answer to whoever sent them names the field; its log has it",
    ),
    "lifesigns_signals_refused_total": (
        "refused",
        "signals that were not believed (from an older life, or beyond a limit)",
        "lifesigns watch --json shows them as SIGNAL_REFUSED, with the reason",
    ),
    "lifesigns_signals_turned_away_total": (
        "inbox",
        "signals that found the inbox full",
        "send beats less often or in batches, or give the hub a faster core",
    ),
    "lifesigns_bus_messages_dropped_total": (
        "bus",
        "messages on the bus that came faster than they were heard",
        "send beats less often or in batches",
    ),
    "lifesigns_events_lost_total": (
        "events",
        "events that were lost because the store was away for too long",
        "see why the store was away; those events are not in the history",
    ),
}


class Check(Struct):
    """The result of one check."""

    what: str
    level: Level
    said: str
    mend: str = ""


def examine(environ: Mapping[str, str], locator: HubLocator, *, given: bool) -> Iterator[Check]:
    """All checks. A check that needs something bad before it is left out."""
    yield from _configuration(environ)
    yield from _state_folder(environ)
    try:
        client = Client(locator.hub, locator.token, timeout=TIMEOUT, retry_for=0.0)
    except UsageError as error:
        yield Check("hub", "bad", str(error), "give the address of its HTTP API with --hub or LIFESIGNS_HUB")
        return
    with client:
        reached = _hub(client)
        yield reached
        if reached.level == "bad":
            return
        reaches_judge = yield from _readiness(client)
        if not reaches_judge:
            return
        me = yield from _token(client, locator, _token_source(environ, given))
        if me is not None and me.role != "agent":
            yield from _fleet(client)
            yield from _hub_troubles(client)
            yield from _counters(client)


# --- this machine -------------------------------------------------------------------------------------


def _configuration(environ: Mapping[str, str]) -> Iterator[Check]:
    try:
        config = load(environ=environ)
    except ConfigErrors as errors:
        for error in errors.errors:
            finding = f"{error.key}: {error.detail} ({error.where})"
            yield Check("configuration", "bad", finding, "lifesigns config check shows all of it")
        return
    except LifesignsError as error:
        yield Check("configuration", "bad", str(error), "lifesigns config check")
        return
    yield Check("configuration", "ok", f"{config.path} is good" if config.path else "the defaults")


def _state_folder(environ: Mapping[str, str]) -> Iterator[Check]:
    try:
        folder = state_folder(environ)
    except UsageError as error:
        yield Check("state folder", "warn", str(error), "set LIFESIGNS_STATE")
        return
    if not folder.is_dir():
        yield Check("state folder", "ok", f"{folder} is not there: no hub was started by this user here")
        return
    free = shutil.disk_usage(folder).free
    left = f"{folder}: {free / 2**20:,.0f} MB are free"
    if free < FREE_WARN:
        yield Check("state folder", "bad" if free < FREE_BAD else "warn", left, "make room on this disk")
    else:
        yield Check("state folder", "ok", left)
    try:
        wrong = list(islice(faults(folder, folder.stat().st_uid), 5))
    except OSError:
        wrong = []  # We may not read it.
    for one in wrong:
        finding, _, mend = one.partition(". If you trust it: ")
        yield Check("state folder", "bad", finding, f"if you trust it: {mend}")
    yield from _admin_token(folder / TOKEN_FILE)
    yield from _audit_key(environ, folder)


def _admin_token(file: Path) -> Iterator[Check]:
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
    except OSError:
        return  # There is none, or we may not read it: the check of the token says what that means.
    if mode & OTHERS:
        finding = f"{file} may be read by others (mode {mode:04o}): whoever reads it is admin of the hub"
        yield Check(
            "admin token",
            "bad",
            finding,
            f"chmod 600 {file}; if somebody has read it, make another admin's token and revoke this one",
        )
    else:
        yield Check("admin token", "ok", f"{file} is readable by its owner only")


def _audit_key(environ: Mapping[str, str], folder: Path) -> Iterator[Check]:
    """Where the key of the audit log is, if a hub has run here."""
    try:
        elsewhere = load(environ=environ).audit.key
    except LifesignsError:
        return  # The check of the configuration says so.
    key = elsewhere or folder / "audit.key"
    if not (folder / "audit.pub").is_file():
        return
    try:
        mode = stat.S_IMODE(key.stat().st_mode)
    except OSError as error:
        said = f"{key} cannot be read ({error.strerror}): without it no hub seals this log, nor starts"
        yield Check(
            "audit key", "bad", said, "mount the disk it is on; audit.key in lifesigns.yaml says where"
        )
        return
    if mode & OTHERS:
        said = f"{key} may be read by others (mode {mode:04o}): whoever reads it can seal a false audit log"
        yield Check("audit key", "bad", said, f"chmod 600 {key}")
    elif elsewhere is None:
        yield Check(
            "audit key", "ok", f"{key}, beside the store: who has the folder has both (audit.key moves it)"
        )
    else:
        yield Check("audit key", "ok", f"{key}, apart from the state folder")


# --- the hub ------------------------------------------------------------------------------------------


def _hub(client: Client) -> Check:
    try:
        client.health()
    except HubError as error:
        if error.status is not None:
            finding = f"something answers at {client.hub}, but it is no lifesigns hub: {error}"
            return Check(
                "hub", "bad", finding, "start the hub on another port (lifesigns serve --port), or say --hub"
            )
        mend = "lifesigns serve starts one; --hub or LIFESIGNS_HUB says where it is"
        if "CERTIFICATE" in str(error).upper():
            mend = "name the authority that signed its certificate with SSL_CERT_FILE"
        return Check("hub", "bad", f"nobody answers: {error}", mend)
    if urlsplit(client.hub).scheme == "http" and not is_loopback(client.hub):
        finding = f"{client.hub} answers, but not encrypted: tokens can be read on the way"
        return Check(
            "hub", "warn", finding, "serve with --tls-cert and --tls-key, or put a proxy with TLS before it"
        )
    return Check("hub", "ok", f"{client.hub} answers")


def _readiness(client: Client) -> Generator[Check, None, bool]:
    """Returns whether it can answer for the fleet: one that stands by asks the hub that judges."""
    try:
        ready = client.ready()
    except HubError as error:
        yield Check("readiness", "bad", str(error), "see the hub's log")
        return True
    if ready.status == "standby":
        yield _judge(ready.judge)
        return ready.judge == "ok"
    if ready.store == "ok":
        yield Check("store", "ok", "ok")
    elif "damaged" in ready.store:
        mend = "stop the hub, move the store away and restore a backup: docs/runbooks/restore.md"
        yield Check("store", "bad", ready.store, mend)
    else:
        finding = f"{ready.store}; the hub watches on, but what it finds is kept in memory only"
        yield Check(
            "store", "bad", finding, "free the disk or start the database; the hub catches up by itself"
        )
    if ready.bus in ("ok", "none"):
        yield Check("bus", "ok", "none is used" if ready.bus == "none" else "ok")
    else:
        yield Check(
            "bus",
            "bad",
            ready.bus,
            "start the bus, or mend bus: in lifesigns.yaml; it is tried again for ever",
        )
    if ready.blind:
        finding = "the hub is blind: its own beat does not come back, so it judges nobody"
        yield Check("sight", "bad", finding, "see whether the bus is overloaded, or the hub short of CPU")
    return True


def _judge(state: str) -> Check:
    """Whether a hub that stands by reaches the one that judges."""
    if state == "ok":
        return Check("hubs", "ok", "this hub stands by, and forwards everything to the hub that judges")
    why = "why, it says only to those who may see the fleet, and in its log" if state == "away" else state
    return Check(
        "hubs",
        "bad",
        f"this hub stands by, and does not reach the hub that judges: {why}",
        "lifesigns hubs shows its address: this hub has to reach it there, as docs/howto/run-several-hubs.md says",
    )


def _token_source(environ: Mapping[str, str], given: bool) -> str:
    if given:
        return "--token"
    return "LIFESIGNS_TOKEN" if environ.get("LIFESIGNS_TOKEN") else "the admin's of the state folder"


def _token(client: Client, locator: HubLocator, source: str) -> Generator[Check, None, Me | None]:
    """Returns our identity at the hub."""
    if locator.token is None:
        mend = "set LIFESIGNS_TOKEN; on the hub's machine lifesigns token create --role viewer makes one"
        yield Check("token", "bad", "there is none for this hub", mend)
        return None
    try:
        me = client.me()
    except HubError as error:
        mend = "make a new one with lifesigns token create, and see that it belongs to this hub"
        yield Check("token", "bad", f"{source} is refused: {error.detail or error}", mend)
        return None
    may = f"{source} is {me.role} {me.name!r}"
    if me.role == "agent":
        finding = f"{may}: it may speak for {', '.join(me.agents)}, but not look at the fleet"
        yield Check("token", "warn", finding, "for the rest of this examination give a viewer's token")
    else:
        yield Check("token", "ok", may)
    return me


# --- the fleet ----------------------------------------------------------------------------------------


def _fleet(client: Client) -> Iterator[Check]:
    try:
        asked_at = time.time()
        fleet = client.fleet()
        yield _clock(seconds(fleet.hub.at) - (asked_at + time.time()) / 2)
        yield _version(fleet.hub.version)
        yield _speed(fleet)
        yield from _dead_man_switch(fleet)
        if fleet.braked:
            finding = f"too many are unwell at once in: {', '.join(fleet.braked[:5])}; nothing is done there"
            mend = "see what these have in common: a host, a network, a provider; lifesigns release lets it go on"
            yield Check("brake", "bad", finding, mend)
        if fleet.missing:
            finding = f"nobody judges slot {', '.join(map(str, fleet.missing))} right now"
            yield Check(
                "slots", "bad", finding, "if it stays so, start a hub: lifesigns hubs shows who is there"
            )
        yield from _agents(client, fleet)
    except HubError as error:
        yield Check("fleet", "bad", str(error), "see the hub's log")


HUB_TROUBLES: Final = {
    HubPart.TOKENS: (
        "tokens",
        "give these agents a token that this hub knows; if the hub has lost its state: docs/runbooks/restore.md",
    ),
    HubPart.CONNECTIONS: ("connections", "raise limits.connections, and ulimit -n of the hub"),
    HubPart.SPEAKERS: (
        "senders",
        "look who publishes there, and what the bus lets its users publish: docs/explanation/who-speaks-for-whom.md",
    ),
    HubPart.TOKEN_ROWS: (
        "token rows",
        "find out who can write to the store; lifesigns token accept shows the rows: docs/runbooks/forged-tokens.md",
    ),
    HubPart.TRUCE: (
        "truces",
        "give the hub's host a free core, and see what stops it: swapping, a machine that is paused, too many beats",
    ),
    HubPart.WITNESSES: (
        "witnesses",
        "see that it answers, and audit.witnesses in lifesigns.yaml; it is tried again for ever, and gets what it missed",
    ),
    HubPart.TRACKER: (
        "issue tracker",
        "see github in lifesigns.yaml and its token (gh auth status); it is asked again for ever, and locks stay meanwhile",
    ),
    HubPart.HUBS: ("hubs", "start it again, or lifesigns hubs forget NAME if it will not come back"),
    HubPart.MEMORY: (
        "MCP memory",
        "see memory.file in lifesigns.yaml, and that npx -y @modelcontextprotocol/server-memory starts",
    ),
    HubPart.MESSENGER: (
        "AI Maestro",
        "see that it runs (curl URL/api/v1/health), and ai_maestro in lifesigns.yaml; its agents are not judged meanwhile",
    ),
    HubPart.NEIGHBOURS: (
        "other hubs",
        "stop one of them, or let both use one PostgreSQL: docs/howto/run-several-hubs.md",
    ),
    HubPart.DEAD_MAN_SWITCH: (
        "dead-man's switch",
        "see dead_man_switch in lifesigns.yaml, and that the hub's machine reaches it; it is tried again for ever",
    ),
    HubPart.ROWS: ("memory", "restore a backup if these are needed: docs/runbooks/restore.md"),
}


def _hub_troubles(client: Client) -> Iterator[Check]:
    """The hub's own troubles beside its readiness."""
    try:
        alerts = client.alerts(limit=1).alerts
    except HubError as error:
        yield Check("alerts", "bad", str(error), "see the hub's log")
        return
    for alert in alerts:
        if alert.standing and alert.type in types_of(TokenExpiring):
            mend = "lifesigns token rotate ID (of a key: lifesigns key create AGENTS), and hand out what it prints"
            yield Check("expiry", "warn", alert.text, mend)
            continue
        trouble = fact_told(alert.type, 0.0, "", {})
        if alert.standing and isinstance(trouble, HubTroubleBegan) and trouble.part in HUB_TROUBLES:
            what, mend = HUB_TROUBLES[trouble.part]
            yield Check(what, "bad", alert.text, mend)
        if alert.standing and isinstance(trouble, AuditBroken):
            mend = "lifesigns audit verify shows what was done: docs/runbooks/broken-audit-log.md"
            yield Check("audit log", "bad", alert.text, mend)


def _clock(skew: float) -> Check:
    if abs(skew) < SKEW_WARN:
        return Check("clock", "ok", "this machine and the hub agree on the time")
    finding = f"the hub's is {duration(abs(skew))} {'ahead of' if skew > 0 else 'behind'} this machine's"
    level: Level = "bad" if abs(skew) >= SKEW_BAD else "warn"
    return Check(
        "clock", level, finding, "let both follow NTP; deadlines are right anyway, shown times are not"
    )


def _version(hub: str) -> Check:
    if hub == __version__:
        return Check("version", "ok", f"{hub}, here and there")
    finding = f"the hub is {hub}, this is {__version__}"
    return Check("version", "warn", finding, "install the same on both sides")


def _speed(fleet: FleetView) -> Check:
    hub = fleet.hub
    if hub.inbox >= INBOX_WARN or hub.look_late_s >= LATE_WARN:
        finding = f"{hub.inbox:,} signals wait to be heard, deadlines are seen {hub.look_late_s:.2f} s late"
        return Check(
            "speed", "warn", finding, "send beats less often or in batches, or give the hub a faster core"
        )
    doubt = f", but it doubts itself ({hub.score} of 8): waits are longer for a while" if hub.score else ""
    return Check("speed", "ok", f"deadlines are seen {hub.look_late_s * 1000:.1f} ms late{doubt}")


def _dead_man_switch(fleet: FleetView) -> Iterator[Check]:
    """Who would miss this hub. A switch that takes no ping is among the hub's troubles."""
    match fleet.hub.dead_man_switch:
        case "none":
            yield Check(
                "dead-man's switch",
                "ok",
                "none: nobody outside misses this hub (docs/howto/run-several-hubs.md#who-watches-the-last-hub)",
            )
        case "ok":
            yield Check("dead-man's switch", "ok", "pinged, and it answers")
        case state if state.startswith("no ping"):
            mend = "the alarm outside will ring; mend what is bad here and the hub pings again by itself"
            yield Check("dead-man's switch", "warn", state, mend)


def _agents(client: Client, fleet: FleetView) -> Iterator[Check]:
    now = time.time()
    if not fleet.agents:
        mend = "let one be heard: lifesigns beat my-agent; or lifesigns run -- CMD; or lifesigns.Sender"
        yield Check("agents", "warn", "nobody has been heard of yet", mend)
        return
    page = client.agent_list(sort="need", limit=1000)
    silent = [agent for agent in page.agents if agent.last_heartbeat is None and agent.state in UNWELL]
    if silent:
        finding = f"{len(silent)} are expected and were never heard, such as {silent[0].agent_id}"
        mend = "see that they are started, and that their LIFESIGNS_HUB and token are right"
        yield Check("agents", "bad", finding, mend)
    living = fleet.agents - fleet.states.get(Health.TERMINATED, 0)
    if not living:
        yield Check("agents", "ok", f"{counted(fleet.agents, 'agent')}, all of them ended")
        return
    if fleet.states.get(Health.DISCONNECTED, 0) == living:
        last = max((agent.last_heartbeat for agent in page.agents if agent.last_heartbeat), default=None)
        which = (
            "the only agent that has not ended is"
            if living == 1
            else f"all {living} agents that have not ended are"
        )
        finding = f"{which} disconnected; the last beat came {since(last, now)} ago"
        yield Check(
            "agents", "bad", finding, "see that they run, and can reach this hub; lifesigns agents says why"
        )
        return
    unwell = sum(fleet.states.get(state, 0) for state in UNWELL)
    if unwell:
        yield Check(
            "agents", "warn", f"{unwell} of {fleet.agents} are unwell", "lifesigns agents shows who, and why"
        )
    else:
        yield Check("agents", "ok", f"{fleet.agents}, and nobody is unwell")


def _counters(client: Client) -> Iterator[Check]:
    """What the hub has counted as wrong since it started."""
    try:
        text = client.metrics()
    except HubError as error:
        yield Check("metrics", "warn", str(error), "see the hub's log")
        return
    for name, (what, those, mend) in COUNTERS.items():
        values = re.findall(rf"^{name}(?:\{{slot=.*\}})? ([0-9.e+]+)$", text, re.MULTILINE)
        if (count := sum(map(float, values))) > 0:
            yield Check(what, "warn", f"{those}: {count:,.0f} since the hub started", mend)
