"""What we use of drivers that they do not promise. Their versions are bounded above; a new one that fails here says what to mend."""

import inspect
import re
import tomllib
from pathlib import Path

import pytest
from nats.aio import client as nats_client
from nats.aio import transport as nats_transport
from redis.asyncio.connection import AbstractConnection
from uvicorn.protocols.http import httptools_impl

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("owner", "name", "parameters"),
    [
        (nats_client.Client, "_process_msg", ["self", "sid", "subject", "reply", "data", "headers"]),
        (nats_client.Client, "_close", ["self", "status", "do_cbs"]),
        (nats_client.Client, "_connect_command", ["self"]),
        (httptools_impl.HttpToolsProtocol, "_start_asgi_task", None),
        (httptools_impl.HttpToolsProtocol, "on_response_complete", ["self"]),
        (httptools_impl.RequestResponseCycle, "send", ["self", "message"]),
    ],
)
def test_what_we_override_or_call_is_as_it_was(owner: type, name: str, parameters: list[str] | None) -> None:
    method = getattr(owner, name)
    if parameters is not None:
        assert list(inspect.signature(method).parameters) == parameters


@pytest.mark.parametrize(
    ("source", "attribute"),
    [
        (nats_client, "self._subs"),
        (nats_client, "self._transport"),
        (nats_client, "self._current_server"),
        (nats_client, "self._server_info"),
        (nats_transport, "self._io_writer"),
        (inspect.getmodule(AbstractConnection), "self._writer"),
    ],
)
def test_what_we_read_is_still_kept_there(source: object, attribute: str) -> None:
    assert re.search(rf"{re.escape(attribute)}\b", inspect.getsource(source))  # type: ignore[arg-type]


def test_what_we_take_from_the_parser_is_there() -> None:
    assert httptools_impl.STATUS_LINE[200].startswith(b"HTTP/1.1 200")
    assert httptools_impl.HEADER_VALUE_RE.search(b"a\nb")


@pytest.mark.parametrize("driver", ["uvicorn", "nats-py", "redis"])
def test_a_driver_whose_internals_we_use_is_bounded_above(driver: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = [
        *project["dependencies"],
        *(pin for extra in project["optional-dependencies"].values() for pin in extra),
    ]
    (pin,) = (pin for pin in pins if re.match(rf"{driver}\b", pin))
    assert ",<" in pin
