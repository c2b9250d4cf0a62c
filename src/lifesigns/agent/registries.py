"""Registries: a user's own list of agents, from which a monitor removes the dead."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any

from lifesigns.errors import UsageError


def remover(registry: Any) -> Callable[[str], Any]:
    """The function that removes an agent from a registry by its name."""
    if isinstance(registry, MutableMapping):
        return lambda name: registry.pop(name, None)
    for method in ("remove", "unregister", "unregister_agent"):
        if callable(found := getattr(registry, method, None)) and not isinstance(registry, list | set):
            return found  # type: ignore[no-any-return]
    raise UsageError(
        f"a registry is a mapping, or has remove(name) or unregister(name); {registry!r} has neither"
    )
