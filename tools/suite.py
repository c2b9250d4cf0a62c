"""`python -m tools.suite [WORKERS]`: all tests, six at a time; what failed among a few is looked at once more, alone.

Thousands of tests start real processes and wait for them on however many processors there are. A test that fails beside
five others and passes alone is a flake: it does not fail the suite, but it is named at the end, and is to be mended. A test
that fails twice fails the suite, and so do many that fail at once.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

WORKERS: Final = "6"
FEW: Final = 5
"""More failures than this are no accident."""
TESTS_FAILED: Final = 1
"""pytest's exit status; all others mean that it did not run to its end."""
FAILED: Final = Path(".pytest_cache/v/cache/lastfailed")


def main(workers: str = WORKERS) -> int:
    """Run all; the exit status."""
    FAILED.unlink(missing_ok=True)
    status = _pytest("-n", workers, "--dist", "worksteal")
    failed = sorted(json.loads(FAILED.read_text())) if status == TESTS_FAILED and FAILED.exists() else []
    if not 0 < len(failed) <= FEW:
        return status
    print(f"\n{len(failed)} failed beside others; once more, alone:", flush=True)
    status = _pytest(*failed)
    if status == 0:
        print("FLAKY, to be mended: failed beside others, passed alone:", *failed, sep="\n  ", flush=True)
    return status


def _pytest(*args: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *args], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
