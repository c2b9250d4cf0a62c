"""A worker of Celery, as a user writes it; it sends itself the tasks of its script."""

from __future__ import annotations

import os
from pathlib import Path

from celery import Celery, signals

import tools
from lifesigns.integrations.celery import watch

folder = Path(os.environ.get("FOLDER", "."))
for name in ("in", "processed"):
    (folder / name).mkdir(exist_ok=True)
app = Celery("program", broker="filesystem://")
places = {"data_folder_in": str(folder / "in"), "data_folder_out": str(folder / "in")}
app.conf.broker_transport_options = {**places, "processed_folder": str(folder / "processed")}
app.conf.control_folder = str(folder / "control")
for tool in (tools.look, tools.broken, tools.hang, tools.slow):
    app.task(name=tool.__name__)(tool)
watch(app, tools.AGENT, **tools.OPTIONS)
PLAYS = {
    "work": [("look", f"f{n}") for n in range(20)],
    "loop": [("broken", "/no/such")] * 8,
    "hang": [("hang", "f")],
    "kill": [("look", "f")],
    "stop": [("slow", f"f{n}") for n in range(80)],
}


@app.task(name="end")
def end() -> None:
    """The last task: the worker ends as if it was told to."""
    import celery.worker.state

    celery.worker.state.should_stop = 0


for task, path in PLAYS[tools.SCRIPT]:
    app.send_task(task, [path])
if tools.SCRIPT in ("work", "loop"):
    app.send_task("end")


@signals.worker_shutdown.connect
def say(**_: object) -> None:
    print("ended: the worker")


pool = ["--pool=prefork", "--concurrency=2"] if tools.WAY == "prefork" else ["--pool=solo"]
app.worker_main(["worker", *pool, "--loglevel=WARNING", "--without-mingle", "--without-gossip"])
