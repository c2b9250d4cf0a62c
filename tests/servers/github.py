"""A small GitHub: issues with labels, assignees, comments and events, its limits, and what goes wrong with it.

It keeps state, counts what is asked and changed, and enforces the limits it announces. Its answers have every field that GitHub's
own description of the API requires, so that a validating proxy can stand before it (`tests/integrations`).
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

JSON = dict[str, Any]
TOKEN = "ghp_of-the-tests"


@dataclass
class Fault:
    """What happens to one request instead. `after`: it is carried out, and then this is answered; `hang_up`: nothing is."""

    status: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    body: object = field(default_factory=lambda: {"message": "Server Error"})
    after: bool = False
    hang_up: bool = False
    wait: float = 0.0


@dataclass
class Call:
    """A request as it came."""

    method: str
    path: str
    at: float
    status: int = 0
    body: Any = None


class FakeGitHub:
    """`with FakeGitHub() as github: ... github.url`. Its clock is `now`."""

    def __init__(self, now: Callable[[], float] = time.time, *, per_minute: int | None = None) -> None:
        self.now = now
        self.per_minute = per_minute
        """Comments a minute, after which it limits."""
        self.remaining = 5000
        self.reset_at = 0.0
        self.issues: dict[tuple[str, int], JSON] = {}
        self.comments: dict[tuple[str, int], list[JSON]] = {}
        self.events: dict[tuple[str, int], list[JSON]] = {}
        self.calls: list[Call] = []
        self.faults: deque[tuple[str, str, Fault]] = deque()
        """Method and pattern of the path of the next request that is to go wrong; in this order."""
        self.before: Callable[[str, str], None] = lambda _method, _path: None
        """Called before each request is carried out: for races."""
        self.limited = 0
        """How often somebody was over its limit."""
        self.members: set[str] = {"monitor-bot"}
        self.login = "monitor-bot"
        self._ids = 1000
        self._lock = threading.RLock()
        self._posted: deque[float] = deque()

    # --- what people and workers do ---------------------------------------------------------------------

    def open_issue(self, repo: str, number: int, *labels: str, title: str = "A task") -> None:
        with self._lock:
            self.issues[repo, number] = self._issue(repo, number, title)
            self.comments[repo, number], self.events[repo, number] = [], []
            for label in labels:
                self.label(repo, number, label)

    def claim(self, repo: str, number: int, login: str, label: str = "status:in-progress") -> None:
        """As a worker claims an issue: assigned, labelled, out of the queue."""
        with self._lock:
            if (repo, number) not in self.issues:
                self.open_issue(repo, number)
            self.assign(repo, number, login)
            self.label(repo, number, label, by=login)
            self.unlabel(repo, number, "status:queued", by=login)

    def assign(self, repo: str, number: int, login: str, by: str | None = None) -> None:
        with self._lock:
            issue = self.issues[repo, number]
            if login not in [one["login"] for one in issue["assignees"]]:
                issue["assignees"].append(self._user(login))
                self._event(repo, number, "assigned", by or login, assignee=self._user(login))
            issue["assignee"] = issue["assignees"][0]

    def label(self, repo: str, number: int, name: str, by: str = "maintainer") -> None:
        with self._lock:
            issue = self.issues[repo, number]
            if name not in self.labels(repo, number):
                issue["labels"].append(self._label(name))
                self._event(repo, number, "labeled", by, label={"name": name, "color": "ededed"})

    def unlabel(self, repo: str, number: int, name: str, by: str = "maintainer") -> None:
        with self._lock:
            issue = self.issues[repo, number]
            if name in self.labels(repo, number):
                issue["labels"] = [one for one in issue["labels"] if one["name"] != name]
                self._event(repo, number, "unlabeled", by, label={"name": name, "color": "ededed"})

    def say(self, repo: str, number: int, login: str, body: str) -> JSON:
        with self._lock:
            comment = self._comment(repo, number, login, body)
            self.comments[repo, number].append(comment)
            self._touch(repo, number)
            return comment

    def labels(self, repo: str, number: int) -> list[str]:
        return [one["name"] for one in self.issues[repo, number]["labels"]]

    def assignees(self, repo: str, number: int) -> list[str]:
        return [one["login"] for one in self.issues[repo, number]["assignees"]]

    def said(self, repo: str, number: int, mark: str = "") -> list[str]:
        return [one["body"] for one in self.comments[repo, number] if mark in one["body"]]

    def written(self) -> list[Call]:
        """Comments that were written or edited."""
        return [
            call
            for call in self.calls
            if call.method in ("POST", "PATCH") and "/comments" in call.path and call.status < 300
        ]

    def fail(self, method: str, path: str, fault: Fault) -> None:
        self.faults.append((method, path, fault))

    # --- requests ---------------------------------------------------------------------------------------

    def take(
        self, method: str, target: str, headers: Any, body: Any
    ) -> tuple[int, dict[str, str], Any, Fault | None]:
        path, query = urlsplit(target).path.removeprefix("/api/v3"), parse_qs(urlsplit(target).query)
        self.before(method, path)
        with self._lock:
            call = Call(method, path, self.now(), body=body)
            self.calls.append(call)
            fault = self._next_fault(method, path)
            if fault is not None and not fault.after:
                call.status = fault.status
                return fault.status, fault.headers, fault.body, fault
            call.status, more, answer = self._limits(method, path) or self._route(
                method, path, query, headers, body
            )
            if fault is not None:
                return fault.status, fault.headers, fault.body, fault
            return call.status, {**self._rates(), **more}, answer, None

    def _next_fault(self, method: str, path: str) -> Fault | None:
        if self.faults and self.faults[0][0] == method and re.search(self.faults[0][1], path):
            return self.faults.popleft()[2]
        return None

    def _limits(self, method: str, path: str) -> tuple[int, dict[str, str], Any] | None:
        now = self.now()
        if self.remaining <= 0 and now < self.reset_at:
            self.limited += 1
            return 403, {}, {"message": "API rate limit exceeded"}
        if self.remaining <= 0:
            self.remaining = 5000
        self.remaining -= 1
        if self.per_minute is not None and method in ("POST", "PATCH") and "/comments" in path:
            while self._posted and now - self._posted[0] >= 60.0:
                self._posted.popleft()
            if len(self._posted) >= self.per_minute:
                self.limited += 1
                return 403, {"Retry-After": "60"}, {"message": "You have exceeded a secondary rate limit."}
            self._posted.append(now)
        return None

    def _rates(self) -> dict[str, str]:
        reset_at = self.reset_at or self.now() + 3600
        return {
            "X-RateLimit-Limit": "5000",
            "X-RateLimit-Remaining": str(max(0, self.remaining)),
            "X-RateLimit-Reset": str(int(reset_at)),
        }

    def _route(
        self, method: str, path: str, query: dict[str, list[str]], headers: Any, body: Any
    ) -> tuple[int, dict[str, str], Any]:
        if headers.get("authorization") != f"Bearer {TOKEN}":
            return (
                401,
                {},
                {"message": "Bad credentials", "documentation_url": "https://docs.github.com/rest"},
            )
        lost: tuple[int, dict[str, str], Any] = (
            404,
            {},
            {"message": "Not Found", "documentation_url": "https://docs.github.com/rest"},
        )
        found = re.fullmatch(r"/repos/([^/]+/[^/]+)/issues(?:/(comments/)?(\d+)(/.*)?)?", path)
        if found is None:
            return lost
        repo, is_comment, number, rest = found[1], found[2], found[3], found[4] or ""
        if number is None:
            return self._list(repo, query, headers)
        if is_comment:
            return self._of_comment(method, repo, int(number), body) or lost
        if (repo, int(number)) not in self.issues:
            return lost
        return self._of_issue(method, repo, int(number), unquote(rest), query, body) or lost

    def _list(self, repo: str, query: dict[str, list[str]], headers: Any) -> tuple[int, dict[str, str], Any]:
        wanted = set(query.get("labels", [""])[0].split(",")) - {""}
        found = [
            issue
            for (where, number), issue in self.issues.items()
            if where == repo and issue["state"] == "open" and wanted <= set(self.labels(where, number))
        ]
        page = self._page(found, query)
        etag = f'W/"{hash(json.dumps(page, sort_keys=True)) & 0xFFFFFFFF:x}"'
        if headers.get("if-none-match") == etag:
            self.remaining += 1  # It costs nothing.
            return 304, {"ETag": etag}, None
        return 200, {"ETag": etag}, page

    def _of_comment(
        self, method: str, repo: str, comment_id: int, body: Any
    ) -> tuple[int, dict[str, str], Any] | None:
        for (where, number), said in self.comments.items():
            comment = next((one for one in said if one["id"] == comment_id), None)
            if where != repo or comment is None:
                continue
            if method == "PATCH":
                comment.update(body=body["body"], updated_at=self._stamp())
                return 200, {}, comment
            if method == "DELETE":
                said.remove(comment)
                self._touch(repo, number)
                return 204, {}, None
        return None

    def _of_issue(
        self, method: str, repo: str, number: int, rest: str, query: dict[str, list[str]], body: Any
    ) -> tuple[int, dict[str, str], Any] | None:
        issue = self.issues[repo, number]
        if (method, rest) == ("GET", ""):
            return 200, {}, issue
        if (method, rest) == ("GET", "/events"):
            return 200, {}, self._page(self.events[repo, number], query)
        if (method, rest) == ("GET", "/comments"):
            since = query.get("since", [""])[0]
            said = [one for one in self.comments[repo, number] if one["updated_at"] >= since]
            return 200, {}, self._page(said, query)
        if (method, rest) == ("POST", "/comments"):
            comment = self.say(repo, number, self.login, body["body"])
            return 201, {"Location": comment["url"]}, comment
        if (method, rest) == ("POST", "/labels"):
            for name in body["labels"]:
                self.label(repo, number, name, by=self.login)
            return 200, {}, issue["labels"]
        if (method, rest) == ("DELETE", "/assignees"):
            for login in body["assignees"]:
                if login in self.assignees(repo, number):
                    issue["assignees"] = [one for one in issue["assignees"] if one["login"] != login]
                    self._event(repo, number, "unassigned", self.login, assignee=self._user(login))
            issue["assignee"] = issue["assignees"][0] if issue["assignees"] else None
            return 200, {}, issue
        if method == "DELETE" and rest.startswith("/labels/"):
            name = rest.removeprefix("/labels/")
            if name not in self.labels(repo, number):
                return (
                    404,
                    {},
                    {"message": "Label does not exist", "documentation_url": "https://docs.github.com"},
                )
            self.unlabel(repo, number, name, by=self.login)
            return 200, {}, issue["labels"]
        return None

    def _page(self, found: list[JSON], query: dict[str, list[str]]) -> list[JSON]:
        size, number = int(query.get("per_page", ["30"])[0]), int(query.get("page", ["1"])[0])
        return found[(number - 1) * size : number * size]

    # --- values -----------------------------------------------------------------------------------------

    def _next_id(self) -> int:
        self._ids += 1
        return self._ids

    def _stamp(self) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.now()))

    def _touch(self, repo: str, number: int) -> None:
        # GitHub's own has seconds only; here two changes within one are told apart by the number of a comment or event.
        self.issues[repo, number]["updated_at"] = self._stamp()
        self.issues[repo, number]["comments"] = len(self.comments[repo, number])

    def _user(self, login: str) -> JSON:
        api, site = f"https://api.github.com/users/{login}", f"https://github.com/{login}"
        ends = "followers subscriptions repos received_events organizations".split()
        return {
            "login": login,
            "id": sum(map(ord, login)),
            "node_id": "MDQ6VXNlcjE=",
            "avatar_url": f"{site}.png",
            "gravatar_id": "",
            "url": api,
            "html_url": site,
            "following_url": f"{api}/following{{/other_user}}",
            "gists_url": f"{api}/gists{{/gist_id}}",
            "starred_url": f"{api}/starred{{/owner}}{{/repo}}",
            "events_url": f"{api}/events{{/privacy}}",
            "type": "User",
            "site_admin": False,
            **{f"{'organizations' if end == 'organizations' else end}_url": f"{api}/{end}" for end in ends},
        }

    def _label(self, name: str) -> JSON:
        url = f"https://api.github.com/labels/{name}"
        return {
            "id": sum(map(ord, name)),
            "node_id": "LA_1",
            "url": url,
            "name": name,
            "color": "ededed",
            "default": False,
            "description": None,
        }

    def _issue(self, repo: str, number: int, title: str) -> JSON:
        url = f"https://api.github.com/repos/{repo}/issues/{number}"
        return {
            "id": self._next_id(),
            "node_id": "I_1",
            "url": url,
            "repository_url": f"https://api.github.com/repos/{repo}",
            "labels_url": f"{url}/labels{{/name}}",
            "comments_url": f"{url}/comments",
            "events_url": f"{url}/events",
            "html_url": f"https://github.com/{repo}/issues/{number}",
            "number": number,
            "title": title,
            "user": self._user("maintainer"),
            "labels": [],
            "state": "open",
            "locked": False,
            "assignee": None,
            "assignees": [],
            "milestone": None,
            "comments": 0,
            "created_at": self._stamp(),
            "updated_at": self._stamp(),
            "closed_at": None,
            "author_association": "OWNER",
            "body": "Do this.",
        }

    def _comment(self, repo: str, number: int, login: str, body: str) -> JSON:
        comment_id = self._next_id()
        api = f"https://api.github.com/repos/{repo}/issues"
        return {
            "id": comment_id,
            "node_id": "IC_1",
            "url": f"{api}/comments/{comment_id}",
            "html_url": f"https://github.com/{repo}/issues/{number}#issuecomment-{comment_id}",
            "issue_url": f"{api}/{number}",
            "body": body,
            "user": self._user(login),
            "created_at": self._stamp(),
            "updated_at": self._stamp(),
            "author_association": "MEMBER" if login in self.members else "NONE",
        }

    def _event(self, repo: str, number: int, kind: str, actor: str, **more: Any) -> None:
        event_id = self._next_id()
        self.events[repo, number].append(
            {
                "id": event_id,
                "node_id": "EV_1",
                "url": f"https://api.github.com/repos/{repo}/issues/events/{event_id}",
                "actor": self._user(actor),
                "event": kind,
                "commit_id": None,
                "commit_url": None,
                "created_at": self._stamp(),
                "performed_via_github_app": None,
                **({"assigner": self._user(actor)} if "assignee" in more else {}),
                **more,
            }
        )
        self._touch(repo, number)

    # --- the server -------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1
            disable_nagle_algorithm = True

            def log_message(self, *_: object) -> None:
                pass

            def _go(self) -> None:
                raw = self.rfile.read(int(self.headers.get("content-length") or 0))
                status, headers, answer, fault = fake.take(
                    self.command, self.path, self.headers, json.loads(raw) if raw.strip() else None
                )
                if fault is not None:
                    time.sleep(fault.wait)
                    if fault.hang_up:
                        self.close_connection = True
                        return
                data = b"" if answer is None else json.dumps(answer).encode()
                self.send_response_only(status)
                for name, value in {
                    "Date": formatdate(fake.now(), usegmt=True),
                    **({"Content-Type": "application/json; charset=utf-8"} if data else {}),
                    **headers,
                    **({} if status in (204, 304) else {"Content-Length": str(len(data))}),
                }.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)
                self.wfile.flush()

            do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = _go  # noqa: N815 -- the library calls them so

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
