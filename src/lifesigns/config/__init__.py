"""Configuration: `lifesigns.yaml`, then `LIFESIGNS_*`, then flags; the later one wins.

The files, in the order in which a value passes them:

    yaml_file.py   reads the file; refuses hostile YAML
    document.py    its plain values, with the line of every key
    overrides.py   the environment and flags
    schema.py      the keys, derived from the values they become; refuses unknown keys
    readers.py     one value at a time: durations, numbers, words; refuses wrong types
    channels.py, alerting.py, executors.py, values.py
                   the keys beside the policy; refuse what does not fit together
    tree.py        the `health_monitoring:` tree in terms of the policy
    layers.py, fitting.py
                   the layers of policy; refuse impossible relations
    load.py        all of it in one go: `Config`
    account.py     every value and its source, for `lifesigns config check`

and beside them `listening.py`, what a hub may listen with, and `hub_locator.py`, how clients find a hub.

We collect all errors, so that one look shows all of them, each with its key, file and line: `ConfigErrors.errors`.

Nothing is imported here: who only looks for a hub, as every sender and command does, does not read the whole configuration.
"""
