# The two commands of the README, and the ones that CI calls. Everything happens in .venv.
PYTHON ?= python3
VENV := .venv
MINUTES ?= 60
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test thorough test-oldest lint types imports render check audit e2e bench soak clean

help: ## what can be made
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

$(BIN)/otel-gpu: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable . --group test --group lint
	@touch $@

demo: $(BIN)/otel-gpu ## run the agent here, on real GPUs or on the simulated box
	$(BIN)/otel-gpu demo

test: $(BIN)/otel-gpu ## the tests that need nothing but Python and gcc
	$(BIN)/python -m pytest -n auto -m "not e2e and not hardware and not thorough" --cov --cov-report=term:skip-covered
	@command -v go >/dev/null || echo "e2e was not run: it needs Go (make e2e)"

thorough: $(BIN)/otel-gpu ## the fault matrix, and fuzzing: 10,000 configurations, 110,000 answers
	$(BIN)/python -m pytest -n auto -m thorough

test-oldest: ## the same with the oldest dependencies that pyproject.toml allows
	$(MAKE) test VENV=.venv-oldest PIP_CONSTRAINT=constraints-oldest.txt

lint: $(BIN)/otel-gpu ## style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(BIN)/otel-gpu ## mypy, strict
	$(BIN)/mypy

imports: $(BIN)/otel-gpu ## the import contracts of ARCHITECTURE.md
	$(BIN)/lint-imports

render: $(BIN)/otel-gpu ## rewrite what is made from the catalog and the settings
	$(BIN)/otel-gpu render

check: lint types imports $(BIN)/otel-gpu ## all that CI checks besides the tests
	$(BIN)/otel-gpu render --check

audit: ## what requirements.lock installs: complete, permissive, not known to be vulnerable
	PYTHON=$(PYTHON) .ci/audit

e2e: $(BIN)/otel-gpu ## against a real Collector and a real Prometheus (needs Go)
	$(BIN)/python -m tests.e2e.binaries
	$(BIN)/python -m pytest -m e2e --timeout 300

bench: $(BIN)/otel-gpu ## costs against the stock SDK, of the agent, and series (on GPUs: see bench/)
	$(BIN)/python -m bench --json bench.json
	$(BIN)/python -m bench.series

soak: $(BIN)/otel-gpu ## an hour of churn and faults: memory, handles and threads stay flat
	$(BIN)/python -m bench.soak --minutes $(MINUTES) --reload

clean: ## remove what was made here
	rm -rf .venv* .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage dist build bench.json
