from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from lifesigns.config.errors import ConfigError, ConfigErrors
from lifesigns.config.load import load
from lifesigns.config.values import Config

Said = Callable[..., Config]
Complained = Callable[..., list[ConfigError]]


@pytest.fixture
def said(tmp_path: Path) -> Said:
    """The configuration of a file with this text (and environment, and flags)."""

    def load_text(
        text: str = "",
        environ: Mapping[str, str] | None = None,
        flags: Mapping[str, object] | None = None,
    ) -> Config:
        path = tmp_path / "lifesigns.yaml"
        path.write_text(text, encoding="utf-8")
        return load(path, environ=environ or {}, flags=flags or {})

    return load_text


@pytest.fixture
def complained(said: Said) -> Complained:
    """What is wrong with a configuration."""

    def errors_of(*args: object, **named: object) -> list[ConfigError]:
        with pytest.raises(ConfigErrors) as caught:
            said(*args, **named)
        return list(caught.value.errors)

    return errors_of
