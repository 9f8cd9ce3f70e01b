PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: setup demo serve test test-model lint format docs reference schema bench lock ci system-packages

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

demo: setup
	$(BIN)/roomlore demo

serve: setup
	$(BIN)/roomlore serve

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: lint
	$(BIN)/pytest --numprocesses auto --dist loadfile

# The site, in site/. The tests build it too, and a warning is an error there as here.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# What docs/reference says of the code, made from it anew. A test compares the two.
reference: setup
	$(BIN)/python -m docsite

# The tables of a new SQLite database, made anew from the migrations. A test compares the two.
schema: setup
	$(BIN)/python -c "from roomlore.adapters.sql import fresh; fresh.main()"

# Asks a real model, named by ROOMLORE_TEST_MODEL_URL and ROOMLORE_TEST_MODEL_ID. See docs/explanation/a-small-model.md.
test-model: setup
	$(BIN)/pytest tests/model

bench: setup
	$(BIN)/python -m bench context-speed --messages 10000 --large 100000

lock:
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-header --quiet --output-file requirements.lock

system-packages:
	@if ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends python3 python3-venv; \
	fi
	@if ! command -v chromium >/dev/null; then \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; \
	fi
	@if ! command -v curl >/dev/null || ! command -v git >/dev/null; then \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends curl git; \
	fi

ci: system-packages
	$(MAKE) test
