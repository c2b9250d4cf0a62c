"""The tree holds files, not links: one to a folder of its author's machine would break every fresh clone."""

import subprocess

from tests.tidy.source import ROOT


def test_no_symbolic_link_is_committed() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--stage"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert listed
    assert [line.split("\t")[1] for line in listed if line.startswith("120000")] == []
