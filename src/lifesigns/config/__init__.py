"""Configuration: `lifesigns.yaml`, then `LIFESIGNS_*`, then flags; the later word wins.

The rooms, in the order a value passes them:

    yaml_file.py   the file is read; hostile YAML ends here
    document.py    its plain values, with the line of every key
    outside.py     the environment and flags
    schema.py      which keys there are, and the reader of each; unknown keys end here
    readers.py     one value at a time: durations, numbers, words; wrong types end here
    tree.py        the `health_monitoring:` tree in terms of the policy
    load.py        the layers laid over each other; impossible relations end here
    values.py      what comes out: `Config`

and beside them `listening.py`, which of it a hub may listen with, and `hub_locator.py`, how clients find a hub.

Everything wrong is collected, so that one look shows all of it: `ConfigErrors.errors`.
"""

from lifesigns.config.errors import ConfigError, ConfigErrors
from lifesigns.config.load import find, load
from lifesigns.config.values import AlertRoute, Config, Limits, Listen, Source

__all__ = [
    "AlertRoute",
    "Config",
    "ConfigError",
    "ConfigErrors",
    "Limits",
    "Listen",
    "Source",
    "find",
    "load",
]
