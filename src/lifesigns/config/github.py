"""`github:` the repositories whose locks the hub watches, who its workers are there, and how much it writes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final
from urllib.parse import urlsplit

from msgspec import field

from lifesigns.config import readers
from lifesigns.config.readers import secret
from lifesigns.config.schema import Schema, Section, entry
from lifesigns.config.secretive import Secretive

API: Final = "https://api.github.com"
LOCAL: Final = ("127.0.0.1", "localhost", "::1")


def repos(value: object) -> tuple[str, ...]:
    """Repositories, as `org/name`; a single one is a list, too."""
    named = readers.words(value)
    for name in named:
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}", name):
            raise ValueError(f"has {readers.shown(name)}, but needs repositories such as org/name")
    return named


def workers(value: object) -> dict[str, tuple[str, ...]]:
    """Accounts and the agents behind each: `acme-bot: worker-*`. An account alone is an agent of the same name."""
    if isinstance(value, Mapping):
        made = {str(login): readers.words(agents) for login, agents in value.items()}
    else:
        made = {login: (login,) for login in readers.words(value)}
    for login in made:
        if not login.strip("*?"):
            raise ValueError(
                f"has {readers.shown(login)}, which is everybody: people would lose their issues"
            )
    return made


def api(value: object) -> str:
    """GitHub's address, or an Enterprise server's: `https://host/api/v3`."""
    address = readers.url(value)
    parts = urlsplit(address)
    if parts.scheme != "https" and parts.hostname not in LOCAL:
        raise ValueError("needs https: everybody on the way could read the token")
    return address.rstrip("/")


every = readers.within(readers.seconds, lambda s: 1 <= s <= 86400, "from a second to a day")
per_minute = readers.within(readers.whole, lambda number: 5 <= number <= 80, "a number from 5 to 80")
per_hour = readers.within(readers.whole, lambda number: 5 <= number <= 500, "a number from 5 to 500")


class GitHubSettings(Secretive, frozen=True):
    """Where the locks are. Without repositories nothing is watched."""

    secrets: ClassVar[tuple[str, ...]] = ("token",)

    repos: Annotated[tuple[str, ...], repos] = ()
    token: Annotated[str | None, secret] = None
    """None: what `gh auth token` says."""
    api: Annotated[str, api] = API
    workers: Annotated[Mapping[str, tuple[str, ...]], workers] = field(default_factory=dict)
    claimed: Annotated[str, readers.text] = "status:in-progress"
    queued: Annotated[str, readers.text] = "status:queued"
    look_every: Annotated[float, every] = 60.0
    release: bool = True
    """Release stale locks; without it they are only commented on."""
    comments: bool = True
    comment_every: Annotated[float, every] = 300.0
    comments_per_minute: Annotated[int, per_minute] = 20
    comments_per_hour: Annotated[int, per_hour] = 300
    anonymous: bool = False
    """Comments name workers by a digest: for public repositories."""


def _check(section: Section, made: GitHubSettings, given: Mapping[str, object]) -> None:
    if not made.repos:
        section.add_error("repos", "is missing; it names the repositories, such as org/name")
    if made.claimed.lower() == made.queued.lower():
        section.add_error("queued", "is the same label as claimed")


SECTIONS: Final[Schema] = {"github": entry(GitHubSettings, _check)}
