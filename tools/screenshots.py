"""`python -m tools.screenshots`: the pictures in docs/images, taken anew from the demo's fleet (`make screenshots`).

The demo runs as a user starts it. Each view is shown when there is something to see in it: the grid while somebody needs a
person, the freeze while it stands, what happened at the end. Light and dark; and the grid on a phone.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from playwright.sync_api import Page, sync_playwright

from tools import chromium

ROOT: Final = Path(__file__).resolve().parents[1]
IMAGES: Final = ROOT / "docs" / "images"
WIDE: Final = (1280, 800)
PHONE: Final = (390, 844)
SIZE_MAX: Final = 150_000
WITHIN: Final = 180.0
SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")


def main() -> None:
    """Take them all."""
    found = chromium.find()
    if found is None:
        sys.exit(f"there is no Chromium ({chromium.HOW})")
    IMAGES.mkdir(parents=True, exist_ok=True)
    with _demo() as link, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found.path, args=list(chromium.FLAGS), env={**os.environ, **found.env}
        )
        page = browser.new_page()
        _size(page, WIDE)
        page.goto(link)
        page.get_by_role("button", name="Sign in").click()
        _take_all(page)
        browser.close()
    _make_smaller()


def _take_all(page: Page) -> None:
    _until(page, "document.querySelector('[data-need=escalated]')", "an escalation")
    _take(page, "agents")
    _go(page, "#/agents/indexer")
    _take(page, "agent", (1280, 1500))
    _go(page, "#/")
    _size(page, PHONE)
    _take(page, "phone", PHONE)
    _size(page, WIDE)
    _go(page, "#/breakers")
    _until(page, "document.querySelector('[data-breaker]')", "a breaker")
    _take(page, "breakers")
    _go(page, "#/recovery")
    _until(page, "document.querySelectorAll('.steps tbody tr').length > 3", "two recoveries")
    _take(page, "recovery")
    _go(page, "#/alerts")
    _take(page, "alerts")
    _go(page, "#/audit")
    _until(page, "document.querySelector('[data-seal=well]')", "a sealed log")
    _take(page, "audit")


@contextmanager
def _demo() -> Iterator[str]:
    """Start the demo; yields its link."""
    command = (
        sys.executable,
        "-m",
        "lifesigns",
        "demo",
        "--no-screen",
        "--port",
        "0",
        "--for",
        f"{WITHIN:g}s",
    )
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    with process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if found := re.search(r"http\S+/sign-in\S+", line):
                    yield found[0]
                    break
            else:
                sys.exit("the demo gave no link; is the dashboard built (make dashboard)?")
        finally:
            process.terminate()


# --- one picture --------------------------------------------------------------------------------------


def _take(page: Page, name: str, size: tuple[int, int] = WIDE) -> None:
    """Take it in light and dark."""
    _size(page, size)
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(300)  # Charts redraw.
        (IMAGES / f"{name}-{scheme}.png").write_bytes(page.screenshot())


def _make_smaller() -> None:
    """Shrink them after the demo: it takes a while, and the fleet would not wait."""
    for file in sorted(IMAGES.glob("*.png")):
        before = file.read_bytes()
        if not is_small(before):
            file.write_bytes(smaller(before))
        size = file.stat().st_size
        print(
            f"{file.relative_to(ROOT)}  {size:,} bytes{'  TOO LARGE' if size > SIZE_MAX else ''}", flush=True
        )


def _go(page: Page, route: str) -> None:
    page.evaluate("route => { location.hash = route; }", route)
    page.wait_for_timeout(1500)  # Until its data is there, and its charts have a beat or two.


def _size(page: Page, size: tuple[int, int]) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})


def _until(page: Page, condition: str, what: str) -> None:
    print(f"waits for {what}", flush=True)
    page.wait_for_function(f"() => {condition}", timeout=WITHIN * 1000)


# --- smaller ------------------------------------------------------------------------------------------


def is_small(png: bytes) -> bool:
    """Whether it has a palette already."""
    return png[25] == 3


def smaller(png: bytes) -> bytes:
    """The same picture with a palette of 256 colours: the most frequent ones, and the nearest of these for all others."""
    width, height, pixels = _decoded(png)
    counts = Counter(pixels)
    palette = [colour for colour, _ in counts.most_common(256)]
    index = {colour: n for n, colour in enumerate(palette)}
    for colour in counts:
        if colour not in index:
            index[colour] = min(range(len(palette)), key=lambda n: _distance(palette[n], colour))
    rows = (pixels[at : at + width] for at in range(0, width * height, width))
    lines = b"".join(b"\0" + bytes(index[colour] for colour in row) for row in rows)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    colours = b"".join(bytes(colour) for colour in palette)
    chunks = ((b"IHDR", header), (b"PLTE", colours), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _distance(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _decoded(png: bytes) -> tuple[int, int, list[tuple[int, ...]]]:
    """Width, height and pixels of Chromium's format: eight bits, red, green and blue, perhaps with an alpha."""
    place, data, width, height, depth = 8, b"", 0, 0, 3
    while place < len(png):
        length, kind = struct.unpack(">I4s", png[place : place + 8])
        body = png[place + 8 : place + 8 + length]
        if kind == b"IHDR":
            width, height, _, colour = struct.unpack(">IIBB", body[:10])
            depth = 4 if colour == 6 else 3
        elif kind == b"IDAT":
            data += body
        place += 12 + length
    raw, stride, before = zlib.decompress(data), width * depth, bytes(width * depth)
    pixels: list[tuple[int, ...]] = []
    for row in range(height):
        start = row * (stride + 1)
        line = _unfiltered(raw[start], bytearray(raw[start + 1 : start + 1 + stride]), before, depth)
        pixels += zip(line[0::depth], line[1::depth], line[2::depth], strict=True)
        before = bytes(line)
    return width, height, pixels


def _unfiltered(how: int, line: bytearray, above: bytes, depth: int) -> bytearray:
    for n in range(len(line)):
        left = line[n - depth] if n >= depth else 0
        corner = above[n - depth] if n >= depth else 0
        guess = (0, left, above[n], (left + above[n]) // 2, _paeth(left, above[n], corner))[how]
        line[n] = (line[n] + guess) & 0xFF
    return line


def _paeth(left: int, above: int, corner: int) -> int:
    guess = left + above - corner
    return min((left, above, corner), key=lambda one: abs(guess - one))


if __name__ == "__main__":
    main()
