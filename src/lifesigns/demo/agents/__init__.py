"""The programs of the demo's agents. `lifesigns run` starts each with its id and its hub; the argument is how long a
turn takes."""
