"""The pictures in the docs: one of each view in light and dark, small enough for a repository, and true to what was taken."""

from __future__ import annotations

import struct
import zlib

from tools.screenshots import IMAGES, SIZE_MAX, is_small, smaller

VIEWS = ("agents", "agent", "breakers", "recovery", "alerts", "audit", "phone")


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def test_every_view_is_there_in_light_and_dark_and_small() -> None:
    pictures = {f"{view}-{scheme}.png" for view in VIEWS for scheme in ("light", "dark")}
    assert {file.name for file in IMAGES.glob("*.png")} == pictures
    assert {name for name in pictures if (IMAGES / name).stat().st_size > SIZE_MAX} == set()
    assert all(is_small((IMAGES / name).read_bytes()) for name in pictures)


def test_a_smaller_picture_has_the_same_pixels() -> None:
    """Whatever way its lines are written: as they are, or as what differs from the left, from above, or both."""
    red, blue = bytes((200, 0, 0)), bytes((0, 0, 200))
    same, change = bytes(3), bytes((56, 0, 200))  # from red to blue, modulo 256
    lines = (
        b"\0" + red + blue,  # as they are
        b"\1" + red + change,  # from the left
        b"\2" + same + same,  # from above
        b"\3" + bytes((100, 0, 0)) + bytes((156, 0, 100)),  # from the mean of both
        b"\4" + same + same,  # from the nearest of three
    )
    header = struct.pack(">IIBBBBB", 2, len(lines), 8, 2, 0, 0, 0)
    data = zlib.compress(b"".join(lines))
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
    made = smaller(png)
    assert is_small(made)
    assert not is_small(png)
    assert chunk(b"PLTE", red + blue) in made
    assert chunk(b"IDAT", zlib.compress(b"\0\0\1" * len(lines), 9)) in made
