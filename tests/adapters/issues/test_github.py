"""The way to GitHub: limits, tokens, ages by its own clock, pages, and what it makes of answers."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from math import inf
from pathlib import Path

import pytest

from lifesigns.adapters.issues.gh_login import GhLogin
from lifesigns.adapters.issues.github import GitHub, fixed_token, limited_for
from lifesigns.errors import UsageError
from lifesigns.ports.issues import IssueRef, TrackerError
from tests.servers.github import TOKEN, FakeGitHub, Fault

REPO, REF = "org/repo", IssueRef("org/repo", 1)


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    with FakeGitHub() as github:
        github.claim(REPO, 1, "bot")
        yield github


def client(fake: FakeGitHub, token: str = TOKEN) -> GitHub:
    return GitHub(fixed_token(token), fake.url, pace=0.0)


@pytest.mark.parametrize(
    ("status", "headers", "body", "before", "wait"),
    [
        (200, {"x-ratelimit-remaining": "10"}, b"", 0, None),
        (403, {}, b"Must have admin rights", 0, None),
        (403, {"retry-after": "30"}, b"", 0, 30.0),
        (429, {"retry-after": "30"}, b"", 0, 30.0),
        (200, {"retry-after": "30"}, b"", 0, None),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1100"}, b"", 0, 101.0),
        (200, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1100"}, b"", 0, 101.0),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "900"}, b"", 0, 1.0),
        (403, {}, b'{"message": "You have exceeded a secondary rate limit"}', 0, 60.0),
        (403, {}, b'{"message": "You have exceeded a secondary rate limit"}', 2, 240.0),
        (429, {}, b"", 20, 3600.0),
        (403, {"retry-after": "999999"}, b"", 0, 3600.0),
    ],
)
def test_for_how_long_nothing_is_asked(
    status: int, headers: dict[str, str], body: bytes, before: int, wait: float | None
) -> None:
    assert limited_for(status, headers, body, 1000.0, before) == wait


async def test_after_a_limit_nothing_is_sent_until_it_is_over(fake: FakeGitHub) -> None:
    now = [0.0]
    github = GitHub(fixed_token(TOKEN), fake.url, pace=0.0, clock=lambda: now[0])
    fake.fail("GET", "/issues", Fault(403, {"Retry-After": "30"}, {"message": "secondary rate limit"}))
    with pytest.raises(TrackerError) as caught:
        await github.labelled(REPO, "status:in-progress")
    assert caught.value.retry_after == 30.0
    now[0] = 29.9
    with pytest.raises(TrackerError):
        await github.issue(REF)
    assert len(fake.calls) == 1
    now[0] = 30.0
    assert await github.issue(REF) is not None
    await github.close()


async def test_an_unchanged_list_costs_nothing(fake: FakeGitHub) -> None:
    github = client(fake)
    first = await github.labelled(REPO, "status:in-progress")
    remaining = fake.remaining
    assert await github.labelled(REPO, "status:in-progress") == first
    assert fake.remaining == remaining
    assert fake.calls[-1].status == 304
    fake.claim(REPO, 2, "bot")
    assert [one.ref.number for one in await github.labelled(REPO, "status:in-progress")] == [1, 2]
    await github.close()


async def test_long_lists_are_read_to_their_end_and_pull_requests_left_out(fake: FakeGitHub) -> None:
    for number in range(2, 252):
        fake.claim(REPO, number, "bot")
    fake.issues[REPO, 7]["pull_request"] = {"url": "https://api.github.com/repos/org/repo/pulls/7"}
    github = client(fake)
    assert len(await github.labelled(REPO, "status:in-progress")) == 250
    await github.close()


async def test_ages_are_by_its_own_clock() -> None:
    """Ours and GitHub's may differ by hours: what counts is how long ago it was there."""
    there = [500_000.0]
    with FakeGitHub(lambda: there[0]) as fake:
        fake.claim(REPO, 1, "bot")
        fake.say(REPO, 1, "bot", "hello")
        there[0] += 90.0
        github = client(fake)
        assert await github.issue(REF) is not None
        assert [event.kind for event in await github.events(REF)] == ["assigned", "labeled"]
        assert all(89.0 <= event.age <= 92.0 for event in await github.events(REF))
        assert len(await github.comments(REF, 100.0)) == 1
        assert await github.comments(REF, 60.0) == []
        assert len(await github.comments(REF, inf)) == 1
        await github.close()


async def test_whose_comments_are_trusted(fake: FakeGitHub) -> None:
    fake.say(REPO, 1, "mallory", "x")
    fake.say(REPO, 1, "monitor-bot", "y")
    fake.say(REPO, 1, "an-app[bot]", "z")["user"]["type"] = "Bot"
    github = client(fake)
    assert [one.trusted for one in await github.comments(REF, inf)] == [False, True, True]
    await github.close()


async def test_what_is_gone_is_no_error(fake: FakeGitHub) -> None:
    github = client(fake)
    assert await github.issue(IssueRef(REPO, 99)) is None
    assert not await github.edit_comment(REF, 99, "x")
    await github.delete_comment(REF, 99)
    await github.remove_label(REF, "not-there")
    fake.issues[REPO, 1]["state"] = "closed"
    assert await github.issue(REF) is None
    await github.close()


@pytest.mark.parametrize(
    ("status", "transient"), [(500, True), (502, True), (403, False), (404, False), (422, False)]
)
async def test_which_refusals_may_pass(fake: FakeGitHub, status: int, transient: bool) -> None:
    fake.fail("POST", "/comments", Fault(status, body={"message": "Resource not accessible"}))
    github = client(fake)
    with pytest.raises(TrackerError, match=f"answered {status}: Resource not accessible") as caught:
        await github.comment(REF, "x")
    assert caught.value.transient is transient
    await github.close()


async def test_garbage_is_an_error_of_the_tracker(fake: FakeGitHub) -> None:
    fake.fail("GET", "/events", Fault(200, body={"not": "a list"}))
    github = client(fake)
    with pytest.raises(TrackerError, match="cannot be read"):
        await github.events(REF)
    await github.close()


async def test_a_refused_token_is_asked_for_anew_and_never_quoted(fake: FakeGitHub) -> None:
    asked: list[bool] = []

    async def token(anew: bool) -> str:
        asked.append(anew)
        return TOKEN if anew else "ghp_old"

    github = GitHub(token, fake.url, pace=0.0)
    assert await github.issue(REF) is not None
    assert asked == [False, True]
    wrong = client(fake, "ghp_secret")
    with pytest.raises(TrackerError, match="401") as caught:
        await wrong.issue(REF)
    assert "ghp_secret" not in str(caught.value)
    await github.close()
    await wrong.close()


def test_a_token_does_not_go_over_an_open_line() -> None:
    with pytest.raises(UsageError, match="https"):
        GitHub(fixed_token(TOKEN), "http://ghe.example.com/api/v3")


async def test_an_enterprise_server_has_a_path_of_its_own(fake: FakeGitHub) -> None:
    github = GitHub(fixed_token(TOKEN), f"{fake.url}/api/v3/", pace=0.0)
    assert await github.issue(REF) is not None
    await github.close()


# --- the login of gh ------------------------------------------------------------------------------------------


def program(folder: Path, script: str) -> str:
    path = folder / "gh"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return os.fspath(path)


async def test_the_login_of_gh_is_asked_for_once_and_anew_when_it_was_refused(tmp_path: Path) -> None:
    log = tmp_path / "log"
    login = GhLogin("github.com", program(tmp_path, f'echo "$*" >> {log}; echo gho_1'))
    assert [await login(False), await login(False), await login(True)] == ["gho_1"] * 3
    assert log.read_text().splitlines() == ["auth token --hostname github.com"] * 2


@pytest.mark.parametrize(
    ("script", "said"),
    [("echo no oauth token >&2; exit 1", "no oauth token"), ("exit 0", "has no login for")],
)
async def test_without_a_login_the_error_says_so(tmp_path: Path, script: str, said: str) -> None:
    with pytest.raises(TrackerError, match=said):
        await GhLogin("github.com", program(tmp_path, script))(False)


async def test_without_gh_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(TrackerError, match=r"install it, or configure github\.token"):
        await GhLogin("github.com", str(tmp_path / "none"))(False)
