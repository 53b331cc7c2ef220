# Two commands do everything on a fresh machine with Python 3.11 or later: `make demo` and `make test`.
#
# PIP_ARGS is passed to pip. On Linux, PyPI's torch brings CUDA along (gigabytes); for a CPU build:
#   make demo PIP_ARGS="--extra-index-url https://download.pytorch.org/whl/cpu"

PYTHON ?= python3
VENV ?= .venv
PIP_ARGS ?=
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet $(PIP_ARGS) --constraint constraints.txt

.PHONY: demo test test-slow check bench format clean

demo: $(VENV)/.run        ## set up and open the demo with the bundled model
	$(BIN)/seq2seq demo

test: $(VENV)/.dev        ## set up and run the tests, in a process of one thread for each core
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses=auto --maxprocesses=4 --dist=loadfile

test-slow: $(VENV)/.dev   ## the tests that take minutes
	$(BIN)/python -m pytest -m slow

check: $(VENV)/.dev       ## lint, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.run       ## how fast training and translating are on this machine: a few minutes, offline
	$(BIN)/python scripts/benchmark.py all

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable .
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable ".[dev]"
	touch $@ $(VENV)/.run
