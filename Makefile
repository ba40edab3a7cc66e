# Needs Python >= 3.11, make and PyPI, nothing else. Every target sets up what it needs, once.
#   make verify   re-establish everything the project claims, on real input, as one table
#   make test     style, types and all tests (what CI runs)
#   make deep     the long checks: more seeds, larger models, TLC where Java and TLC can be had
#   make kafka-target   Apache Kafka's own classes behind the judge's protocol (needs a JDK of 17 or newer, and Maven)
#   make docs     the documentation site, into site/
#   make tables   write again what is generated and committed: the README, histories, tutorials, docs/measured (minutes)
#   make bench    the measurements that the performance claims rest on
#   make clean    remove everything that was built

.DEFAULT_GOAL := verify
.PHONY: verify test types tests deep kafka-target docs tables bench clean

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
BIN := .venv/bin
JOBS ?= 2
# Many short processes of Python: without bytecode each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

verify: .venv/base
	$(BIN)/kafkaspec verify

test: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(MAKE) --no-print-directory -j2 types tests

types:
	$(BIN)/mypy
	$(BIN)/mypy tests docs bench

tests:
	$(BIN)/pytest -n $(JOBS) --dist loadgroup --durations=20 --durations-min=1

deep: .venv/dev
	HYPOTHESIS_PROFILE=deep $(BIN)/pytest -m "deep or not deep" -n $(JOBS) --dist worksteal --passed=.deep

kafka-target:
	@command -v mvn >/dev/null || { echo "kafka-target: needs Maven (mvn) and a JDK of 17 or newer" >&2; exit 2; }
	cd targets/kafka && mvn -q -B package

docs: .venv/dev
	$(BIN)/mkdocs build --strict

tables: .venv/dev
	$(BIN)/python docs/generate.py --measure

bench: .venv/dev
	$(BIN)/python bench/run.py

clean:
	rm -rf .venv build dist site src/kafkaspec.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is written only when the installation went through; a change of pyproject.toml makes it stale.
.venv/base: pyproject.toml
	@test -n "$(PYTHON)" || { echo "kafkaspec needs Python 3.11 or newer: none found (make PYTHON=/path/to/python3 ...)" >&2; exit 2; }
	@$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear .venv || { echo "$(PYTHON) cannot make a virtual environment: install its venv package" >&2; exit 2; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

.venv/dev: .venv/base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@
