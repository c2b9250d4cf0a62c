"""What is worth knowing is logged, with a name to search for, and without secrets."""

from __future__ import annotations

import io
import json
import logging
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.cli.logs import set_up_logs, without_secrets
from lifesigns.core.signals import BeatReceived
from lifesigns.errors import AdapterError, UsageError
from lifesigns.ports import Commit
from tests.docs.pages import ROOT
from tests.web.observed import Observed

LIMIT = 5.0
TOKEN = f"ls_0a1b2c3d_{'5e' * 32}"
log = logging.getLogger("lifesigns.test")


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """Logging is set up once per process; the other tests are in this one too."""
    names = (None, "lifesigns", "uvicorn.access")
    loggers = [logging.getLogger(name) for name in names]
    before = [(logger.level, logger.handlers[:], logger.disabled) for logger in loggers]
    yield
    for logger, (level, handlers, disabled) in zip(loggers, before, strict=True):
        logger.setLevel(level)
        logger.handlers[:] = handlers
        logger.disabled = disabled


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def as_json(level: str = "info") -> io.StringIO:
    stream = io.StringIO()
    set_up_logs("json", level, stream)
    return stream


# --- lines ----------------------------------------------------------------------------------------------


def test_a_line_of_json_says_when_how_bad_who_and_what_in_this_order() -> None:
    stream = as_json()
    before = time.time()
    log.warning("%d agents are gone", 3, extra={"action": "agents_gone", "group": "host ws-1"})
    (line,) = lines(stream)
    assert list(line) == ["timestamp", "level", "logger", "event", "action", "group"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["timestamp"])
    assert line["timestamp"][:10] == time.strftime("%Y-%m-%d", time.gmtime(before))
    del line["timestamp"]
    assert line == {
        "level": "warning",
        "logger": "lifesigns.test",
        "event": "3 agents are gone",
        "action": "agents_gone",
        "group": "host ws-1",
    }


def test_an_exception_is_part_of_its_line() -> None:
    stream = as_json()
    try:
        raise ValueError("no such thing")
    except ValueError:
        log.exception("it failed", extra={"action": "it_failed"})
    (line,) = lines(stream)
    assert line["exception"].startswith("Traceback")
    assert line["exception"].endswith("ValueError: no such thing")


@pytest.mark.parametrize(
    "value", [float("inf"), {1, 2}, {"a": (1, None)}, object(), b"\xff", "\ud800", 10**30]
)
def test_whatever_is_given_as_extra_the_line_is_json(value: object) -> None:
    stream = as_json()
    log.error("odd", extra={"value": value})
    assert "value" in lines(stream)[0]


def test_a_line_for_people_is_short_and_without_colour_in_a_file() -> None:
    stream = io.StringIO()
    set_up_logs("text", "info", stream)
    log.warning("the store takes commits again", extra={"action": "store_back", "after_s": 3})
    logging.getLogger("asyncpg").warning("hm")
    ours, theirs = stream.getvalue().splitlines()
    assert re.fullmatch(r"\d\d:\d\d:\d\d warning  the store takes commits again  store_back after_s=3", ours)
    assert theirs.endswith("asyncpg: hm")


def test_a_terminal_gets_colours_unless_its_user_wants_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    set_up_logs("text", "info", stream)
    log.error("red")
    assert "\x1b[31m" in stream.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    set_up_logs("text", "info", stream)
    log.error("red")
    assert "\x1b" not in stream.getvalue()


def test_what_others_said_cannot_look_like_a_line_of_ours_or_steer_a_terminal() -> None:
    stream = io.StringIO()
    set_up_logs("text", "info", stream)
    said = "hello\n18:00:00 error  forged\x1b[2J\r\x9b31m"
    try:
        raise ValueError(said)
    except ValueError:
        log.exception("%s", said, extra={"name_of_it": said})
    first, *rest = stream.getvalue().splitlines()
    assert "forged" in first
    assert rest
    assert all(line.startswith("    ") for line in rest)
    assert not re.search(r"[\x1b\r\x9b]", stream.getvalue())


def test_drivers_are_heard_from_warnings_on_and_we_from_the_level_asked_for() -> None:
    stream = as_json("debug")
    logging.getLogger("httpx2").info("GET ...")
    logging.getLogger("uvicorn.error").error("cannot listen")
    logging.getLogger("uvicorn.access").warning("GET / 200")
    log.debug("fine detail")
    assert [line["event"] for line in lines(stream)] == ["cannot listen", "fine detail"]
    stream = as_json("error")
    log.warning("not now")
    assert lines(stream) == []


def test_setting_it_up_again_replaces_what_was_there() -> None:
    first, second = as_json(), as_json()
    log.warning("once")
    assert not first.getvalue()
    assert len(lines(second)) == 1


def test_an_unknown_format_or_level_is_named_with_what_would_be_right() -> None:
    with pytest.raises(UsageError, match="'xml', but is one of text, json"):
        set_up_logs("xml", "info")
    with pytest.raises(UsageError, match="'loud', but is one of debug, info"):
        set_up_logs("json", "loud")


# --- secrets --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer s3cret", "Authorization: ***"),
        ("{'authorization': 'Basic s3cret'}", "{'authorization': '***'}"),
        ("(b'authorization', b'Bearer s3cret')", "(b'authorization', b'Bearer ***')"),
        ("GET /events?token=s3cret&types=x", "GET /events?token=***&types=x"),
        ("postgres://hub:s3cret@db/lifesigns is away", "postgres://***@db/lifesigns is away"),
        ("postgres://hub:s3c@ret@db/x", "postgres://***@db/x"),
        ("nats://s3cret@a:4222,nats://u:s3cret@b", "nats://***@a:4222,nats://***@b"),
        ("{'password': 's3 cret', 'user': 'hub'}", "{'password': '***', 'user': 'hub'}"),
        ("connect(password=s3cret)", "connect(password=***)"),
        ("Cookie: session=s3cret; theme=dark", "Cookie: ***"),
        (f"{TOKEN} is not known", "ls_0a1b2c3d_*** is not known"),
        ("a bearer token is needed", "a bearer token is needed"),
        ("token_count=17 tokens=3 at http://hub:8710/x?y=me@home", None),
    ],
)
def test_secrets_are_made_unreadable_and_nothing_else_is(text: str, shown: str | None) -> None:
    assert without_secrets(text) == (text if shown is None else shown)


def test_a_secret_is_hidden_wherever_in_a_line_it_stands() -> None:
    for log_format in ("json", "text"):
        stream = io.StringIO()
        set_up_logs(log_format, "info", stream)
        try:
            raise AdapterError("postgres://hub:s3cret@db is away")
        except AdapterError:
            log.exception(
                "with token=%s",
                "s3cret",
                extra={
                    "authorization": "s3cret",
                    "deep": [{"api_key": "s3cret"}, "Bearer s3cret"],
                    "token_id": "7",
                },
            )
        assert "s3cret" not in stream.getvalue()
        assert "token_id" in stream.getvalue()


def test_a_hostile_text_is_searched_quickly() -> None:
    """A pattern that goes back and forth would take minutes for these."""
    for piece in ("token", "a-", "://", "bearer ", "authorization ", "password'", "ls_aaaa"):
        text = piece * (200_000 // len(piece))
        began = time.process_time()
        without_secrets(text)
        assert time.process_time() - began < LIMIT, piece


# --- actions --------------------------------------------------------------------------------------------


class AwayStore(MemoryStore):
    """Takes nothing while it is away."""

    away: AdapterError | None = None

    async def commit(self, page: Commit) -> None:
        if self.away is not None:
            raise self.away
        await super().commit(page)


async def test_a_store_that_goes_and_comes_back_is_logged_once_each() -> None:
    stream, store = as_json(), AwayStore("logs away")
    async with Observed(store) as seen:
        store.away = AdapterError("the disk is full")
        seen.service.hub.hear([BeatReceived("a", 1, "one")])
        await seen.until(lambda: seen.service.hub.committer.trouble)
        store.away = None
        await seen.until(lambda: seen.service.hub.committer.trouble is None)
    told = [(line["level"], line["action"]) for line in lines(stream)]
    assert told[:2] == [("error", "store_failed"), ("warning", "store_back")]
    assert lines(stream)[0]["event"] == "the store takes nothing: the disk is full"


async def test_a_store_that_is_another_hubs_now_is_logged_as_lost() -> None:
    stream, store = as_json(), AwayStore("logs lost")
    async with Observed(store) as seen:
        store.away = AdapterError("another hub has taken over", transient=False)
        seen.service.hub.hear([BeatReceived("a", 1, "one")])
        await seen.until(lambda: "store_lost" in stream.getvalue())
    told = [(line["level"], line["action"]) for line in lines(stream)]
    assert ("critical", "store_lost") in told
    assert ("error", "last_page_lost") in told


async def test_an_agent_that_is_set_aside_for_a_bug_of_ours_is_logged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = as_json()

    def breaks(*_: object) -> None:
        raise ZeroDivisionError("our bug")

    async with Observed() as seen:
        await seen.hear(BeatReceived("a", 1, "one"))
        monkeypatch.setattr("lifesigns.core.detectors.silence.learn", breaks)
        await seen.hear(BeatReceived("a", 2, "one"))
    (poisoned,) = [line for line in lines(stream) if line.get("action") == "agent_poisoned"]
    assert (poisoned["level"], poisoned["event"]) == ("error", "a: ZeroDivisionError: our bug")


def test_the_page_lists_every_action_there_is() -> None:
    """An action is written where it is logged, as a plain word: that is how it is found from the log. One that is made of
    a word and a value (`f"alert_{stage}"`) has a row for each value."""
    page = (ROOT / "docs/reference/logs.md").read_text(encoding="utf-8")
    source = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "src").rglob("*.py"))
    plain = set(re.findall(r"""["']action["']:\s*"([a-z_]+)\"""", source))
    made = [
        re.sub(r"\{[^}]+\}", r"\\w+", one) for one in re.findall(r"""["']action["']:\s*f"([^"]+)\"""", source)
    ]
    assert len(re.findall(r"""["']action["']:""", source)) == len(
        re.findall(r"""["']action["']:\s*f?"[a-z_{}.]+\"""", source)
    )
    listed = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert sorted(plain - listed) == []
    assert [one for one in made if not any(re.fullmatch(one, row) for row in listed)] == []
    others = listed - plain
    assert sorted(row for row in others if not any(re.fullmatch(one, row) for one in made)) == []
