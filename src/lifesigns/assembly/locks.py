"""The watch over locks in GitHub, put together from what is configured."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from lifesigns.assembly.channels import secret
from lifesigns.config.github import GitHubSettings
from lifesigns.hub.locks.rules import LockRules
from lifesigns.ports import IssueTracker


def lock_rules_of(settings: GitHubSettings) -> LockRules:
    """Which repositories are watched, and what is done about their locks."""
    return LockRules(
        settings.repos,
        settings.workers,
        claimed=settings.claimed,
        queued=settings.queued,
        look_every=settings.look_every,
        release=settings.release,
        comments=settings.comments,
        comment_every=settings.comment_every,
        per_minute=settings.comments_per_minute,
        per_hour=settings.comments_per_hour,
        anonymous=settings.anonymous,
    )


def tracker_of(settings: GitHubSettings, environ: Mapping[str, str]) -> IssueTracker | None:
    """The way to GitHub; None if no repository is watched."""
    if not settings.repos:
        return None
    from lifesigns.adapters.issues.gh_login import GhLogin
    from lifesigns.adapters.issues.github import GitHub, fixed_token

    if settings.token is not None:
        return GitHub(fixed_token(secret(settings.token, "github.token", environ)), settings.api)
    host = urlsplit(settings.api).hostname or ""
    return GitHub(GhLogin("github.com" if host == "api.github.com" else host), settings.api)
