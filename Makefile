# The verbs of this project. Each sets up what it needs: .uv holds the installer, .venv the project.
# Written for make 3.81 and bash 3.2, so that a bare macOS will do.
SHELL := /bin/bash
PYTHON ?= python3
UV := .uv/bin/uv
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: setup demo test check cluster bench peers peers-sparse rie lock help

setup: .venv/.ready  ## install everything into .venv (the other verbs do this by themselves)

# uv where it can be had, for it is quick and brings a Python if this one is too old; else plain pip, with the same lock.
.uv/.ready:
	@$(PYTHON) -m venv .uv || { echo "python3 -m venv failed. On Debian or Ubuntu: apt install python3-venv" >&2; exit 1; }
	@.uv/bin/python -m pip install --quiet --disable-pip-version-check uv \
	    || echo "uv cannot be installed here; going on with pip" >&2
	@touch $@

.venv/.ready: pyproject.toml requirements.lock | .uv/.ready
	@echo "setting up .venv" >&2
	@if test -x $(UV); then \
	    { test -x $(BIN)/python || $(UV) venv --quiet --python '>=3.11,<3.15' .venv; } \
	    && $(UV) pip sync --quiet --compile-bytecode --require-hashes --python $(BIN)/python requirements.lock \
	    && $(UV) pip install --quiet --python $(BIN)/python --no-deps --editable . ; \
	else \
	    $(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))' \
	    || { echo "Python 3.11 to 3.14 is needed, $(PYTHON) is older or newer: make PYTHON=/path/to/python3.12" >&2; exit 1; }; \
	    { test -x $(BIN)/python || $(PYTHON) -m venv .venv; } \
	    && $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock \
	    && $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable . ; \
	fi
	@touch $@

demo: setup          ## train a GCN on the bundled Cora, with two kinds of servers and functions
	@$(BIN)/dorylus train cora --num-graph-servers 3 --num-parameter-servers 2 --backend lambda --num-intervals 12 --seed 7

test: setup          ## run all tests
	@$(BIN)/python -m pytest

check: setup         ## what a change must pass before it is committed: style, types, contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

cluster: setup       ## the long property tests: random event orders, every mode, many servers
	@DORYLUS_EXAMPLES=20000 $(BIN)/python -m pytest -m "cluster or not cluster" tests/cluster tests/integration tests/benchmarks tests/graph_server/fuzz

bench: setup         ## the benchmarks in their short form
	@for script in $$(grep -l __main__ benchmarks/*.py); do $(BIN)/python $$script --quick || exit 1; done

peers: .peers/pyg/.ready .peers/dgl/.ready  ## set up what benchmarks compare with: PyG and DGL (gigabytes; PYTHON=python3.12 at most)

.peers/%/.ready: benchmarks/peers/%.txt
	@echo "setting up .peers/$*" >&2
	@$(PYTHON) -m venv .peers/$*
	@.peers/$*/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

# Another form of PyG's graphs, the quicker one for some models. It is compiled, which takes about 20 minutes on two cores.
peers-sparse: .peers/pyg/.ready
	@.peers/pyg/bin/python -m pip install --quiet --disable-pip-version-check setuptools wheel
	@.peers/pyg/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation \
	    torch-scatter==2.1.2 torch-sparse==0.6.18

rie: setup           ## fetch AWS's Runtime Interface Emulator, an oracle for the local Lambda service (Linux)
	@mkdir -p .rie && $(PYTHON) -m pip download --quiet --no-deps --dest .rie aws-sam-cli==1.170.0
	@$(PYTHON) -m zipfile -e .rie/aws_sam_cli-1.170.0-py3-none-any.whl .rie/wheel
	@cp .rie/wheel/samcli/local/rapid/aws-lambda-rie-$$(uname -m | sed 's/aarch64/arm64/') .rie/aws-lambda-rie
	@chmod +x .rie/aws-lambda-rie && rm -rf .rie/wheel .rie/*.whl

lock: .uv/.ready     ## pin versions and hashes; names no host
	@test -x $(UV) || { echo "make lock needs uv: it could not be installed (remove .uv to try again)" >&2; exit 1; }
	@$(UV) pip compile --quiet --universal --generate-hashes --no-header --no-annotate --no-emit-index-url \
	    --extra dev pyproject.toml --output-file requirements.lock

help:                ## show this list
	@awk -F ':.*## *' '/^[a-z]+:.*## /{printf "make %-8s %s\n", $$1, $$2}' Makefile
