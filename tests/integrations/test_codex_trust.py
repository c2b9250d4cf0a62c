"""Codex runs only hooks that it trusts: what `lifesigns hooks` has it trust, says of that, and takes back. With the real program."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.integrations.coders import CODEX
from tests.integrations.watched_coder import STARTS_WITHIN, Watched, needs_coders, watched

pytestmark = [
    *needs_coders,
    pytest.mark.skipif(not CODEX.program.exists(), reason="Codex is not installed: make integrations"),
]
ANOTHER = '\n[hooks.state."another"]\ntrusted_hash = "sha256:1"\n'


def said(
    one: Watched, *command: str, path: str = f"{CODEX.program.parent}{os.pathsep}{os.environ['PATH']}"
) -> str:
    done = one.hub.cli(
        "hooks", *command, "codex", within=STARTS_WITHIN, check=False, HOME=str(one.home), PATH=path
    )
    return f"{done.returncode} {done.stdout}{done.stderr}"


def test_trust_that_was_lost_is_seen_and_given_again(tmp_path: Path) -> None:
    with watched(CODEX, tmp_path, {}) as one:
        config = one.home / ".codex/config.toml"
        assert said(one, "status").startswith("0 ")
        config.write_text(config.read_text().replace('hooks.json:stop:0:0"', 'hooks.json:stop:9:9"'))
        status = said(one, "status")
        assert status.startswith("1 ")
        assert "does not trust 1 of 14" in status
        assert "Codex trusts 14 hooks" in said(one, "install")
        assert said(one, "status").startswith("0 ")


def test_uninstalling_takes_the_trust_in_our_hooks_back_and_no_other(tmp_path: Path) -> None:
    with watched(CODEX, tmp_path, {}) as one:
        config = one.home / ".codex/config.toml"
        config.write_text(config.read_text() + ANOTHER)
        assert "hooks.json:pre_tool_use" in config.read_text()
        said(one, "uninstall")
        assert "hooks.json" not in config.read_text()
        assert "another" in config.read_text()
        assert 'model = "scripted"' in config.read_text()
        assert not (one.home / ".codex/hooks.json").exists()


def test_hooks_in_a_folder_that_codex_does_not_trust_promise_nothing(tmp_path: Path) -> None:
    """It does not even see them."""
    with watched(CODEX, tmp_path, {}) as one:
        installed = said(one, "install", "--project")
        assert "does not read the hooks of a folder that it does not trust" in installed
        assert "are agents" not in installed
        assert said(one, "status").startswith("1 ")
        config = one.home / ".codex/config.toml"
        trusted = f'\n[projects."{one.hub.folder}"]\ntrust_level = "trusted"\n'
        config.write_text(config.read_text() + trusted)
        assert "does not trust 14 of 14" in said(one, "status")
        assert "Codex trusts 14 hooks" in said(one, "install", "--project")
        assert said(one, "status").startswith("0 ")


def test_without_codex_the_hooks_go_and_what_stays_is_said(tmp_path: Path) -> None:
    with watched(CODEX, tmp_path, {}) as one:
        assert "is not on the PATH" in said(one, "status", path=os.defpath)
        assert "stays in its config.toml" in said(one, "uninstall", path=os.defpath)
        assert not (one.home / ".codex/hooks.json").exists()
