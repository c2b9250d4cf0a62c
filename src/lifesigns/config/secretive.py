"""Values that may hold secrets, and do not show them when they are printed."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import asdict


class Secretive(Struct, frozen=True):
    """A value some of whose fields are secret. Logs and tracebacks show it by its repr, so that leaves them out."""

    secrets: ClassVar[tuple[str, ...]] = ()

    def shown(self) -> dict[str, Any]:
        """The fields that may be seen."""
        return {name: value for name, value in asdict(self).items() if name not in self.secrets}

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.shown().items())})"
        )
