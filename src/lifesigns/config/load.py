"""Find the file, read it with the environment and the flags, and make one configuration of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from lifesigns.config import document, outside, schema, tree
from lifesigns.config.assemble import assemble
from lifesigns.config.errors import ConfigError, ConfigErrors, ErrorCollector
from lifesigns.config.values import Config

FILE_NAME: Final = "lifesigns.yaml"
SCHEMA: Final = schema.file_schema(tree.tree_schema())


def find(environ: Mapping[str, str], cwd: Path) -> Path | None:
    """The file to read: `LIFESIGNS_CONFIG`, `./lifesigns.yaml`, or the one in the user's config folder."""
    if named := environ.get("LIFESIGNS_CONFIG"):
        return Path(named)
    candidates = [cwd / FILE_NAME]
    home = environ.get("HOME") or environ.get("USERPROFILE")
    if folder := environ.get("XDG_CONFIG_HOME") or (home and f"{home}/.config"):
        candidates.append(Path(folder) / "lifesigns" / FILE_NAME)
    return next((path for path in candidates if path.is_file()), None)


def load(
    path: Path | None = None,
    *,
    environ: Mapping[str, str],
    flags: Mapping[str, object] | None = None,
) -> Config:
    """The configuration from a file (or the one `find` finds), then the environment, then flags.

    Raises `ConfigErrors`, which is a `PolicyError`, with everything that is wrong.
    """
    file = path or find(environ, Path.cwd())
    content = _content(file, named_by="" if path else "LIFESIGNS_CONFIG", environ=environ)
    complaints = ErrorCollector()
    settings = {
        setting.path: setting
        for setting in (
            *schema.read(SCHEMA, content, complaints),
            *outside.environment(environ, complaints),
            *outside.flags(flags or {}, complaints),
        )
    }
    in_file = content.value if isinstance(content.value, dict) else {}
    return replace(assemble(settings, in_file, complaints), path=file)


def defaults() -> Config:
    """The configuration of somebody who has configured nothing."""
    return assemble({}, {}, ErrorCollector())


def _content(file: Path | None, named_by: str, environ: Mapping[str, str]) -> document.Document:
    if file is None:
        return document.EMPTY
    if not file.exists():
        key = named_by if named_by in environ else str(file)
        detail = f"{file} does not exist" if key == named_by else "does not exist"
        raise ConfigErrors([ConfigError(key, detail)])
    from lifesigns.config import (
        yaml_file,
    )  # Who has no file, as every agent that looks for its hub, needs no YAML.

    return yaml_file.read(file)
