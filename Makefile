# Everything runs in .venv, which the first target to need it makes.
PYTHON ?= python3
BIN := .venv/bin
# What `make bench` compares this checkout with.
BEFORE ?= HEAD~1
# How many times as many random cases as `make test-all` `make torture` tries, and the first seed.
TIMES ?= 20
SEED ?= 0
# What the peers' tests need beside pytest's own.
PEERS_TOOLS := pytest pytest-xdist hypothesis
# Half of the peers' tests by time: torchtitan's, and of two libraries that are imported in a moment.
OF_TORCHTITAN := $(addprefix tests/peers/,torchtitan torchtitan_trainer automodel transformers)
# The Python of the peers: 3.12 if it is at hand, which the newest releases of some need, else the same as for the rest.
PEERS_PYTHON ?= $(shell PYENV_VERSION=3.12 python3.12 -c 'import sys; print(sys.executable)' 2>/dev/null || echo $(PYTHON))
# The PyTorch of `make peers-trainer`: the newest; torchtitan's Trainer needs 2.14.
TRAINER_TORCH ?= 2.15.0
SOURCES := src tests benchmarks examples docs/build docs/notebooks .ci hatch_build.py

# The tests of one part, as in `make test PART=search`: core, search, planning, review, training or web. Default: all.
PART ?=
TESTS := $(if $(PART),$(if $(filter core,$(PART)),tests --ignore tests/extensions --ignore tests/docs,tests/extensions/$(PART)))

# A quick test file of each room, for `make check`.
CHECKS := $(addprefix tests/,model/test_op.py costs/test_overhead.py passes/test_activations.py strategies/test_protocol.py \
	simulation/test_bounds.py checking/test_checker.py formats/test_rows.py extensions/search/test_choices.py extensions/planning/workload/test_presets.py \
	extensions/planning/hardware/test_presets.py extensions/planning/test_configuration.py foundation/sweeps/test_store.py answers/test_names.py \
	cli/test_names.py extensions/web/test_guard.py extensions/training/runtime/test_recorder.py)

# The tests of kernels, for `make sanitized` and `make pure`.
KERNELS := $(addprefix tests/extensions/search/test_,evaluate.py wide.py moves.py keeping.py)

.PHONY: axe demo demo-page check check-tests test test-all sanitized pure without lint docs docs-pictures docs-test docs-serve wheel lowest peers peers-torchtitan peers-others peers-all peers-trainer bench bench-plan bench-search bench-sweeps bench-timeline size torture web-ui web-ui-check lock audit clean

demo: .venv/.installed
	$(BIN)/pipeplan compare --config examples/profiles/gpt-6.2b-24.yaml --output pipeline_comparison.png

# The page of the documentation to play with, alone: build/demo/index.html opens from there.
demo-page: .venv/.installed-dev
	$(BIN)/python -m docs.build.demo build/demo

# Linters, types, the import contract, and a quick test of each room: a minute.
check: .venv/.installed-dev
	@$(MAKE) --no-print-directory -j 2 lint check-tests

check-tests: .venv/.installed-dev
	$(BIN)/python -m pytest -q $(CHECKS)

# All tests that are not slow: five minutes on two cores, installation included. The tests of a file share what it starts,
# such as a server or a browser: each file is one process's.
test: .venv/.installed-dev
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow" $(TESTS)

# With those in a browser, in processes of their own, of all examples of the documentation, and a sample of random schedules.
# The reasons of skipped tests are printed.
test-all: .venv/.installed-dev axe
	$(BIN)/python -m pytest -n auto --dist loadfile -rs

# Kernels whose every access to memory is checked, and all behaviour that C leaves undefined: a minute.
sanitized: .venv/.installed-dev
	rm -rf build/sanitized
	CC="cc -fsanitize=address,undefined -fno-sanitize-recover=all -g" $(BIN)/python -m pip install --quiet --no-deps --target build/sanitized .
	LD_PRELOAD="$$(cc -print-file-name=libasan.so) $$(cc -print-file-name=libubsan.so)" ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc \
		PYTHONPATH=build/sanitized $(BIN)/python -m pytest -q $(KERNELS) \
		tests/foundation/kernels/test_lengths.py

# Kernels as plain Python.
pure: .venv/.installed-dev
	PIPEPLAN_PURE_PYTHON=1 $(BIN)/python -m pytest -q $(KERNELS) tests/simulation

# Without each extension in turn, and those that need it: all that is left is imported, and the doors of the core are tested; with
# ALL=--all everything that is left and not slow.
ALL ?=
without: .venv/.installed-dev
	$(BIN)/python .ci/without.py web training review planning search $(ALL)

lint: .venv/.installed-dev
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# The site of the documentation: 20 s of CPU if nothing changed, else up to 140 s. With --quiet, MkDocs would not count the broken links that it keeps quiet about.
docs: .venv/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@echo "the documentation: $(CURDIR)/build/site/index.html"

# The pictures of the documentation that the repository keeps, drawn anew where they show something else.
docs-pictures: .venv/.installed-dev
	$(BIN)/python -m docs.build.pictures

# The site, looked at in a browser.
docs-test: docs axe
	PIPEPLAN_SITE=build/site $(BIN)/python -m pytest -q -rs tests/docs/test_site.py

# The same at http://127.0.0.1:8000, made again whenever a page is saved.
docs-serve: .venv/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve --livereload

# What is published: dist/*.whl with kernels for all platforms, installed and run in bare environments, one of them with the
# lowest releases that pyproject.toml declares, which Python 3.11 has.
wheel: .venv/.installed-dev
	PIPEPLAN_PLATFORMS=all PIPEPLAN_WHEEL=dist $(BIN)/python -m pytest -q tests/test_wheel.py

# The lowest releases alone, with kernels for this machine: a minute.
lowest: .venv/.installed-dev
	PIPEPLAN_WHEEL=build/lowest $(BIN)/python -m pytest -q -k lowest tests/test_wheel.py

# Other implementations beside ours, in an environment of their own (tests/peers): up to five minutes on two idle cores with -j 2.
# Each of the two processes imports its own peers alone: to import torchtitan takes longer than its tests.
peers: peers-torchtitan peers-others

peers-torchtitan: .venv-peers/.installed
	.venv-peers/bin/python -m pytest -m "not nightly" $(OF_TORCHTITAN)

peers-others: .venv-peers/.installed
	.venv-peers/bin/python -m pytest -m "not nightly" tests/peers $(addprefix --ignore ,$(OF_TORCHTITAN))

# The same with what takes longer or needs a clone: PIPEPLAN_MEGATRON_SOURCE and others name them (docs/explanation/peers.md).
peers-all: .venv-peers/.installed
	.venv-peers/bin/python -m pytest -n 2 --dist loadfile tests/peers

# torchtitan's Trainer and our runtime with another PyTorch, which has no light build everywhere: up to 6 GB of disk.
peers-trainer: .venv-trainer/.installed
	.venv-trainer/bin/python -m pytest tests/peers/torchtitan_trainer tests/extensions/training/runtime

bench: .venv/.installed-dev
	$(BIN)/python -m benchmarks.core
	$(BIN)/python -m benchmarks.against $(BEFORE)

# Predictions beside published runs; with WRITE=--write into docs/explanation/accuracy.md and the package's error bars.
bench-plan: .venv/.installed-dev
	$(BIN)/python -m benchmarks.plan $(WRITE)
	$(BIN)/python -m benchmarks.planning

# The tables of docs/explanation/search.md, and its pictures of how schedules get better with time: about 25 minutes.
bench-search: .venv/.installed-dev
	$(BIN)/python -m benchmarks.search --json docs/explanation/anytime.json
	$(BIN)/python -m benchmarks.anytime docs/explanation/anytime.json

# Random schedules against independent models, TIMES as many as the tests try.
torture: .venv/.installed-dev
	TORTURE=$(TIMES) TORTURE_SEED=$(SEED) $(BIN)/python -m pytest -n auto tests/torture/test_schedules.py -k random_cases

# How large the code is, how much of it one command uses, and what is ambiguous or circular in it.
size:
	@test -e .venv/.installed || $(MAKE) --no-print-directory .venv/.installed
	$(BIN)/python -m benchmarks.size

bench-sweeps: .venv/.installed-dev
	$(BIN)/python -m benchmarks.sweeps

bench-timeline: .venv/.installed-dev
	$(BIN)/python -m benchmarks.timeline

# The types of what the server answers are made from its records, the scripts from their sources.
web-ui: web_ui/node_modules .venv/.installed-dev
	$(BIN)/python .ci/records_ts.py
	cd web_ui && npm run --silent build

web-ui-check: web_ui/node_modules .venv/.installed-dev
	$(BIN)/python .ci/records_ts.py --check
	cd web_ui && npm run --silent check && node build.mjs --check

# axe-core, which tests the accessibility of pages, comes with the pages' tools; without npm these tests are skipped.
axe:
	@if ! command -v npm >/dev/null; then echo "no npm: accessibility is not tested"; \
	else $(MAKE) --no-print-directory web_ui/node_modules || echo "npm ci failed: accessibility is not tested"; fi

web_ui/node_modules: web_ui/package-lock.json
	cd web_ui && npm ci --no-audit --no-fund && touch node_modules

# Every release that is installed for tests, pages and the web app, for every platform and Python: the newest ones, but for
# what constraints.txt holds back.
lock: .venv-audit/.installed
	.venv-audit/bin/python -m pip install --quiet uv
	.venv-audit/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --all-extras --group dev --group docs \
		--constraints constraints.txt --no-header --output-file requirements.lock pyproject.toml

# Has anything that is locked a known vulnerability? Says so in one line where no service can be reached.
audit: .venv-audit/.installed
	.venv-audit/bin/python .ci/audit.py

.venv-audit/.installed:
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python -m pip install --quiet pip-audit
	touch $@

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pipeplan needs Python 3.11 or later")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

.venv/.installed: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/.installed-dev: pyproject.toml requirements.lock | .venv/bin/python
	$(BIN)/python -m pip install --quiet --constraint requirements.lock --editable ".[all]" --group dev
	touch $@ .venv/.installed

.venv/.installed-docs: .venv/.installed-dev
	$(BIN)/python -m pip install --quiet --constraint requirements.lock --group docs
	touch $@

.venv-peers/.installed: pyproject.toml constraints.txt tests/peers/constraints.txt tests/peers/peers.py
	$(PEERS_PYTHON) -m venv --clear .venv-peers
	.venv-peers/bin/python -m pip install --quiet --upgrade --constraint tests/peers/constraints.txt "pip>=25.1" setuptools wheel
	.venv-peers/bin/python -m pip install --quiet --constraint constraints.txt --editable ".[pytorch,search]" $(PEERS_TOOLS)
	.venv-peers/bin/python -m tests.peers.install
	touch $@

.venv-trainer/.installed: pyproject.toml tests/peers/constraints.txt tests/peers/peers.py
	@echo "PyTorch $(TRAINER_TORCH) is installed into .venv-trainer: up to 6 GB where it comes with its CUDA libraries"
	$(PYTHON) -m venv .venv-trainer
	.venv-trainer/bin/python -m pip install --quiet --upgrade --constraint tests/peers/constraints.txt "pip>=25.1" setuptools wheel
	.venv-trainer/bin/python -m pip install --quiet --editable ".[pytorch,search]" torch==$(TRAINER_TORCH) $(PEERS_TOOLS)
	.venv-trainer/bin/python -m tests.peers.install torchtitan_trainer
	touch $@

clean:
	rm -rf .venv .venv-audit .venv-peers .venv-trainer web_ui/node_modules build dist demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
