# make demo and make test do all their own set-up on a machine with Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BASE := $(VENV)/.base-installed
DEV := $(VENV)/.dev-installed
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test lint format bench fuzz kill audit sbom locked clean

demo: $(BASE)  ## train a line of policies, adapt it to six changed carts, write the page
	$(BIN)/slackline bench cartpole --methods single lop senses --seeds 6 --out demo
	@echo "open demo/report.html in a browser"

test: $(DEV) lint  ## lint, types, and the whole suite
	$(BIN)/python -m pytest

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports

format: $(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(DEV)  ## speed, as ratios in one run; keep the machine idle
	$(BIN)/python benchmarks/throughput.py

fuzz: $(DEV)  ## files, flags, suite files, calls and observations that are damaged or odd, new ones every time
	SLACKLINE_FUZZ=$(or $(TRIALS),2000) $(BIN)/python -m pytest tests/fuzz

kill: $(DEV)  ## commands stopped at any call to the file system, and by SIGKILL
	$(BIN)/python benchmarks/kill.py --trials $(or $(TRIALS),1000)
	$(BIN)/python benchmarks/kill.py --trials 100 --signal

audit: $(DEV)  ## every package of every extra is pinned, installed as pinned, and unchanged; no network
	$(BIN)/python tools/supply.py audit --files
	$(BIN)/python -m pip --disable-pip-version-check check

sbom: $(DEV)  ## a CycloneDX list of all pinned packages
	$(BIN)/python tools/supply.py sbom sbom.json

locked: | $(VENV)  ## install as pinned, refusing every file that has another hash than requirements.lock says
	$(PIP) install --require-hashes -r requirements.lock
	$(PIP) install --no-deps -e .
	@touch $(DEV) $(BASE)

clean:
	rm -rf $(VENV) demo build dist

$(VENV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "slackline needs Python 3.11 or newer; set PYTHON=python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(BASE): pyproject.toml constraints.txt | $(VENV)
	$(PIP) install -c constraints.txt -e .
	@touch $@

$(DEV): pyproject.toml constraints.txt | $(VENV)
	$(PIP) install -c constraints.txt -e '.[dev]'
	@touch $@ $(BASE)
