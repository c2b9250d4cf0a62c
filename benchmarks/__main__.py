"""`make bench`: every claim about speed or size, measured now, beside its alternative, against its target.

Numbers of one run on one machine: read the ratios. `--json` for machines, a name to run one part.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TypeVar


@dataclass
class Row:
    """One line of the table. A ratio without a target only informs."""

    what: str
    value: str
    beside: str = ""
    ratio: float | None = None
    target: float | None = None
    at_most: bool = False
    absolute: bool = False
    """The target is for the value itself, not for a ratio."""

    @property
    def holds(self) -> bool:
        if self.ratio is None or self.target is None:
            return True
        return self.ratio <= self.target if self.at_most else self.ratio >= self.target


def beats() -> Iterator[Row]:
    """The cost of a healthy beat, and how it grows. A hub processes simultaneous beats together."""
    from benchmarks import core

    for size, together in ((1_000, 100), (10_000, 100), (100_000, 100), (100_000, 1)):
        cost = alone(core.cost_of_a_beat, size, together)
        yield Row(
            f"a healthy beat at {size:,} agents, {f'{together} at once' if together > 1 else 'one by one'}",
            f"{cost['ns']:,.0f} ns ±{cost['spread'] / 2:.0%}",
            f"asyncio timer re-armed: {cost['asyncio_ns']:,.0f} ns ±{cost['asyncio_spread'] / 2:.0%}",
            cost["ratio"],
            3.0 if (size, together) == (100_000, 100) else None,
        )


def looking() -> Iterator[Row]:
    """A look with nothing due costs the same, however many agents there are."""
    from benchmarks import core

    few, many = alone(core.cost_of_looking, 1_000), alone(core.cost_of_looking, 1_000_000)
    yield Row(
        "advance() with nothing due, 1,000,000 agents",
        f"{many:,.0f} ns",
        f"1,000 agents: {few:,.0f} ns",
        many / few,
        3.0,
        at_most=True,
    )


def memory() -> Iterator[Row]:
    """Bytes per agent, adaptive statistics included, and how they grow."""
    from benchmarks import core

    for size in (1_000, 10_000, 100_000, 1_000_000):
        each = alone(core.bytes_per_agent, size)
        target = 1000.0 if size == 1_000_000 else None
        yield Row(
            f"memory per agent at {size:,} agents",
            f"{each:,.0f} bytes",
            "",
            each,
            target,
            at_most=True,
            absolute=True,
        )


def wire() -> Iterator[Row]:
    """Reading a beat."""
    from benchmarks import wire as codec

    for row in codec.run():
        against = row["ratio_to_pydantic"]
        target = 3.0 if row["name"].startswith("wire") and "JSON" in row["name"] else None
        cost = f"{row['ns_per_op']:,} ns ±{row['spread'] / 2:.0%}"
        yield Row(row["name"], cost, "pydantic, same fields and limits", against, target)


def otlp() -> Iterator[Row]:
    """Reading spans, from the bytes of a request to the calls in them."""
    from benchmarks import otlp as spans

    for form in ("protobuf", "json"):
        rate = alone(spans.spans_per_second, form)
        beside = f"opentelemetry-proto: {rate['official']:,.0f}, {rate['ratio']:.2f} times"
        what = f"spans a second of CPU, {form}"
        yield Row(what, f"{rate['ours']:,.0f}", beside, rate["ours"], 50_000.0, absolute=True)
    for way in ("http", "grpc"):
        rate = alone(spans.hub_spans_per_second, way)
        value = f"{rate['judged']:,.0f} judged and stored"
        yield Row(
            f"spans a second of a hub's CPU, by {way}",
            value,
            f"until it has answered: {rate['taken']:,.0f}",
            rate["judged"],
            50_000.0 if way == "http" else None,
            absolute=True,
        )


def hooks() -> Iterator[Row]:
    """What the hooks of a coding agent add to its run. The median is what it waits; the worst is one hook of a hundred."""
    from benchmarks import hooks as clients

    costs = alone(clients.hook_costs, 0)
    sh = costs["sh"]
    beside = (
        f"an empty sh: {sh['median']:.1f} ms ({sh['least']:.1f} to {sh['worst']:.0f}), {sh['cpu']:.1f} CPU"
    )
    call = 2 * costs["answers"]["median"]
    yield Row(
        "a tool call by its two hooks", f"{call:.1f} ms", beside, call, 10.0, at_most=True, absolute=True
    )
    posted = 2 * costs["posted"]["median"]
    yield Row(
        "a tool call, posted by HTTP", f"{posted:.1f} ms", beside, posted, 5.0, at_most=True, absolute=True
    )
    worst = costs["finds out"]["worst"]
    value = f"{worst:.0f} ms at worst, of {clients.FIRSTS}"
    yield Row("the hook that finds the hub hanging", value, beside, worst, 50.0, at_most=True, absolute=True)
    for state in ("answers", "hangs", "gone"):
        cost = costs[state]
        value = f"{cost['median']:.1f} ms ({cost['least']:.1f} to {cost['worst']:.0f}), {cost['cpu']:.1f} CPU"
        target = None if state == "answers" else 5.0
        yield Row(
            f"a hook, if the hub {state if state != 'gone' else 'is gone'}",
            value,
            beside,
            cost["median"],
            target,
            at_most=True,
            absolute=True,
        )


def claude_hooks() -> Iterator[Row]:
    """What hooks add to a tool call inside the real Claude Code, and how much of that is ours: all by turns, in the same minutes."""
    from benchmarks import claude_hooks as inside
    from tests.integrations.coders import CLAUDE

    if not CLAUDE.program.exists():
        yield Row("hooks inside Claude Code", "not measured", "make integrations fetches it", 0.0, None)
        return
    added = alone(inside.added_milliseconds, inside.ROUNDS)
    beside = f"a call without hooks: {added.pop('none'):.1f} ms"
    for kind, cost in added.items():
        yield Row(f"a tool call, hooks: {kind}", f"+{cost:.1f} ms", beside, cost, None)
    for ours, floor, target in ((inside.OURS, inside.TRUE, 10.0), (inside.POSTED, inside.POSTS, 5.0)):
        cost = added[ours] - added[floor]
        value, of = f"{cost:.1f} ms are ours", f"{floor}: {added[floor]:.1f} ms"
        yield Row(f"of {ours}", value, of, cost, target, at_most=True, absolute=True)


def signing() -> Iterator[Row]:
    """What a signature adds to a beat."""
    from benchmarks import signing as sealing

    cost = alone(sealing.cost_us, 0)
    beside = {
        "sign": f"the library alone: {cost['sign_bare']:.0f} µs",
        "open": f"the library alone: {cost['open_bare']:.0f} µs; OpenSSL: {cost['open_openssl']:.0f} µs",
        "batch_sign": "one signature for all of them",
        "batch_open": "one signature for all of them",
    }
    for what, key in (
        ("signing a beat, at the sender", "sign"),
        ("verifying it, at the hub", "open"),
        (f"signing a beat among {sealing.BATCH}", "batch_sign"),
        (f"verifying a beat among {sealing.BATCH}", "batch_open"),
    ):
        target = 60.0 if key in ("sign", "open") else None
        yield Row(what, f"{cost[key]:.1f} µs", beside[key], cost[key], target, at_most=True, absolute=True)


def guard() -> Iterator[Row]:
    """What a guarded call costs while all is well."""
    from benchmarks import guard as guarding

    targets = {"pybreaker": 4.0, "purgatory": 3.0, "circuitbreaker": 2.0}
    rows = guarding.run()
    ours = {row["kind"]: row for row in rows if row["name"] == guarding.OURS}
    for row in rows:
        if row["name"] in targets:
            mine = ours[row["kind"]]
            yield Row(
                f"a guarded call, closed, {row['kind']}: overhead",
                f"{mine['overhead_ns']:,} ns ±{mine['spread'] / 2:.0%}",
                f"{row['name']}: {row['overhead_ns']:,} ns",
                row["ratio_to_ours"],
                targets[row["name"]],
            )


def watching() -> Iterator[Row]:
    """Watching agents in one's own process, beside a monitor that polls each of them."""
    from benchmarks import watching as bench

    for size, most in ((100, 0.05), (10_000, 3.0)):
        cost = alone(bench.cost_of_watching, size)
        percent = cost["percent"]
        yield Row(
            f"watching {size:,} in-process agents for 60 s",
            f"{percent:.3f} % of a core",
            "",
            percent,
            most,
            at_most=True,
            absolute=True,
        )
        polling = f"polling each of them: {cost['polling_percent']:.1f} %"
        yield Row(f"watching {size:,} in-process agents", f"{percent:.3f} %", polling, cost["ratio"])


def sender() -> Iterator[Row]:
    """What a sender costs its agent."""
    from benchmarks import sender as sending

    cpu, memory = alone(sending.cpu_percent, 0), alone(sending.memory_mb, 0)
    yield Row(
        "a sender at a beat every 5 s",
        f"{cpu['one']:.3f} % of a core",
        f"a thread with urllib and psutil: {cpu['plain']:.3f} %; 100 of ours in one process: {cpu['hundred']:.3f} %",
        cpu["one"],
        0.05,
        at_most=True,
        absolute=True,
    )
    yield Row(
        "memory of a sender",
        f"{memory['first']:.2f} MB",
        f"each further one: {memory['each'] * 1024:.0f} kB",
        memory["first"],
        2.0,
        at_most=True,
        absolute=True,
    )
    for call, ns in alone(sending.call_ns, 0).items():
        yield Row(f"life.{call}(...)", f"{ns:,.0f} ns")


def frameworks() -> Iterator[Row]:
    """What a watched framework adds to a tool call."""
    from benchmarks import frameworks as watched

    for name, us in alone(watched.call_us, 0).items():
        yield Row(f"a tool call in {name}", f"{us:.0f} µs more", "", us, 50.0, at_most=True, absolute=True)


def hub() -> Iterator[Row]:
    """How many beats a hub takes on one core, beside the same server and decoder doing nothing; and where its time
    goes."""
    from benchmarks import hub as taking

    targets = {"single posts": 8_000.0, "NATS, one a message": 50_000.0}
    for way in taking.WAYS:
        took = taking.throughput(way)
        most = took.hub.per_core_second
        beside = f"by the wall clock, core shared with others: {took.hub.per_second:,.0f}"
        target = targets.get(way.name, 150_000.0)
        yield Row(f"hub, {way.name}", f"{most:,.0f} beats/s", beside, most, target, absolute=True)
        bare = f"doing nothing: {took.bare.per_core_second:,.0f} beats/s"
        yield Row(
            "  of what it rests on", f"{took.ratio:.0%}", bare, took.ratio, 0.6 if way.batch == 1 else 0.3
        )
        where = ", ".join(f"{room} {share:.0%}" for room, share in took.shares.items() if share >= 0.01)
        yield Row("  where the time goes", "", where)


def hub_fleet() -> Iterator[Row]:
    """A hub with 100,000 agents at a beat every ten seconds."""
    from benchmarks import hub_fleet as living

    found = living.live(living.Fleet())

    def most(what: str, value: float, limit: float, unit: str = "ms", beside: str = "") -> Row:
        return Row(what, f"{value:,.1f} {unit}", beside, value, limit, at_most=True, absolute=True)

    beside = f"{found.beats_per_second:,.0f} beats/s"
    yield most("100,000 agents every 10 s: CPU", found.cpu_share * 100, 60, "% of a core", beside)
    yield most("  memory", found.rss_mb, 400, "MB")
    told = 1000 * living.p99(found.told_late)
    beside = f"of {len(found.told_late)}; kept on disk and told: {told:,.1f} ms"
    yield most("  a death found after its deadline, p99 below", 1000 * found.found_late, 100, beside=beside)
    asked = found.answers
    for what, took, limit in (
        ("GET /api/v1/agents?limit=100", asked.agents_page, 50),
        ("health of one agent", asked.one_agent, 100),
        ("a beat, answered", asked.beat_answered, 50),
        ("a beat, visible", asked.beat_visible, 50),
        ("a batch of 100, answered", found.batches, 50),
    ):
        yield most(f"  {what}, p99", 1000 * living.p99(took), limit, beside=f"of {len(took):,}")


def hub_million() -> Iterator[Row]:
    """1,000,000 agents at a beat every ten seconds: more than one core may carry. We look at what becomes of the hub."""
    from benchmarks import hub_fleet as living

    found = living.overload(1_000_000)
    taken, wanted = found.taken_per_second, found.wanted_per_second
    yield Row("1,000,000 agents every 10 s: all met after", f"{found.met_after:,.0f} s")
    yield Row("  beats taken", f"{taken:,.0f} beats/s", f"of {wanted:,.0f}", taken / wanted)
    yield Row("  memory", f"{found.rss_mb:,.0f} MB", f"afterwards {found.rss_mb_later:,.0f} MB")
    yield Row("  silent because the hub did not take their beats, convicted", f"{found.convicted:,}")
    again = 1000 * found.answered_again
    yield Row(
        "  a batch answered when a tenth goes on, p99",
        f"{again:,.1f} ms",
        "",
        again,
        500,
        True,
        absolute=True,
    )


def takeover() -> Iterator[Row]:
    """The hub that judges is killed, and another one on the same PostgreSQL takes over."""
    from benchmarks import takeover as measured

    found = measured.measure(100_000, rounds=5)
    worst = max(found.rounds, key=lambda one: one.commit_after)
    yield Row(
        "kill -9 of a hub: first commit of the next, 100,000 agents",
        f"{worst.commit_after:.1f} s",
        f"worst of {len(found.rounds)}; the lease is {worst.taken_over_after:.1f} s of it",
        worst.commit_after,
        8.0,
        at_most=True,
        absolute=True,
    )
    yield Row(
        "a hub is stopped: beats are taken by nobody, 100,000 agents",
        f"{found.unheard_for:.2f} s",
        "",
        found.unheard_for,
        1.0,
        at_most=True,
        absolute=True,
    )
    heard = max(one.heard_after for one in found.rounds)
    yield Row("and it takes beats", f"{heard:.1f} s", f"{found.beats_lost:,} of {found.beats_sent:,} lost")
    late = "not in time" if found.found_after is None else f"{found.found_after:.1f} s"
    yield Row("and finds agents that fell silent", late)
    yield Row(
        "agents convicted for it", f"{found.convicted}", "", found.convicted, 0.0, at_most=True, absolute=True
    )
    unanswered = max(one.unanswered_for for one in found.rounds)
    yield Row("the next hub did not answer for", f"{unanswered * 1000:,.0f} ms")


def forwarding() -> Iterator[Row]:
    """Beats posted to a hub that stands by, beside the same posted to the hub that judges."""
    from benchmarks import forwarding as measured

    for batch, name in ((1, "single posts"), (100, "posts of 100")):
        found = measured.cost(batch)
        direct, through = found.direct, found.through
        both = through.judge_us + through.standby_us
        yield Row(
            f"a forwarded beat, {name}: both hubs",
            f"{both:.1f} µs",
            f"stands by {through.standby_us:.1f}, judges {through.judge_us:.1f}; directly {direct.judge_us:.1f} µs",
            both / direct.judge_us,
        )
    direct_takes, through_takes = measured.latencies()
    yield Row(
        "a forwarded post of a beat takes, p50 and p99",
        f"{through_takes.p50_ms:.2f}, {through_takes.p99_ms:.2f} ms",
        f"directly {direct_takes.p50_ms:.2f}, {direct_takes.p99_ms:.2f} ms",
        through_takes.p50_ms / direct_takes.p50_ms,
    )


def hostile() -> Iterator[Row]:
    """A neighbour of agents' tokens that attack at full speed. On a machine that leaves the hub no processor it is behind
    whoever attacks it: the share of the time it waited for one stands beside."""
    from tests.security.hostile import ATTACKS, FLOODS, REDIS_FLOODS
    from tests.security.neighbour import beside

    floods = {*FLOODS, *REDIS_FLOODS}
    for name, attacks, tokens in (
        ("nobody attacks", (), 1),
        *((name, (name,), 1) for name in (*ATTACKS, *FLOODS, *REDIS_FLOODS)),
        ("all of HTTP at once", tuple(ATTACKS), 1),
        ("HTTP and NATS at once", ("new_ids", "reports", "bus_beats"), 1),
        ("five tokens", ("reports", "claims"), 5),
    ):
        found = beside(attacks, tokens=tokens)
        p99 = 1000 * found.quantile(0.99)
        what = f"beside a hostile token, {name}: a beat, p99"
        yield Row(what, f"{p99:.1f} ms", "", p99, 50.0, at_most=True, absolute=True)
        on_bus = not floods.isdisjoint(attacks)
        late = max(found.found_after, found.found_on_bus_after) if on_bus else found.found_after
        bound = 3.1 * min(tokens, 2)
        yield Row(
            "  a death, due after 3 s", f"{late:.2f} s", str(found), late, bound, at_most=True, absolute=True
        )


def nudges() -> Iterator[Row]:
    """From the decision about a nudge until its agent has it, with 1,000 agents."""
    from benchmarks import nudges as nudging

    for way, by_bus in (("a long poll", False), ("NATS", True)):
        found = nudging.measure(by_bus=by_bus)
        p50, p99 = (1000 * nudging.quantile(found.all, share) for share in (0.5, 0.99))
        beside = f"p50 {p50:.1f} ms; {len(found.by_people)} by people, {len(found.by_engine)} by the engine"
        what = f"a nudge handed over by {way}, p99"
        yield Row(what, f"{p99:,.1f} ms", beside, p99, 500, at_most=True, absolute=True)


def dashboard() -> Iterator[Row]:
    """The dashboard in a real browser, with 10,000 agents that beat."""
    from benchmarks import dashboard as page

    def most(what: str, value: float, limit: float, unit: str, beside: str = "") -> Row:
        return Row(what, f"{value:,.1f} {unit}", beside, value, limit, at_most=True, absolute=True)

    found = page.look()
    yield most("dashboard: all of it, gzipped", found.packed_kb, 60, "kB")
    yield most(
        "  first paint", found.painted_ms, 1000, "ms", f"10,000 agents listed after {found.listed_s:.1f} s"
    )
    scrolled = found.scrolled
    beside = f"slowest frame {scrolled.slowest_ms:.0f} ms, {scrolled.cpu_ms:.1f} ms of CPU a frame"
    rate = scrolled.per_second
    yield Row("  scrolling 10,000 agents", f"{rate:.0f} frames/s", beside, rate, 30.0, absolute=True)
    yield most("  a change, seen after the hub knows it, worst", 1000 * max(found.seen_s), 1000, "ms")


PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    "beats": beats,
    "looking": looking,
    "memory": memory,
    "wire": wire,
    "otlp": otlp,
    "sender": sender,
    "frameworks": frameworks,
    "hooks": hooks,
    "claude_hooks": claude_hooks,
    "signing": signing,
    "guard": guard,
    "watching": watching,
    "hub": hub,
    "hub_fleet": hub_fleet,
    "hub_million": hub_million,
    "takeover": takeover,
    "forwarding": forwarding,
    "hostile": hostile,
    "nudges": nudges,
    "dashboard": dashboard,
}


T = TypeVar("T")


def alone(measure: Callable[..., T], *sizes: int | str) -> T:
    """Measure in a process of its own, with clean memory."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, sizes)


def main() -> int:
    """Run the parts, print results at once, fail if a target is missed."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    rows = []
    for part in asked.parts or PARTS:
        for row in PARTS[part]():
            rows.append(row)
            if not asked.json:
                print(_line(row), flush=True)
    missed = [row for row in rows if not row.holds]
    if asked.json:
        json.dump([{**asdict(row), "holds": row.holds} for row in rows], sys.stdout, indent=2)
    else:
        print(f"\n{len(rows)} measured, {len(missed)} missed their target")
    return 1 if missed else 0


def _line(row: Row) -> str:
    ratio = "" if row.ratio is None or row.absolute else f"{row.ratio:.2f}x"
    sign = "≤" if row.at_most else "≥"
    target = "" if row.target is None else f"{sign} {row.target:g} {'✓' if row.holds else '✗'}"
    return f"{row.what:<46} {row.value:>18} {ratio:>8} {target:>10}  {row.beside}"


if __name__ == "__main__":
    sys.exit(main())
