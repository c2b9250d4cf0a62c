"""Every key of the configuration changes something: the policy it is a part of, or what is made of the rest of the configuration.

What a key does is shown by the tests of the part that uses it, and by `tests/journeys/test_configuration_holds.py`. Here it is shown
that no key is read, checked, shown, and then lost on the way; and that its value is read where it arrives.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from inspect import getsource
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import asdict

from lifesigns.assembly.ai_maestro import messenger_of, messenger_rules_of
from lifesigns.assembly.channels import channels_of, rules_of
from lifesigns.assembly.executors import assign_executors, contents_in
from lifesigns.assembly.locks import lock_rules_of, tracker_of
from lifesigns.config.channels import TYPES
from lifesigns.config.document import Document
from lifesigns.config.errors import ConfigErrors
from lifesigns.config.executors import EXECUTORS, CommandSettings, TmuxSettings, WebhookSettings
from lifesigns.config.fitting import flat, settable
from lifesigns.config.load import SCHEMA, assemble, defaults
from lifesigns.config.schema import keys, readers_of
from lifesigns.config.tree import MEANING
from lifesigns.config.values import Config, DeadManSettings, Limits, Listen
from lifesigns.core.policy import BreakerPolicy, FleetPolicy, Policy

HOOK = "https://hook.example/a"
NAME = "x"
"""Where the user chooses a name."""


def written(path: Iterable[str], value: object) -> dict[str, Any]:
    """A file with one key."""
    *branches, leaf = path
    file: dict[str, Any] = {leaf: value}
    for branch in reversed(branches):
        file = {branch: file}
    return file


def config_of(file: Mapping[str, Any]) -> Config:
    return assemble(Document("lifesigns.yaml", file, {}), {}, {})


def resolved(config: Config) -> dict[str, Any]:
    """All that a configuration says, without how it came about."""
    said = {name: value for name, value in asdict(config).items() if name not in HOW}
    book = config.policies
    return {**said, "policies": [book.default, book.of("a", role=NAME), book.of(NAME)]}


HOW = {"effective", "sources", "path", "policies"}

# --- thresholds, and what else is a value by itself ------------------------------------------------------------

DEFAULTS: Mapping[tuple[str, ...], Any] = {
    **flat({"policy": settable(Policy()), "fleet": settable(FleetPolicy()), "limits": settable(Limits())}),
    **flat({"dead_man_switch": settable(DeadManSettings())}),
    **flat({"otlp": settable(defaults().otlp), "hooks": settable(defaults().hooks)}),
    **flat({"policy": {"breakers": {NAME: settable(BreakerPolicy())}}}),
    **flat({"listen": settable(Listen()), "alerting": settable(defaults().pacing)}),
}
WORDS: Mapping[str, object] = {
    "agent_id": "elsewhere",
    "task_id": "elsewhere",
    "profile": "swift",
    "role": "standby",
    "nudge_template": "{facts} Go on.",
    "polling_tools": "wait",
    "backoff": "1 min",
    "store": "sqlite:///elsewhere.db",
    "url": "https://elsewhere",
    "zone": "eu-1",
    "relays": "refused",
    "judge": "all",
    "other_hubs": "allowed",
    "signed": "required",
    "key": "/elsewhere.key",
    "file": "/elsewhere.jsonl",
    "witnesses": "file:/elsewhere",
    "host": "localhost",
    "tls_cert": "/elsewhere.pem",
    "tls_key": "/elsewhere.pem",
    "names": "elsewhere.example",
    "channels": "ops",
    "severity": "info",
    "backoff_seconds": "1 min",
}
"""Another value for what is no number."""
NOT_SINGLE = {
    *("channels", "routes", "silences", "maintenance", "checkpoints", "github", "ai_maestro"),
    *EXECUTORS,
}
SINGLE = [path for path, _ in readers_of(SCHEMA) if path[0] not in NOT_SINGLE]


def others(path: tuple[str, ...]) -> Iterator[object]:
    """Values that differ from the default; some do not fit the other thresholds."""
    below = path[2:] if path[0] in ("roles", "agents") else path[1:]
    usual = DEFAULTS.get(path, DEFAULTS.get(("policy", *below)))
    if path[0] == "health_monitoring":
        meaning = MEANING.get(".".join(path[1:]).replace(f".{NAME}.", ".*."), "").replace("*", NAME)
        usual = True if path[-1] == "enabled" else DEFAULTS.get(("policy", *meaning.split(".")))
    if path[-1] in WORDS:
        yield WORDS[path[-1]]
    elif isinstance(usual, bool):
        yield not usual
    elif usual is None:
        yield from (1, 0.5)
    else:
        yield from (usual + 1, usual - 1, usual * 1.1, usual * 0.9, 400, 700)


@pytest.mark.parametrize("path", SINGLE, ids=".".join)
def test_another_value_resolves_to_something_else_and_is_shown(path: tuple[str, ...]) -> None:
    named = tuple(NAME if part == "*" else part for part in path)
    usual = config_of({"health_monitoring": {}} if path[0] == "health_monitoring" else {})
    for value in others(named):
        try:
            config = config_of(written(named, value))
        except ConfigErrors:
            continue  # It does not fit the defaults around it; another one does.
        if resolved(config) != resolved(usual):
            assert config.effective != usual.effective, "config check does not show it"
            return
    pytest.fail(f"{'.'.join(path)} changes nothing")


def test_the_same_file_resolves_to_the_same() -> None:
    """Otherwise the test above could not fail."""
    file = {"roles": {NAME: {"silence": {"grace": 7}}}, "health_monitoring": {}}
    assert resolved(config_of(file)) == resolved(config_of(file))


# --- channels, routes, silences and maintenance ---------------------------------------------------------------

CHANNELS: Mapping[str, Mapping[str, object]] = {
    "log": {},
    "desktop": {},
    "webhook": {"url": HOOK},
    "slack": {"token": "a", "channel": "a"},
    "pagerduty": {"routing_key": "a"},
    "email": {"host": "a", "from": "a@a.example", "to": "a@a.example", "user": "a", "password": "a"},
    "apprise": {"urls": "json://a.example"},
}
ALERTING: Mapping[str, Mapping[str, object]] = {
    "routes": {"channels": "slack"},
    "silences": {"until": "2026-11-20T08:00:00Z", "by": "a", "why": "a"},
    "maintenance": {"at": "02:00", "for": "1h"},
}
ONCE = {"from": "2026-11-20T06:00:00Z", "until": "2026-11-20T08:00:00Z"}
"""Maintenance that does not come again."""
OTHER: Mapping[str, object] = {
    "per_minute": 7,
    "gap": 7,
    "url": "https://hook.example/b",
    "api": "https://api.example",
    "headers": {"X-Key": "b"},
    "security": "tls",
    "port": 2525,
    "from": "b@b.example",
    "to": "b@b.example",
    "urls": "json://b.example",
    "channels": "pagerduty",
    "alerts": "needs_human",
    "at_least": "critical",
    "severity": "critical",
    "until": "2026-11-21T08:00:00Z",
    "days": "sat",
    "at": "03:00",
    "for": "2h",
    "zone": "Europe/Berlin",
}
"""Another value of a key; what is not here is a text."""


def picture(value: object, depth: int = 10) -> object:
    """What an object holds, as plain data."""
    if isinstance(value, str | bytes | int | float | Path | None) or depth == 0:
        return value if depth else type(value).__name__
    if isinstance(value, Mapping):
        return {str(key): picture(part, depth - 1) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [picture(part, depth - 1) for part in value]
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    held = {
        name: getattr(value, name, None)
        for of in type(value).__mro__
        for name in getattr(of, "__slots__", ())
    }
    held |= getattr(value, "__dict__", {})
    return [
        type(value).__name__,
        {name: picture(part, depth - 1) for name, part in held.items() if not callable(part)},
    ]


def telling(config: Config) -> object:
    """The channels and the rules of telling that are made of a configuration."""
    said = {
        name: getattr(config, name) for name in ("alerting", "routes", "silences", "maintenance", "pacing")
    }
    return picture([channels_of(config.channels, {}), rules_of(config.channels, **said)])


CHANNEL_KEYS = [(type_, key) for type_, own in TYPES.items() for key in (*own, "per_minute", "gap")]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # apprise's own, on import
@pytest.mark.parametrize(("type_", "key"), CHANNEL_KEYS)
async def test_a_key_of_a_channel_makes_another_channel(type_: str, key: str) -> None:
    entry = {"type": type_, **CHANNELS[type_]}
    if (type_, key) == ("slack", "url"):
        entry = {"type": type_, "url": HOOK}
    usual, changed = (
        config_of({"channels": {NAME: said}}) for said in (entry, {**entry, key: OTHER.get(key, "b")})
    )
    assert telling(usual) == telling(config_of({"channels": {NAME: entry}}))
    assert telling(changed) != telling(usual)


ALERTING_KEYS = [
    *((section, key) for section in ALERTING for key in SCHEMA[section][0].keys),
    *(("alerting", key) for key in SCHEMA["alerting"]),
]


@pytest.mark.parametrize(("section", "key"), ALERTING_KEYS)
async def test_a_key_of_alerting_makes_another_rule(section: str, key: str) -> None:
    entry = ALERTING.get(section, {})
    if section == "maintenance" and key in ONCE:
        entry = ONCE
    other = 7 if section == "alerting" else ("2026-11-20T07:00:00Z" if key == "from" else OTHER.get(key, "b"))
    usual, changed = (config_of({section: said}) for said in (entry, {**entry, key: other}))
    assert telling(usual) == telling(config_of({section: entry}))
    assert telling(changed) != telling(usual)


# --- executors and checkpoints ----------------------------------------------------------------------------------

WAYS: Mapping[str, Mapping[str, object]] = {
    "webhook": {"webhook": HOOK, "secret": "a"},
    "command": {"command": "start"},
    "tmux": {"tmux": "={agent_id}:", "idle_commands": "claude"},
}
OTHER_WAY: Mapping[str, object] = {
    "webhook": "https://hook.example/b",
    "verify": "https://hook.example/b",
    "headers": {"X-Key": "b"},
    "shell": True,
    "env": "PATH",
    "quiet_for": 7,
    "content_mb": 1,
    "task_mb": 300,
    "total_mb": 4000,
}


def executing(config: Config, folder: Path) -> object:
    """The executors that are made of a configuration, and where contents of checkpoints lie."""
    made: list[object] = []
    service: Any = SimpleNamespace(
        executors=SimpleNamespace(assign=lambda order, by, **which: made.append((order.__name__, by, which))),
        checkpoints=SimpleNamespace(elsewhere=None),
    )
    assign_executors(service, config, {"PATH": "/bin"}, folder, "http://hub")
    return picture([made, service.checkpoints.elsewhere, contents_in(folder, config.checkpoints)])


OF_WAY = {"webhook": keys(WebhookSettings), "command": keys(CommandSettings), "tmux": keys(TmuxSettings)}
EXECUTOR_KEYS = [
    (section, way, key)
    for section, (entry,) in EXECUTORS.items()
    for way in WAYS
    if way in entry.keys
    for key in entry.keys
    if key in OF_WAY[way] or key in ("agents", "roles", "name")
]


@pytest.mark.parametrize(("section", "way", "key"), EXECUTOR_KEYS)
async def test_a_key_of_an_executor_makes_another_executor(
    tmp_path: Path, section: str, way: str, key: str
) -> None:
    entry = WAYS[way]
    usual, changed = (config_of({section: said}) for said in (entry, {**entry, key: OTHER_WAY.get(key, "b")}))
    assert executing(usual, tmp_path) == executing(config_of({section: entry}), tmp_path)
    assert executing(changed, tmp_path) != executing(usual, tmp_path)


OTHER_LOCKS: Mapping[str, object] = {
    "repos": ["org/repo", "org/other"],
    "api": "https://ghe.example/api/v3",
    "workers": {"bot": "w-*"},
    "look_every": "30s",
    "release": False,
    "comments": False,
    "comment_every": "10m",
    "comments_per_minute": 30,
    "comments_per_hour": 100,
    "anonymous": True,
}


@pytest.mark.parametrize("key", SCHEMA["github"].keys)
async def test_a_key_of_github_makes_another_watch(key: str) -> None:
    entry = {"repos": "org/repo", "token": "a"}
    made = []
    for said in (entry, {**entry, key: OTHER_LOCKS.get(key, "b")}):
        settings = config_of({"github": said}).github
        tracker: Any = tracker_of(settings, {})
        made.append((lock_rules_of(settings), str(tracker._url), await tracker._token(False)))
    assert made[0] != made[1]


async def test_without_a_token_the_login_of_gh_is_used_and_without_repositories_nothing() -> None:
    assert tracker_of(defaults().github, {}) is None
    hosts = []
    for more in ({}, {"api": "https://ghe.example/api/v3"}):
        tracker: Any = tracker_of(config_of({"github": {"repos": "org/repo", **more}}).github, {})
        hosts.append(tracker._token._host)
    assert hosts == ["github.com", "ghe.example"]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"token": "x"}, "repos"),
        ({"repos": "repo"}, "org/name"),
        ({"repos": "org/repo", "workers": {"*": "w-1"}}, "everybody"),
        ({"repos": "org/repo", "api": "http://ghe.example"}, "https"),
        ({"repos": "org/repo", "queued": "Status:In-Progress"}, "same label"),
        ({"repos": "org/repo", "comments_per_minute": 81}, "from 5 to 80"),
    ],
)
def test_what_cannot_work_with_github_is_refused(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigErrors, match=says):
        config_of({"github": wrong})


OTHER_MAESTRO: Mapping[str, object] = {
    "url": "http://127.0.0.1:24000",
    "name": "orchestrator-master",
    "agents": ["libs-*"],
    "role": "standby",
    "look_every": "1s",
    "inquiry_wait": "1m",
    "timeout": "3s",
}


@pytest.mark.parametrize("key", SCHEMA["ai_maestro"].keys)
def test_a_key_of_ai_maestro_makes_another_watch(key: str) -> None:
    entry = {"url": "http://127.0.0.1:23000"}
    made = []
    for said in (entry, {**entry, key: OTHER_MAESTRO[key]}):
        settings = config_of({"ai_maestro": said}).ai_maestro
        messenger: Any = messenger_of(settings)
        made.append((messenger_rules_of(settings), messenger._url, messenger.name, messenger._timeout))
    assert made[0] != made[1]
    assert messenger_of(defaults().ai_maestro) is None


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"role": "standby"}, "url"),
        ({"url": "localhost:23000"}, "needs an address"),
        ({"url": "http://a", "inquiry_wait": "1s", "look_every": "2s"}, "not longer than look_every"),
        ({"url": "http://a", "look_every": "1h"}, "from 100 ms to 5 min"),
    ],
)
def test_what_cannot_work_with_ai_maestro_is_refused(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigErrors, match=says):
        config_of({"ai_maestro": wrong})


@pytest.mark.parametrize("key", SCHEMA["checkpoints"].keys)
async def test_a_key_of_checkpoints_makes_others(tmp_path: Path, key: str) -> None:
    entry = {"verify": HOOK, "secret": "a"}
    usual, changed = (
        config_of({"checkpoints": said}) for said in (entry, {**entry, key: OTHER_WAY.get(key, "b")})
    )
    assert executing(changed, tmp_path) != executing(usual, tmp_path)


# --- and is it read where it arrives? ---------------------------------------------------------------------------

SRC = Path(__file__).parents[2] / "src" / "lifesigns"
SETTINGS = (
    *(SRC / "config").glob("**/*.py"),
    *(SRC / "core").glob("policy*.py"),
    SRC / "core" / "profiles.py",
)
"""Where values are read, checked and shown, which is no use of them."""


@cache
def used() -> frozenset[str]:
    """Names of attributes that are read anywhere but among the settings."""
    names: set[str] = set()
    for path in SRC.glob("**/*.py"):
        if path not in SETTINGS:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    names.add(node.attr)
    return frozenset(names)


def leaves(value: Struct, path: str = "") -> Iterator[str]:
    """Dotted names of everything that can be set."""
    for name, inner in asdict(value).items():
        where = f"{path}.{name}" if path else name
        if isinstance(inner, Struct):
            yield from leaves(inner, where)
        else:
            yield where


def derived(kind: type) -> dict[str, frozenset[str]]:
    """Which fields each property of a class is made of: who reads the property uses the fields."""
    found: dict[str, frozenset[str]] = {}
    for method in ast.parse(getsource(kind)).body[0].body:  # type: ignore[attr-defined]
        if isinstance(method, ast.FunctionDef):
            read = {n.attr for n in ast.walk(method) if isinstance(n, ast.Attribute)}
            found[method.name] = frozenset(read)
    return found


def is_used(kind: type, name: str) -> bool:
    if name in used():
        return True
    return any(name in made_of and reader in used() for reader, made_of in derived(kind).items())


def kinds(value: Struct) -> Iterator[tuple[str, type, str]]:
    for path in leaves(value):
        owner = value
        *sections, name = path.split(".")
        for section in sections:
            owner = getattr(owner, section)
        yield path, type(owner), name


KEYS = [
    *kinds(Policy()),
    *((f"fleet.{path}", kind, name) for path, kind, name in kinds(FleetPolicy())),
    *((f"limits.{path}", kind, name) for path, kind, name in kinds(Limits())),
    *((f"listen.{path}", kind, name) for path, kind, name in kinds(Listen())),
    *(
        (name, Config, name)
        for name in Config.__struct_fields__
        if name not in (HOW - {"policies"}) | {"profile"}
    ),
]

BY_NAME = {f"message.{priority}" for priority in ("urgent", "high", "normal", "low")} | {"enabled"}
"""Read by their names (`core/messages.py`), or handed on as another value: `enabled` is `fleet.judging`."""


@pytest.mark.parametrize(("path", "kind", "name"), KEYS, ids=[key[0] for key in KEYS])
def test_what_can_be_set_is_used(path: str, kind: type, name: str) -> None:
    assert path in BY_NAME or is_used(kind, name), f"{path} is read and used by nobody"


def test_the_net_bites() -> None:
    assert not is_used(Policy, "a_key_nobody_uses")
