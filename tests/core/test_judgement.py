"""From findings to health, and how far the evidence lets us go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.core.agent import Agent
from lifesigns.core.awareness import Awareness
from lifesigns.core.effects import Fact, Finding, FindingClosed, FindingOpened, Flip, Kind, Severity
from lifesigns.core.failures import Failures
from lifesigns.core.fleet import Fleet
from lifesigns.core.health import Cause, Health
from lifesigns.core.judgement import ARGUES_FOR, FAMILY, RANK, Judge, independent, may_terminate, worst
from lifesigns.core.outbox import Outbox
from lifesigns.core.policy import FleetPolicy, RespawnPolicy
from lifesigns.errors import Bug


def found(kind: Kind, severity: Severity, since: float = 0.0, conclusive: bool = False) -> Finding:
    return Finding(kind, since, severity, f"{kind} is {severity}", {}, conclusive)


class Court:
    """A judge, one agent, and what was written down."""

    def __init__(self, health: Health = Health.HEALTHY) -> None:
        self.outbox = Outbox(1)
        failures = Failures(self.outbox, Awareness(), {}, lambda _: RespawnPolicy())
        self.judge = Judge(self.outbox, Fleet(FleetPolicy()), failures)
        self.agent = Agent("a", 1, health=health)

    def facts(self) -> list[Fact]:
        return [effect for effect in self.outbox.take() if isinstance(effect, Fact)]


FINDINGS = st.builds(
    found, st.sampled_from(Kind), st.sampled_from(Severity), st.integers(0, 9), st.booleans()
)


# --- health ----------------------------------------------------------------------------------------------


def test_every_kind_has_a_family_and_every_severity_argues_for_a_state() -> None:
    assert set(FAMILY) == set(Kind)
    assert set(ARGUES_FOR) == set(RANK) == set(Severity)


def test_each_severity_argues_for_the_health_it_names() -> None:
    """But a notice, for none: the agent stays healthy."""
    named = {severity: Health(severity.value) for severity in Severity if severity is not Severity.NOTICE}
    assert named | {Severity.NOTICE: Health.HEALTHY} == ARGUES_FOR


def test_nothing_found_decides_nothing() -> None:
    assert worst([]) is None


@given(st.lists(FINDINGS, min_size=1))
def test_the_worst_finding_decides_and_of_equals_the_oldest(findings: list[Finding]) -> None:
    decisive = worst(findings)
    assert decisive is not None
    assert RANK[decisive.severity] == max(RANK[f.severity] for f in findings)
    assert decisive.since == min(f.since for f in findings if f.severity is decisive.severity)


@given(st.lists(FINDINGS, max_size=20))
def test_health_is_what_the_worst_open_finding_argues_for(findings: list[Finding]) -> None:
    court = Court()
    for at, finding in enumerate(findings, start=10):
        court.judge.note(court.agent, finding, float(at))
        decisive = worst(court.agent.findings)
        assert decisive is not None
        assert court.agent.health is ARGUES_FOR[decisive.severity]
    for kind in {f.kind for f in findings}:
        court.judge.clear(court.agent, kind, 100.0)
    assert court.agent.health is Health.HEALTHY


def test_a_notice_is_written_down_and_the_agent_stays_healthy() -> None:
    court = Court()
    court.judge.note(court.agent, found(Kind.LOOPING, Severity.NOTICE), 1.0)
    assert [type(fact) for fact in court.facts()] == [FindingOpened]
    assert court.agent.health is Health.HEALTHY


def test_a_flip_carries_its_reason_and_the_evidence_on_the_table() -> None:
    court = Court()
    mild, bad = found(Kind.OVERLOAD, Severity.DEGRADED), found(Kind.ERRORS, Severity.FAILING)
    court.judge.note(court.agent, mild, 1.0)
    court.judge.note(court.agent, bad, 2.0)
    flips = [fact for fact in court.facts() if isinstance(fact, Flip)]
    assert [(f.at, f.was, f.now, f.reason) for f in flips] == [
        (1.0, Health.HEALTHY, Health.DEGRADED, "overload is degraded"),
        (2.0, Health.DEGRADED, Health.FAILING, "errors is failing"),
    ]
    assert flips[1].evidence == (mild, bad)


def test_the_next_worst_decides_when_the_worst_is_over() -> None:
    court = Court()
    court.judge.note(court.agent, found(Kind.OVERLOAD, Severity.DEGRADED), 1.0)
    court.judge.note(court.agent, found(Kind.ERRORS, Severity.FAILING), 2.0)
    court.judge.clear(court.agent, Kind.ERRORS, 3.0)
    assert court.agent.health is Health.DEGRADED


def test_the_same_finding_again_is_kept_current_and_not_written_down() -> None:
    court = Court()
    court.judge.note(court.agent, found(Kind.ERRORS, Severity.FAILING), 1.0)
    court.facts()
    newer = Finding(Kind.ERRORS, 0.0, Severity.FAILING, "5 calls in a row failed", {"consecutive": 5.0})
    court.judge.note(court.agent, newer, 2.0)
    assert court.facts() == []
    assert court.agent.findings == (newer,)


def test_a_finding_that_becomes_conclusive_is_written_down() -> None:
    court = Court()
    court.judge.note(court.agent, found(Kind.FREEZE, Severity.DISCONNECTED), 1.0)
    court.facts()
    court.judge.note(court.agent, found(Kind.FREEZE, Severity.DISCONNECTED, conclusive=True), 2.0)
    assert [type(fact) for fact in court.facts()] == [FindingOpened]


def test_a_finding_that_only_knows_now_keeps_its_beginning() -> None:
    court = Court()
    court.judge.note(court.agent, found(Kind.SPENDING, Severity.DEGRADED, since=1.0), 1.0)
    court.judge.note(court.agent, found(Kind.SPENDING, Severity.FAILING, since=5.0), 5.0)
    assert court.agent.findings[0].since == 1.0


def test_a_finding_that_knows_better_when_it_began_is_believed() -> None:
    court = Court()
    court.judge.note(court.agent, found(Kind.LONG_CALL, Severity.STUCK, since=1.0), 10.0)
    court.judge.note(court.agent, found(Kind.LONG_CALL, Severity.STUCK, since=5.0), 20.0)
    assert court.agent.findings[0].since == 5.0


def test_clearing_what_was_not_found_says_nothing() -> None:
    court = Court()
    court.judge.clear(court.agent, Kind.ERRORS, 1.0)
    assert court.facts() == []


def test_a_cleared_finding_says_since_when_it_was() -> None:
    court = Court()
    court.judge.note(court.agent, found(Kind.ERRORS, Severity.FAILING, since=3.0), 4.0)
    court.facts()
    court.judge.clear(court.agent, Kind.ERRORS, 9.0)
    assert court.facts()[0] == FindingClosed(9.0, "a", Kind.ERRORS, 3.0)


def test_what_a_detector_says_now_is_what_is_found() -> None:
    court = Court()
    bad = found(Kind.ERRORS, Severity.FAILING)
    court.judge.settle(court.agent, Kind.ERRORS, bad, 1.0)
    assert list(court.agent.findings) == [bad]
    court.judge.settle(court.agent, Kind.LOOPING, None, 2.0)
    assert list(court.agent.findings) == [bad]
    court.judge.settle(court.agent, Kind.ERRORS, None, 3.0)
    assert not court.agent.findings
    assert court.agent.health is Health.HEALTHY


def test_the_findings_of_a_life_end_with_it_and_nothing_is_said_about_health() -> None:
    court = Court()
    court.judge.note(court.agent, found(Kind.ERRORS, Severity.FAILING, since=1.0), 2.0)
    court.judge.note(court.agent, found(Kind.OVERLOAD, Severity.DEGRADED, since=3.0), 4.0)
    court.facts()
    court.judge.clear_all(court.agent, 9.0)
    assert court.facts() == [
        FindingClosed(9.0, "a", Kind.ERRORS, 1.0),
        FindingClosed(9.0, "a", Kind.OVERLOAD, 3.0),
    ]
    assert (court.agent.findings, court.agent.health) == ((), Health.FAILING)


def test_one_that_is_heard_for_the_first_time_is_healthy_and_nobody_else_is_by_being_heard() -> None:
    court = Court(Health.STARTING)
    court.judge.hear(court.agent, 1.0)
    assert court.agent.health is Health.HEALTHY
    assert [fact.reason for fact in court.facts() if isinstance(fact, Flip)] == ["heard for the first time"]
    lost = Court(Health.DISCONNECTED)
    lost.judge.hear(lost.agent, 1.0)
    assert (lost.agent.health, lost.facts()) == (Health.DISCONNECTED, [])


def test_one_that_is_well_again_says_so() -> None:
    court = Court()
    court.judge.note(court.agent, found(Kind.ERRORS, Severity.FAILING), 1.0)
    court.facts()
    court.judge.clear(court.agent, Kind.ERRORS, 2.0)
    assert [fact.reason for fact in court.facts() if isinstance(fact, Flip)] == ["well again"]


def test_one_that_is_unwell_from_the_start_says_why() -> None:
    court = Court(Health.STARTING)
    court.judge.note(court.agent, found(Kind.NEVER_STARTED, Severity.DISCONNECTED), 1.0)
    flips = [fact for fact in court.facts() if isinstance(fact, Flip)]
    assert [flip.reason for flip in flips] == ["never_started is disconnected"]


def test_only_a_disconnection_has_a_cause_and_is_counted_as_one() -> None:
    court = Court()
    court.judge.note(court.agent, found(Kind.ERRORS, Severity.FAILING), 1.0, Cause.FREEZE)
    assert (court.agent.cause, court.agent.past.disconnections) == (None, 0)


def test_a_terminated_agent_is_not_judged_any_more() -> None:
    court = Court(Health.TERMINATED)
    court.judge.note(court.agent, found(Kind.ERRORS, Severity.FAILING), 1.0)
    assert court.agent.health is Health.TERMINATED


def test_the_cause_is_kept_while_disconnected_and_forgotten_after() -> None:
    court = Court()
    court.judge.note(court.agent, found(Kind.SILENCE, Severity.DISCONNECTED), 1.0, Cause.PARTITION)
    assert court.agent.cause is Cause.PARTITION
    assert court.agent.past.disconnections == 1
    court.judge.clear(court.agent, Kind.SILENCE, 2.0)
    assert court.agent.cause is None


def test_an_illegal_flip_is_our_bug() -> None:
    court = Court(Health.TERMINATED)
    with pytest.raises(Bug, match="cannot go from terminated to healthy"):
        court.judge.flip(court.agent, Health.HEALTHY, "wishful thinking", 1.0)
    assert court.agent.health is Health.TERMINATED


# --- how far we may go -----------------------------------------------------------------------------------

CONCLUSIVE = found(Kind.SILENCE, Severity.DISCONNECTED, conclusive=True)
NO_CHECKPOINT = found(Kind.NO_CHECKPOINT, Severity.STUCK)
TASK_STALLED = found(Kind.TASK_STALLED, Severity.STUCK)
NO_TOOL_CALL = found(Kind.NO_TOOL_CALL, Severity.STUCK)
NO_TOKENS = found(Kind.NO_TOKENS, Severity.DEGRADED)
LOOP_NOTICE = found(Kind.LOOPING, Severity.NOTICE)
LOAD = found(Kind.OVERLOAD, Severity.DEGRADED)


@pytest.mark.parametrize(
    ("findings", "nudged", "escalated", "enough"),
    [
        ([], True, True, False),
        ([CONCLUSIVE], False, False, True),
        ([NO_CHECKPOINT, CONCLUSIVE], False, False, True),
        ([NO_CHECKPOINT], True, True, False),
        ([NO_CHECKPOINT, TASK_STALLED], True, True, False),
        ([NO_TOOL_CALL, NO_TOKENS], True, True, False),
        ([NO_CHECKPOINT, NO_TOOL_CALL], True, True, True),
        ([NO_CHECKPOINT, NO_TOOL_CALL], True, False, False),
        ([NO_CHECKPOINT, NO_TOOL_CALL], False, True, False),
        ([NO_CHECKPOINT, NO_TOOL_CALL], False, False, False),
        ([NO_CHECKPOINT, LOOP_NOTICE], True, True, False),
    ],
)
def test_ending_an_agent_needs_conclusive_evidence_or_two_kinds_and_no_answer(
    findings: list[Finding], nudged: bool, escalated: bool, enough: bool
) -> None:
    """Kinds of one family are one observation, and a notice is none."""
    assert may_terminate(findings, nudged=nudged, escalated=escalated) is enough


def said(kind: Kind, severity: Severity, **numbers: float) -> Finding:
    return Finding(kind, 0.0, severity, "", numbers)


ERRORS = found(Kind.ERRORS, Severity.FAILING)
LOOP = found(Kind.LOOPING, Severity.STUCK)
WAITING = said(Kind.LOOPING, Severity.DEGRADED, waiting=1)
NOTED = said(Kind.LOOPING, Severity.NOTICE, waiting=1)
WORLD = said(Kind.ERRORS, Severity.FAILING, world_run=9)
TRIPPED = said(Kind.ERRORS, Severity.DEGRADED, tripped=1)
LONG_CALL = found(Kind.LONG_CALL, Severity.STUCK)


@pytest.mark.parametrize(
    ("findings", "families"),
    [
        ([ERRORS, LOOP], 1),
        ([ERRORS, LOOP, NO_TOOL_CALL], 1),
        ([LOOP, NO_TOKENS], 1),
        ([ERRORS, NO_CHECKPOINT], 2),
        ([LOOP, NO_CHECKPOINT, NO_TOOL_CALL], 2),
        ([WAITING, ERRORS, NO_TOOL_CALL, NO_CHECKPOINT, TASK_STALLED], 1),
        ([NOTED, NO_TOOL_CALL, NO_CHECKPOINT], 1),
        ([NOTED], 0),
        ([WORLD, NO_CHECKPOINT, NO_TOOL_CALL], 1),
        ([TRIPPED, NO_CHECKPOINT, NO_TOOL_CALL], 1),
        ([LONG_CALL, TASK_STALLED], 1),
        ([said(Kind.NO_CHECKPOINT, Severity.STUCK, world_run=9), NO_TOOL_CALL], 2),
        ([WAITING, LOAD], 2),
        ([LONG_CALL, LOAD], 2),
    ],
)
def test_what_has_one_cause_is_one_family(findings: list[Finding], families: int) -> None:
    """The same calls, the silence after them, and everything that stands still while an agent waits."""
    assert len(independent(findings)) == families


def test_the_families_of_evidence() -> None:
    """A kind moved into a family of its own is one more witness against an agent: each is argued here."""
    families: dict[str, set[Kind]] = {}
    for kind, family in FAMILY.items():
        families.setdefault(family, set()).add(kind)
    assert sorted(map(sorted, families.values())) == sorted(
        map(
            sorted,
            [
                {Kind.SILENCE, Kind.NEVER_STARTED},  # nothing is heard
                {Kind.EXIT},
                {Kind.FREEZE},
                {Kind.NO_CHECKPOINT, Kind.TASK_STALLED},  # no progress
                {  # nothing is done
                    Kind.NO_TOOL_CALL,
                    Kind.NO_TOKENS,
                    Kind.NO_OUTPUT,
                    Kind.REPEATED_OUTPUT,
                    Kind.LONG_CALL,
                },
                {Kind.LOOPING, Kind.ERRORS, Kind.CONTEXT},  # the same calls
                {Kind.SPENDING},
                {Kind.SPINNING, Kind.OVERLOAD},  # the same CPU
                {Kind.SELF_REPORTED},
                {Kind.FORECAST},  # never more than a notice, so no witness
            ],
        )
    )


@given(st.sampled_from(Kind), st.sampled_from(Severity))
def test_what_an_agent_says_of_itself_is_no_witness_against_it(kind: Kind, severity: Severity) -> None:
    own = found(Kind.SELF_REPORTED, severity)
    other = found(kind, Severity.STUCK)
    assert not may_terminate([own, other], nudged=True, escalated=True)
    assert not may_terminate(iter([other, own]), nudged=True, escalated=True)


def test_a_pair_of_witnesses_may_come_one_by_one() -> None:
    assert may_terminate(iter([NO_CHECKPOINT, ERRORS]), nudged=True, escalated=True)
    assert independent(iter([NO_CHECKPOINT, ERRORS])) == {"progress", "calls"}
    assert independent(iter([WAITING, NO_CHECKPOINT])) == {"waiting"}


def test_load_is_no_reason_to_end_anybody() -> None:
    """Overload never kills by itself, nor does it make the second witness against a stalled agent."""
    assert not may_terminate([LOAD], nudged=True, escalated=True)


@given(st.lists(FINDINGS.filter(lambda f: not f.conclusive), max_size=6))
def test_weak_evidence_alone_never_ends_anybody_unasked(findings: list[Finding]) -> None:
    assert not may_terminate(findings, nudged=False, escalated=True)
    assert not may_terminate(findings, nudged=True, escalated=False)
