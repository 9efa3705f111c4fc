# `make exam` does the main job and `make test` the tests; each makes .venv first and needs nothing but Python 3.11+.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet --constraint constraints.txt

.PHONY: exam test quick slow cluster faults cover lint bench results docs browser screenshots lock renew licences audit types release clean

.venv/exam.stamp: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) --editable '.[game]'
	touch $@

.venv/dev.stamp: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) --editable '.[dev]'
	touch $@ .venv/exam.stamp

exam: .venv/exam.stamp
	$(BIN)/pfungst examine film --data world --limit 600 --probe control --probe blind --probe rephrase \
		--probe noise --probe decoys --probe game:size=10,seeds=2,budget=40 --out runs/exam

lint: .venv/dev.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/python -m pytest -n 2 --dist loadscope

# For the working loop: what a mistake would break first, in less than a minute.
quick: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/python -m pytest -n 2 --dist loadscope --quick -q

# Which tests `make quick` leaves out; run it now and then.
slow: .venv/dev.stamp
	$(BIN)/python -m pytest -n 2 --dist loadscope -q --write-slow

# Whole commands on a Ray cluster of three nodes, one of which is lost: minutes.
cluster: .venv/dev.stamp
	PFUNGST_CLUSTER=1 $(BIN)/python -m pytest tests/compute/test_ray_cluster.py -n 0 -q

# 64 kills of long commands, 10,000 damaged inputs, ten minutes of a failing player: about an hour.
faults: .venv/dev.stamp
	$(BIN)/python -m tests.faults.kills --kills 64
	$(BIN)/python -m tests.fuzz.run --count 10000
	$(BIN)/python benchmarks/soak.py --minutes 10

cover: .venv/dev.stamp
	$(BIN)/python -m pytest -n 2 --dist loadscope --cov --cov-report=term:skip-covered

bench: .venv/dev.stamp
	$(PIP) --editable '.[bench]'
	for script in $$(grep -l -- --quick benchmarks/*.py); do echo "== $$script"; $(BIN)/python $$script --quick || exit 1; done

# docs/results, from the ledger in results/.
results: .venv/dev.stamp
	$(BIN)/pfungst results pages
	$(BIN)/pfungst results check

docs: .venv/dev.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# A browser for the tests that need one; without it they are skipped.
browser: .venv/dev.stamp
	command -v chromium || command -v chromium-browser || command -v google-chrome \
		|| (test "$$(id -u)" = 0 && apt-get update && apt-get install --yes chromium) \
		|| $(BIN)/playwright install chromium

# The screenshots of README and docs, taken by the browser tests.
screenshots: browser
	PFUNGST_SCREENSHOTS=docs/images $(BIN)/python -m pytest tests/browser -q -n 0 --timeout 0

# requirements.lock: every package of the dev extra with the checksum of its file.
lock: .venv/dev.stamp
	$(BIN)/python scripts/lock.py

# constraints.txt with the newest versions that fit together, then the lock. Then `make test licences`.
renew: .venv/dev.stamp
	$(BIN)/python scripts/lock.py --renew

# docs/reference/licences.md, from the lock and the installed packages.
licences: .venv/dev.stamp
	$(BIN)/python scripts/licences.py

# Known vulnerabilities in what requirements.lock names; asks the advisory database, and fails where it has no answer.
audit: .venv/dev.stamp
	test -x .venv/audit/bin/pip-audit || ($(BIN)/python -m venv .venv/audit && .venv/audit/bin/pip install --quiet pip-audit)
	.venv/audit/bin/pip-audit --strict --disable-pip --require-hashes --requirement requirements.lock

# How many of the public names have a type that users' checkers can see.
types: .venv/dev.stamp
	test -x .venv/types/bin/pyright || ($(BIN)/python -m venv .venv/types && .venv/types/bin/pip install --quiet pyright)
	VIRTUAL_ENV=$(CURDIR)/.venv PATH=$(CURDIR)/.venv/bin:$$PATH \
		.venv/types/bin/pyright --verifytypes pfungst --ignoreexternal | sed -n '/^Symbols exported/,$$p'

# All of a release but the upload (CONTRIBUTING.md): tests, docs, then dist/.
release: test docs
	$(BIN)/python -m scripts.release

clean:
	rm -rf .venv site runs .mypy_cache .ruff_cache .pytest_cache .coverage*
