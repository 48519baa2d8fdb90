# Taskmill. `make` prints the targets.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV   ?= .venv
ARGS   ?=
PIP    := $(VENV)/bin/pip --disable-pip-version-check -q
STAMP  := $(VENV)/.installed

help:  ## print the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(STAMP)  ## create .venv and install everything that `run` and `test` need

# torch first, in the pinned version: its CPU build; a resolver left alone fetches gigabytes of CUDA.
$(STAMP): pyproject.toml client/pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Taskmill needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install torch==2.13.0 -c constraints.txt
	$(PIP) install -c constraints.txt -e ./client -e '.[demo,dev]'
	touch $@

run: setup  ## start the service and the demo; ARGS=--once ends with it
	$(VENV)/bin/taskmill up --demo $(ARGS)

test: setup  ## run the whole test suite; what a machine lacks is skipped with the command that adds it
	$(VENV)/bin/python -m pytest $(ARGS)

lint: setup  ## formatting, lint, types, floors
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

bench: setup  ## measure; figures go to docs/benchmarks.md
	@for script in bench/*.py; do echo "== $$script"; $(VENV)/bin/python $$script || exit 1; done

clean:  ## remove the environment and all caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info

.PHONY: help setup run test lint bench clean
