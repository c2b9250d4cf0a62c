"""Two hubs on one PostgreSQL, as their user starts them: the first judges, the second stands by and forwards."""

from __future__ import annotations

import http.client
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.journeys.outside import Hub, Json, Refused, serving
from tests.servers.postgres import PostgresServer


def readiness(hub: Hub) -> str:
    """`ok` of one that judges, `standby` of one that stands by and reaches it; empty of one that is not ready."""
    try:
        return str(hub.get("/readyz")["status"])
    except (Refused, OSError, http.client.HTTPException):
        return ""


@contextmanager
def hub_pair(folder: Path, config: Json | None = None) -> Iterator[tuple[Hub, Hub]]:
    """The one that judges, and the one that stands by."""
    with PostgresServer() as server:
        for name in ("first", "second"):
            (folder / name / "state").mkdir(parents=True)
        env = {"LIFESIGNS_STORE": server.url}
        with serving(folder / "first", config, env=env) as first:
            # Hubs on one store know each other's tokens by the key that they share.
            for key in ("tokens.key", "audit.key"):
                shutil.copy(folder / "first" / "state" / key, folder / "second" / "state")
            second = Hub(folder / "second", config, env=env)
            try:
                second.launch()
                first.until(lambda: readiness(second) == "standby", "the second hub stands by and is ready")
                first.until(lambda: len(first.get("/api/v1/hubs")["hubs"]) == 2, "the first one has seen it")
                yield first, second
            finally:
                second.end()


class Line:
    """One connection to a hub that stays open."""

    def __init__(self, hub: Hub, timeout: float = 30.0) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=timeout)
        self._answer: http.client.HTTPResponse | None = None
        """The last one: of a connection that the hub ends, nobody else closes it."""
        self._headers = {"Authorization": f"Bearer {hub.token}", "Content-Type": "application/json"}

    def ask(self, method: str, path: str, body: Json = None, **headers: str) -> tuple[int, Json]:
        """The status and the body; raises `OSError` or `HTTPException` if there is none."""
        data = None if body is None else json.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request(method, path, data, {**self._headers, **named})
        answer = self._answer = self._connection.getresponse()
        content = answer.read()
        return answer.status, json.loads(content) if content else None

    def listen(self, path: str, **headers: str) -> Iterator[str]:
        """The lines of a stream, until it ends or is cut off."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request("GET", path, None, {**self._headers, **named})
        answer = self._answer = self._connection.getresponse()
        if answer.status != 200:
            raise Refused(answer.status, answer.read().decode())
        while line := answer.readline():
            yield line.decode().rstrip("\n")

    def close(self) -> None:
        if self._answer is not None:
            self._answer.close()
        self._connection.close()
