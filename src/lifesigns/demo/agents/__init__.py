"""The programs of the demo's agents. Each is started by `lifesigns run`, which tells it who it is and where its hub is;
its argument is how long a turn takes."""
