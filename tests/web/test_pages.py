"""The dashboard's files as they are served: exactly those that were built, guarded, packed and kept as they should be."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lifesigns.web import pages
from lifesigns.web.app import Web
from lifesigns.web.server import listen, serving
from tests.web.hub import RunningHub
from tests.web.test_getting_in import Browser, link, opened, raw, request, signed_in

INDEX = b"<!doctype html><title>lifesigns</title>" + b"<!-- -->" * 400
SCRIPT = b"console.log('here');" * 400


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """What a build leaves."""
    folder = tmp_path / "dashboard"
    folder.mkdir()
    (folder / "index.html").write_bytes(INDEX)
    (folder / "app-0123456789ab.js").write_bytes(SCRIPT)
    (folder / "app-ba9876543210.css").write_bytes(b"p{}")
    (folder / ".built-from").write_text("x")
    (tmp_path / "secret.txt").write_text("root:")
    return folder


@pytest.fixture
async def page(hub: RunningHub, built: Path) -> AsyncIterator[RunningHub]:
    """A second door to the hub, with that dashboard."""
    async for one in _door(hub, built):
        yield one


@pytest.fixture
async def bare(hub: RunningHub, tmp_path: Path) -> AsyncIterator[RunningHub]:
    """One without any."""
    async for one in _door(hub, tmp_path / "nothing"):
        yield one


async def _door(hub: RunningHub, folder: Path) -> AsyncIterator[RunningHub]:
    web = Web(hub.service, dashboard=folder)
    listener = listen("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with serving(web, listener):
        door = RunningHub(hub.service, web, url, hub.token, hub.http)
        async with door.client(hub.token) as http:
            door.http = http
            yield door


async def test_the_page_is_for_everybody_and_never_stored(page: RunningHub) -> None:
    """Who is not signed in gets the page, and is told by it how to sign in."""
    async with page.client(None) as stranger:
        answer = await stranger.get("/")
    assert (answer.status_code, answer.content) == (200, INDEX)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"


async def test_every_file_is_guarded_against_what_a_name_could_smuggle_in(page: RunningHub) -> None:
    for path in ("/", "/app-0123456789ab.js", "/app-ba9876543210.css"):
        headers = (await page.get(path)).headers
        policy = headers["content-security-policy"]
        assert policy.startswith(
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'"
        )
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


async def test_files_with_a_digest_in_their_name_are_kept_for_ever(page: RunningHub) -> None:
    answer = await page.get("/app-0123456789ab.js")
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.content == SCRIPT
    tag = answer.headers["etag"]
    for known in (tag, f'"other", W/{tag}', "*"):
        again = await page.http.get("/app-0123456789ab.js", headers={"if-none-match": known})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == tag
    assert (await page.http.get("/app-0123456789ab.js", headers={"if-none-match": '"x"'})).status_code == 200


async def test_it_is_packed_for_those_who_read_gzip_and_only_for_them(page: RunningHub) -> None:
    packed = await raw(page, request(page, "HEAD /app-0123456789ab.js", Accept_Encoding="gzip, br"))
    assert f"content-length: {len(gzip.compress(SCRIPT, 9, mtime=0))}\r\n" in packed.head
    assert packed.head.count("content-encoding: gzip") == 1
    plain = await raw(page, request(page, "HEAD /app-0123456789ab.js", Accept_Encoding="br"))
    assert f"content-length: {len(SCRIPT)}\r\n" in plain.head
    assert "content-encoding" not in plain.head
    assert packed.body == plain.body == ""


@pytest.mark.parametrize(
    "path",
    [
        "/index.html",
        "/.built-from",
        "/app.js",
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/app-0123456789ab.js/",
        "/app-0123456789ab.js%00",
        "//app-0123456789ab.js",
    ],
)
async def test_only_what_was_built_is_there(page: RunningHub, path: str) -> None:
    reply = await raw(page, request(page, f"GET {path}"))
    assert reply.status in (400, 404)
    assert "root:" not in reply.body


async def test_nothing_is_changed_by_way_of_the_page(page: RunningHub) -> None:
    for method in ("POST", "PUT", "DELETE"):
        assert (await raw(page, request(page, f"{method} /"))).status == 405


async def test_the_api_does_not_list_the_page(page: RunningHub) -> None:
    paths = (await page.get("/openapi.json")).json()["paths"]
    assert "/" not in paths
    assert not any("app-" in path for path in paths)


async def test_a_hub_without_a_dashboard_says_how_to_get_one(bare: RunningHub) -> None:
    answer = await bare.get("/")
    assert answer.status_code == 200
    assert "make dashboard" in answer.text
    assert 'href="/docs"' in answer.text
    assert "content-security-policy" in answer.headers


async def test_a_link_on_another_page_leads_to_the_dashboard_and_to_nothing_else(page: RunningHub) -> None:
    """Another port of this machine is the same site: the browser sends the cookie along."""
    browser = await signed_in(page)
    assert await browser.status("GET /", Sec_Fetch_Site="same-site") == 200
    assert await browser.status("GET /api/v1/agents", Sec_Fetch_Site="same-site") == 403


async def test_a_link_that_is_clicked_twice_leads_to_the_dashboard_again(page: RunningHub) -> None:
    """As whoever was signed in by the first click; to everybody else it is used up."""
    line = await link(page)
    first = await opened(page, line)
    cookie = first.head.partition("set-cookie: ")[2].partition(";")[0]
    again = await opened(page, line, Cookie=cookie)
    assert again.status == 303
    assert "set-cookie" not in again.head
    assert (await opened(page, line)).status == 401
    assert await Browser(page, cookie).status() == 200


def test_what_was_built_here_is_small_enough() -> None:
    """60 kB packed, all of it: a phone on a bad line shows it in a second."""
    if not pages.is_built():
        pytest.skip("the dashboard is not built: make dashboard")
    files = [file for file in pages.FOLDER.iterdir() if not file.name.startswith(".")]
    assert sum(len(gzip.compress(file.read_bytes(), 9)) for file in files) <= 60_000
