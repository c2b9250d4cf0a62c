"""Configuration: `lifesigns.yaml`, then `LIFESIGNS_*`, then flags; the later word wins.

The files, in the order in which a value passes them:

    yaml_file.py   the file is read; hostile YAML ends here
    document.py    its plain values, with the line of every key
    outside.py     the environment and flags
    schema.py      which keys there are, made of the dataclasses they become; unknown keys end here
    readers.py     one value at a time: durations, numbers, words; wrong types end here
    channels.py, alerting.py, executors.py, values.py
                   the keys beside the policy; what does not fit together ends here
    tree.py        the `health_monitoring:` tree in terms of the policy
    layers.py, fitting.py
                   what lies over what; impossible relations end here
    load.py        all of it in one go: `Config`
    account.py     every value and where it came from, for `lifesigns config check`

and beside them `listening.py`, which of it a hub may listen with, and `hub_locator.py`, how clients find a hub.

Everything wrong is collected, so that one look shows all of it, each with its key, file and line: `ConfigErrors.errors`.
"""

from lifesigns.config.document import Source
from lifesigns.config.errors import ConfigError, ConfigErrors
from lifesigns.config.load import find, load
from lifesigns.config.values import Config, Limits, Listen

__all__ = [
    "Config",
    "ConfigError",
    "ConfigErrors",
    "Limits",
    "Listen",
    "Source",
    "find",
    "load",
]
