# Every target works on a fresh clone, as root or not, and asks nothing. tools/uv brings uv if it is missing.
#
# --frozen installs exactly what uv.lock names, from where it names it, whatever index this machine has
# configured; `make check` says if uv.lock no longer fits pyproject.toml.
RUN := tools/uv run --frozen
# The lock is written and checked against the public index, never against this machine's mirror.
LOCK := env -u UV_INDEX -u UV_INDEX_URL -u UV_EXTRA_INDEX_URL -u UV_FIND_LINKS \
	UV_DEFAULT_INDEX=https://pypi.org/simple tools/uv lock

# Where this is set, each of a thousand processes of the tests would compile all of Python's source anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo dashboard test run-tests ready-for-tests compiled-tests check check-lock check-style check-types check-page format integrations bench soak chaos-hubs mutants chromium screenshots caught diagrams lock clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

demo:  ## a hub and a living fleet that freezes, loops, crashes and recovers before your eyes, in two minutes
	@$(RUN) python -m tools.dashboard || true  # without Node there is a demo without a dashboard
	$(RUN) lifesigns demo --for 2m

dashboard:  ## build the page the hub serves; Node is fetched if it is missing
	$(RUN) python -m tools.dashboard

test: check-style  ## everything that must hold: check, then the tests
	@$(MAKE) --no-print-directory -j2 check-types run-tests

run-tests: ready-for-tests  # the types are checked beside: tests mostly wait, and leave a processor idle now and then
	$(RUN) python -m tools.suite

ready-for-tests: check-lock check-page
	@$(MAKE) --no-print-directory dashboard compiled-tests
	@$(RUN) python -m tools.chromium || true  # without a browser its tests are skipped, and say so

compiled-tests:  # once, and not by each of six workers at the same time; what is wrong with them, pytest says
	@ls tests/__pycache__/conftest.*-pytest-*.pyc > /dev/null 2>&1 || $(RUN) pytest --collect-only -qq > /dev/null 2>&1 || true

check: check-style  ## lock, lint, format, types, rooms, the page's types and tests
	@$(MAKE) --no-print-directory -j2 check-types check-lock check-page

check-lock:
	$(LOCK) --check --quiet

check-style:
	$(RUN) ruff check
	$(RUN) ruff format --check

check-types:
	$(RUN) mypy src tests benchmarks tools
	$(RUN) lint-imports --no-logo

check-page:
	$(RUN) python -m tools.dashboard --check --test

format:  ## put the code into shape, mend what can be mended by itself
	$(RUN) ruff check --fix
	$(RUN) ruff format

integrations:  ## the real coding agents and agent frameworks, offline against a scripted model: fetched into .tools, watched, caught
	$(RUN) python -m tools.coding_agents
	$(RUN) python -m tools.frameworks
	LIFESIGNS_INTEGRATIONS=1 $(RUN) pytest -q -n 4 --dist worksteal tests/integrations  # they mostly wait

bench:  ## what things cost, as ratios to the alternatives
	$(RUN) python -m benchmarks

soak:  ## slow truths: long simulations over many seeds, the suite's with larger fleets, properties with 2,000 examples each, chaos, 500 worlds of several hubs, a hub killed 50 times, a day of 1,000 agents, a hub without a processor, 300 races for a lock, 80 starts at once, burned cores, 9,000 idle connections
	$(RUN) python tools/soak.py
	$(RUN) pytest -q -n 2 -m hypothesis --hypothesis-profile soak --timeout 3600
	FLEETS=large $(RUN) pytest -q -n 2 tests/simulation tests/events
	$(RUN) python -m tools.chaos
	$(RUN) python -m tools.hub_worlds
	$(RUN) python -m tools.ladder_soak
	$(RUN) python -m tools.kill_soak
	$(RUN) python -m tools.day
	LIFESIGNS_OVERLOAD=1 $(RUN) pytest -q tests/journeys/test_an_overloaded_hub.py
	SCHEMA_EXAMPLES=50 $(RUN) pytest -q -n 2 tests/web/test_schema.py
	SENDERS=250 $(RUN) pytest -q tests/agent/sender/test_outage.py
	RACES=300 $(RUN) pytest -q tests/hub/locks/test_releasing.py -k races
	STARTS_AT_ONCE=80 BURNED_FOR=60 $(RUN) pytest -q tests/journeys/test_many_starts_at_once.py tests/journeys/test_a_starved_host.py
	IDLE_CONNECTIONS=9000 DEAF_LISTENERS=300 $(RUN) pytest -q tests/journeys/test_many_who_hold_the_line.py

chaos-hubs:  ## three hubs in networks of their own, killed, frozen and cut off 300 times, beside real PostgreSQL and NATS; about two hours
	$(RUN) python -m tools.chaos_hubs
	$(RUN) python -m tools.chaos_hubs --judge all --rounds 100
	HUBS_COME_AND_GO=1 $(RUN) pytest -q tests/journeys/test_hubs_that_come_and_go.py

mutants:  ## which changes of the detectors, the judgement and the ladder no test would notice
	$(RUN) python -m tools.mutants

chromium:  ## a browser for the tests of the dashboard, from Debian's packages; nothing if there is one
	$(RUN) python -m tools.chromium

screenshots: dashboard  ## take the pictures in docs/images anew, from the demo's fleet
	$(RUN) python -m tools.screenshots

caught:  ## take what the pages of coding agents and frameworks show under *Caught* anew, with the real programs of `make integrations`
	$(RUN) python -m tools.caught

diagrams:  ## draw the state machines in docs/ anew from their tables
	$(RUN) python tools/diagrams.py

lock:  ## write uv.lock anew after a change of pyproject.toml
	$(LOCK)

clean:  ## remove what can be made again
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	rm -rf dashboard/node_modules dashboard/generated src/lifesigns/web/dashboard
	find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
