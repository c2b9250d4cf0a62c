"""What stands in comments, whose marks count, and that nobody's words have an effect there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.hub.locks.wording import (
    WorkerState,
    anonymous,
    as_code,
    claimed_by,
    find_workers_comment,
    is_monitors,
    recoveries,
    released_text,
    releasing_text,
    workers_text,
)
from lifesigns.ports.issues import IssueComment

AT = 1_704_067_200.0


def comment(number: int, body: str, author: str = "monitor-bot", *, trusted: bool = True) -> IssueComment:
    return IssueComment(number, 0.0, author, body, "", trusted)


def test_the_recovery_comment_is_that_of_the_protocol() -> None:
    assert released_text(7, "hub-1", "worker-local-1", 932.0) == (
        "<!-- lifesigns:lock=7 by=hub-1 released -->\n"
        "⚠️ **Stale Lock Detected**\n\n"
        "Worker `worker-local-1` last seen 16 min ago.\n\n"
        "**Actions Taken:**\n- ✅ Assignment removed\n- ✅ Lock released\n- ✅ Task returned to queue\n\n"
        "Task is now available for other workers to claim."
    )


def test_the_comment_of_one_worker_is_that_of_the_protocol() -> None:
    state = WorkerState("worker-local-1", "healthy", AT, "", 2, 3, 45.2, 2048.0, 7200.0, 42)
    assert workers_text([state], AT + 5.0) == (
        "<!-- lifesigns:workers -->\n💓 **Worker Heartbeat**\n\n"
        "Worker: `worker-local-1`\nStatus: ✅ healthy\n"
        "Timestamp: 2024-01-01T00:00:00Z (5.0 s ago)\nActive Tasks: 2\nAvailable Capacity: 3\n\n"
        "**Metrics:**\n- CPU: 45.2%\n- Memory: 2048.0 MB\n- Uptime: 2 h\n- Completed: 42"
    )


def test_several_workers_share_one_comment_that_fits() -> None:
    states = [WorkerState(f"w-{n}" * 30, "stuck", AT, "busy", 1, 0, 1.0, 2.0) for n in range(300)]
    text = workers_text(states, AT)
    assert "300 workers" in text
    assert "and 250 more." in text
    assert len(text) < 65_536


def test_marks_are_found_again_in_order_and_by_lock() -> None:
    texts = [
        releasing_text(7, "b", "w", 1.0),
        released_text(7, "a", "w", 1.0),
        released_text(8, "a", "w", 1.0),
    ]
    said = [comment(9, texts[0]), comment(5, texts[1]), comment(6, texts[2]), comment(1, "hello")]
    assert [(one.comment.id, one.lock_id, one.by, one.done) for one in recoveries(said)] == [
        (5, 7, "a", True),
        (6, 8, "a", True),
        (9, 7, "b", False),
    ]
    assert [one.comment.id for one in recoveries(said, 8)] == [6]
    assert all(is_monitors(text) for text in texts)
    assert not is_monitors(f"> {texts[0]}")


def test_a_strangers_mark_counts_for_nothing() -> None:
    """On a public repository everybody may write one: it must neither stop a release nor be edited as ours."""
    forged = comment(1, released_text(7, "a", "w", 1.0), "mallory", trusted=False)
    assert recoveries([forged]) == []
    text = workers_text([WorkerState("w", "healthy", AT)], AT)
    assert find_workers_comment([comment(1, text, "mallory", trusted=False)]) is None
    found = find_workers_comment([comment(3, text), comment(2, text)])
    assert found is not None
    assert found.id == 2


def test_only_the_assignee_itself_says_that_it_is_a_worker() -> None:
    mark = "I take it. <!-- lifesigns:claim worker=w-1 -->"
    assert claimed_by([comment(1, mark, "Acme-Bot")], ["acme-bot"]) == [("acme-bot", "w-1")]
    assert claimed_by([comment(1, mark, "mallory")], ["alice"]) == []


@pytest.mark.parametrize("text", ["@alice", "`rm`", "a|b", "x\n# Title", "[a](http://b)", ""])
def test_words_of_agents_have_no_effect(text: str) -> None:
    shown = as_code(text)
    assert shown.startswith("`")
    assert shown.endswith("`")
    assert not {"`", "|", "\n"} & set(shown[1:-1])


@given(st.text(max_size=300))
def test_whatever_a_worker_is_called_the_comment_stays_a_comment_of_ours(name: str) -> None:
    text = releasing_text(3, "hub", name, 5.0)
    (found,) = recoveries([comment(1, text)])
    assert (found.lock_id, found.done) == (3, False)
    assert text.count("<!--") == 1 + as_code(name).count("<!--")


def test_an_anonymous_worker_is_the_same_every_time() -> None:
    assert anonymous("worker-local-1") == anonymous("worker-local-1") != anonymous("worker-local-2")
    assert "local" not in anonymous("worker-local-1")
