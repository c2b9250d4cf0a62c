"""Our client through GitHub's own description of its API: Prism stands between it and the small GitHub, and refuses every request and
every answer that GitHub's OpenAPI does not allow.

`make integrations` installs Prism and that description (`tools/coding_agents.py`).
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from math import inf
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from lifesigns.adapters.issues.github import GitHub, fixed_token
from lifesigns.ports.issues import IssueRef, TrackerError
from tests.journeys.outside import free_port
from tests.servers.github import TOKEN, FakeGitHub

FOLDER = Path(__file__).parents[2] / ".tools/github"
PRISM = FOLDER / "node_modules/.bin/prism"
OPENAPI = FOLDER / "node_modules/@octokit/openapi/generated/api.github.com.deref.json"
REPO, REF = "org/repo", IssueRef("org/repo", 1)
ISSUES = "/repos/{owner}/{repo}/issues"

pytestmark = [
    pytest.mark.skipif(
        not (os.environ.get("LIFESIGNS_INTEGRATIONS") and PRISM.exists() and OPENAPI.exists()),
        reason="with GitHub's description of its API: make integrations",
    ),
    pytest.mark.timeout(600),  # The proxy reads megabytes of description before it answers.
]


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeGitHub]:
    with FakeGitHub() as github:
        github.open_issue(REPO, 1, "status:queued")
        github.claim(REPO, 1, "bot")
        yield github


@pytest.fixture(scope="module")
def proxy(fake: FakeGitHub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("prism")
    whole = json.loads(OPENAPI.read_text())
    # GitHub's webhooks are most of it, and Prism would read them, for a minute on a busy machine.
    less = {key: value for key, value in whole.items() if key not in ("x-webhooks", "components")}
    issues = {path: row for path, row in whole["paths"].items() if path.startswith(ISSUES)}
    (folder / "issues.json").write_text(json.dumps({**less, "paths": issues}))
    port = free_port()
    log = (folder / "log").open("wb")
    process = subprocess.Popen(
        [PRISM, "proxy", "--errors", "-p", str(port), str(folder / "issues.json"), fake.url],
        stdout=log,
        stderr=log,
    )
    try:
        until = time.monotonic() + 400
        while True:
            assert process.poll() is None, (folder / "log").read_text()[-2000:]
            assert time.monotonic() < until, "prism did not start"
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                time.sleep(0.2)
            else:
                break
        url = f"http://127.0.0.1:{port}"
        _warm_up(fake, url)
        yield url
    finally:
        process.terminate()
        process.wait(10)
        log.close()


def _warm_up(fake: FakeGitHub, url: str) -> None:
    """Ask once for all that the tests ask for, of an issue of its own. Prism compiles what GitHub may take and answer when a path is
    first asked for: ten seconds for events, on a busy machine more than our client waits for an answer."""
    fake.open_issue(REPO, 2)
    fake.assign(REPO, 2, "bot")
    written = fake.say(REPO, 2, "bot", "Here.")["id"]
    for method, path, body in (
        ("GET", "?labels=none", None),
        ("GET", "/2", None),
        ("GET", "/2/events", None),
        ("GET", "/2/comments", None),
        ("POST", "/2/comments", {"body": "Stale."}),
        ("PATCH", f"/comments/{written}", {"body": "Released."}),
        ("DELETE", f"/comments/{written}", None),
        ("DELETE", "/2/assignees", {"assignees": ["bot"]}),
        ("POST", "/2/labels", {"labels": ["status:queued"]}),
        ("DELETE", "/2/labels/status:queued", None),
    ):
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        content = None if body is None else json.dumps(body).encode()
        asked = Request(f"{url}/repos/{REPO}/issues{path}", content, headers, method=method)
        urlopen(asked, timeout=300).close()


async def test_everything_that_we_ask_of_github_is_what_github_describes(
    fake: FakeGitHub, proxy: str
) -> None:
    github = GitHub(fixed_token(TOKEN), proxy, pace=0.0)
    (issue,) = await github.labelled(REPO, "status:in-progress")
    assert issue == await github.issue(REF)
    assert [event.kind for event in await github.events(REF)][-1] == "unlabeled"
    comment = await github.comment(REF, "Stale.")
    assert [one.id for one in await github.comments(REF, 600.0)] == [comment.id]
    assert await github.edit_comment(REF, comment.id, "Released.")
    assert [one.body for one in await github.comments(REF, inf)] == ["Released."]
    await github.unassign(REF, ["bot"])
    await github.add_label(REF, "status:queued")
    await github.remove_label(REF, "status:in-progress")
    await github.delete_comment(REF, comment.id)
    assert fake.labels(REPO, 1) == ["status:queued"]
    assert fake.assignees(REPO, 1) == []
    await github.close()


async def test_what_github_does_not_describe_is_refused(proxy: str) -> None:
    """So that the test above can fail."""
    github = GitHub(fixed_token(TOKEN), proxy, pace=0.0)
    with pytest.raises(TrackerError, match=r"answered 4\d\d"):
        await github._change("POST", "/repos/org/repo/issues/1/comments", {"text": "no body"})
    await github.close()
