# Everything runs in .venv, which the first target to need it makes.
PYTHON ?= python3
BIN := .venv/bin
# What `make bench` compares this checkout with.
BEFORE ?= HEAD~1
SOURCES := src tests benchmarks examples deploy

.PHONY: demo test lint bench bench-search bench-timeline web-ui web-ui-check clean

demo: .venv/.installed
	$(BIN)/pipeplan compare --config examples/profiles/gpt-6.2b-24.yaml --output pipeline_comparison.png

test: .venv/.installed-dev lint
	$(BIN)/python -m pytest -n auto

lint: .venv/.installed-dev
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: .venv/.installed-dev
	$(BIN)/python -m benchmarks.core
	$(BIN)/python -m benchmarks.against $(BEFORE)

bench-search: .venv/.installed-dev
	$(BIN)/python -m benchmarks.search

bench-timeline: .venv/.installed-dev
	$(BIN)/python -m benchmarks.timeline

web-ui: web_ui/node_modules
	cd web_ui && npm run --silent build

web-ui-check: web_ui/node_modules
	cd web_ui && npm run --silent check && node build.mjs --check

web_ui/node_modules: web_ui/package-lock.json
	cd web_ui && npm ci --no-audit --no-fund && touch node_modules

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pipeplan needs Python 3.11 or later")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

.venv/.installed: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/.installed-dev: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[all]" --group dev
	touch $@ .venv/.installed

clean:
	rm -rf .venv web_ui/node_modules build dist demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
