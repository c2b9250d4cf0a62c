"""Witnesses of the audit log, put together from what is configured."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lifesigns.assembly.channels import secret
from lifesigns.config.values import AuditSettings
from lifesigns.errors import UsageError
from lifesigns.ports import Witness


def witnesses_of(settings: AuditSettings, environ: Mapping[str, str]) -> list[Witness]:
    """Those who keep every checkpoint elsewhere."""
    return [_witness(one, environ) for one in settings.witnesses]


def _witness(said: str, environ: Mapping[str, str]) -> Witness:
    if said.startswith("env:"):
        said = secret(said, "audit.witnesses", environ)
    kind, _, place = said.partition(":")
    if kind == "file" and place:
        from lifesigns.adapters.witness.file import FileWitness

        return FileWitness(Path(place).expanduser().absolute())
    if kind not in ("post", "put"):
        raise UsageError("audit.witnesses: needs file:/path, post:https://host/path or put:https://host/path")
    from lifesigns.adapters.witness.http import HttpWitness

    try:
        return HttpWitness("POST" if kind == "post" else "PUT", place)
    except UsageError as error:
        raise UsageError(f"audit.witnesses: {error}") from error
