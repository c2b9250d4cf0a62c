"""Reading our pages: which there are, and the code blocks in them.

```python         is run, together with all others of its page, from top to bottom
```python other   needs something that is not installed here; what it shows is run elsewhere
```text           directly after it is exactly what it prints
```yaml           is a lifesigns.yaml that loads; ```yaml wrong is one that must be refused, and
                  ```yaml other is no lifesigns.yaml
```sh, console    commands; tests/tidy/test_docs_keep_their_word.py looks whether they exist
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from lifesigns.config.load import load
from lifesigns.errors import PolicyError

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]

FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shown(path: Path) -> str:
    """A page's name, as tests and messages say it."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


class Block(NamedTuple):
    """A fenced block: what it says it is, where its first line is, and whether a block came right before."""

    info: str
    line: int
    text: str
    follows: bool


def blocks(page: str) -> Iterator[Block]:
    end = 0
    for fence in FENCE.finditer(page):
        line = page.count("\n", 0, fence.start(2)) + 1
        follows = end > 0 and not page[end : fence.start()].strip()
        yield Block(fence[1].strip(), line, fence[2], follows)
        end = fence.end()


def run(path: Path) -> list[str]:
    """Run all Python of a page in one namespace; what differs from what the page says."""
    wrong: list[str] = []
    namespace: dict[str, Any] = {"__name__": "page"}
    printed: str | None = None
    for block in blocks(path.read_text(encoding="utf-8")):
        place = f"{shown(path)}:{block.line}"
        if block.info == "python":
            printed = _output(block, path, namespace)
        elif block.info == "text" and block.follows and printed is not None:
            if block.text != printed:
                wrong.append(f"{place}: the block above prints\n{printed}")
            printed = None
        else:
            printed = None
    return wrong


def _output(block: Block, path: Path, namespace: dict[str, Any]) -> str:
    """Empty lines before the code make a traceback point at the line of the page."""
    code = compile("\n" * (block.line - 1) + block.text, str(path), "exec")
    with redirect_stdout(io.StringIO()) as out:
        exec(code, namespace)
    return out.getvalue()


def load_yaml(path: Path, folder: Path) -> list[str]:
    """Load every lifesigns.yaml of a page; what is wrong with those that should be right, and the other way."""
    wrong: list[str] = []
    file = folder / "lifesigns.yaml"
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.info not in ("yaml", "yaml wrong"):
            continue
        file.write_text(block.text, encoding="utf-8")
        try:
            load(file, environ={})
        except PolicyError as error:
            if block.info == "yaml":
                wrong.append(f"{shown(path)}:{block.line}: {error}")
        else:
            if block.info == "yaml wrong":
                wrong.append(f"{shown(path)}:{block.line}: nothing is wrong with this")
    return wrong
