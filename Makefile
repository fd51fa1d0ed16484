# Needs make and Python 3.11 or newer; everything else is installed into $(VENV).

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
LOWEST ?= $(VENV)-lowest
DATA ?= $(addprefix ../shared/data/,scifact_train cranfield locomo_dev 2wiki_dev musique_train)
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
COMPILE := $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

.DEFAULT_GOAL := help
FAST := not slow and not servers and not browser

.PHONY: help setup tools demo test test-slow test-servers test-browser test-lowest lint format docs bench eval lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

setup: $(VENV)/.dev

# One environment, filled in two steps: what the demo needs, then the tools for development on top.

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "sennit needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3"; exit 1; }
	@echo "Creating a virtual environment in $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: requirements/demo.lock pyproject.toml | $(BIN)/python
	@echo "Installing sennit and the $$(grep -c '^[a-z]' $<) packages that the demo needs (about 15 seconds) ..."
	@$(INSTALL) --no-deps --require-hashes -r requirements/demo.lock
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements/dev.lock pyproject.toml | $(BIN)/python
	@echo "Installing sennit with all extras and the tools for development (about a minute) ..."
	@$(INSTALL) --no-deps --require-hashes -r requirements/dev.lock
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@ $(VENV)/.demo

demo: $(VENV)/.demo ## see sennit search sample data with all five recipes
	@$(BIN)/sennit demo
	@echo
	@echo "Here the command is $(BIN)/sennit; the README says how to install it for good."

test: setup ## run the tests, all cores
	$(BIN)/python -m pytest -n auto -m "$(FAST)"

tools:
	scripts/tools.sh

test-slow: setup tools ## run the long proofs: crashes, many processes, minutes of writing
	$(BIN)/python -m pytest -m slow

test-servers: setup ## run the tests on real servers and clusters, which it installs and starts
	$(BIN)/python -m pytest -m servers

test-browser: setup ## run the tests of the web page in a real Chromium, which it installs
	scripts/tools.sh chromium
	$(BIN)/python -m pytest -m browser

test-lowest: ## run the tests with the lowest versions that pyproject.toml allows
	test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --no-deps --require-hashes -r requirements/lowest.lock
	$(LOWEST)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	$(LOWEST)/bin/python -m pytest -n auto -m "$(FAST)"

lint: setup ## check style, complexity, format, types and commit subjects
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python scripts/check_commits.py

format: setup ## put the code into the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: setup ## build the documentation site in build/docs, and fail on a dead link
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -b html docs build/docs
	@echo "The documentation is in build/docs/index.html"

bench: setup ## measure speed: beside other engines (writes docs/benchmarks.md), then the recipes
	$(INSTALL) --no-deps --require-hashes -r requirements/bench.lock
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.artifacts
	$(BIN)/python -m benchmarks.graph
	$(BIN)/python -m benchmarks.filters
	$(BIN)/python -m benchmarks.grep
	$(BIN)/python -m benchmarks.mcp_start
	$(BIN)/python -m benchmarks.mcp_tokens
	$(BIN)/python -m benchmarks.service --workers 2

eval: setup ## measure quality on the collections in DATA="folder …"; writes docs/quality.md
	SENNIT_MODELS=.cache/models $(BIN)/sennit models install minilm
	SENNIT_MODELS=.cache/models $(BIN)/sennit eval $(DATA) --scope locomo_dev=conversation --model static --model minilm \
		--cache .cache/eval --write docs/quality.md

lock: setup ## renew the pinned versions in requirements/
	$(INSTALL) uv
	$(COMPILE) --upgrade --extra all --extra dev --extra docs --output-file requirements/dev.lock
	$(COMPILE) --upgrade --extra all --extra dev --extra docs --extra bench --constraint requirements/dev.lock \
		--output-file requirements/bench.lock
	$(COMPILE) --upgrade --extra all --extra dev --extra docs --resolution lowest-direct \
		--output-file requirements/lowest.lock
	$(COMPILE) --no-annotate --constraint requirements/dev.lock --output-file requirements/core.lock
	$(COMPILE) --no-annotate --extra code --extra files --extra tokens --constraint requirements/dev.lock \
		requirements/build.in --output-file requirements/demo.lock

clean: ## remove the environment and what tools leave behind
	rm -rf $(VENV) $(LOWEST) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
