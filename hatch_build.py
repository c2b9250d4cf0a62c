"""What hatch does before it packs: builds the dashboard, if it is missing or out of date and Node can be had.

Never for an editable install: there `make dashboard` builds it. Where it cannot be built it says so and packs without it:
the hub works all the same, and its page says how to get a dashboard.
"""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class DashboardHook(BuildHookInterface[Any]):
    """Called by hatch."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        tool = _tool(Path(self.root))
        try:
            tool.build()
        except (tool.CannotBuild, OSError) as error:
            outcome = "an older one is packed" if tool.is_built() else "packed WITHOUT a dashboard"
            self.app.display_warning(f"lifesigns: {outcome}: {error}")


def _tool(root: Path) -> Any:
    """`tools/dashboard.py`: while hatch builds, the checkout is no place to import from."""
    spec = spec_from_file_location("lifesigns_tools_dashboard", root / "tools" / "dashboard.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
