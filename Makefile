# `make demo`, `make test` and `make docs` do all of their own set-up on a fresh machine.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PIP    := -m pip install --quiet --disable-pip-version-check
SERIAL := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1
# The pinned versions need Python 3.11; on 3.10 pip takes the newest that run there.
PINS   ?= $(shell $(PYTHON) -c 'import sys; print("constraints.txt" if sys.version_info >= (3, 11) else "/dev/null")')
# Where torch comes from, such as an index of CPU builds; by default pip's own index.
TORCH_INDEX ?=
TORCH  := $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) torch

.PHONY: install demo test lint types check research coverage docs pictures browser screenshots hooks lock locked sbom dist clean test-lowest test-bounds wheel-test fuzz failures worlds
install: $(STAMP)

# torch goes in first and pinned: a plain `torch` pulls gigabytes of CUDA libraries.
$(STAMP): pyproject.toml research/pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "coterie needs Python 3.10 or newer: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -qq && apt-get install -y -qq python3-venv; \
		else echo "python3-venv is missing: install it (Debian: apt-get install python3-venv)"; exit 1; fi
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) $(TORCH) -c $(PINS)
	$(BIN)/python $(PIP) -c $(PINS) -e '.[dask,studio,duckdb,sql,onnx,dev]' -e ./research
	$(BIN)/coterie warmup
	@touch $(STAMP)

demo: $(STAMP)
	$(BIN)/coterie demo

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# The package, and the examples as a user's code: a folder of their own, without the project's settings.
types: $(STAMP)
	$(BIN)/mypy
	cd examples && ../$(BIN)/mypy --config-file= --cache-dir=../.mypy_cache/examples --ignore-missing-imports --check-untyped-defs *.py

# The studio's tests need a browser: Debian's chromium, where it may be installed; else they are skipped, aloud.
browser:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		(apt-get update -qq && timeout 300 apt-get install -y -qq --no-install-recommends chromium) >/dev/null 2>&1; } || \
		echo "There is no chromium, so the tests in a browser will be skipped (Debian: apt-get install chromium)"

check: $(STAMP) browser
	$(SERIAL) $(BIN)/pytest -n 2 --dist worksteal -q tests

research: $(STAMP)
	$(SERIAL) $(BIN)/pytest -n 2 --dist worksteal -q research/tests

# Everything, and the seconds of each part.
test: $(STAMP)
	@set -e; told=; for part in lint types check research; do \
		began=$$(date +%s); $(MAKE) --no-print-directory $$part; told="$$told $$part $$(($$(date +%s) - began)) s,"; \
	done; echo "Passed:$${told%,}"

# Fails below the floor in pyproject.toml.
coverage: $(STAMP) browser
	$(SERIAL) $(BIN)/pytest -n 2 --dist worksteal -q --cov --cov-report=term --cov-report=xml

# The tests on the lowest versions that pyproject.toml declares. torch is the exception: the pinned build is taken unless another is given, as in
# `make test-lowest LOWEST_TORCH=torch==2.9.0 TORCH_INDEX=...`.
# Old packages warn that newer Pythons and packages will break them: only here such warnings are no errors.
LOWEST       := .venv-lowest
LOWEST_TORCH ?= $(shell grep '^torch==' constraints.txt)
OLD_PACKAGES := $(foreach kind,DeprecationWarning PendingDeprecationWarning FutureWarning,-W default::$(kind))

$(LOWEST)/.installed: pyproject.toml .ci/lower_bounds.py
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python .ci/lower_bounds.py $(LOWEST_TORCH) > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python $(PIP) $(TORCH) -c $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python $(PIP) --only-binary=:all: -c $(LOWEST)/constraints.txt -e '.[dask,studio,test]' -e ./research
	@touch $@

test-lowest: $(LOWEST)/.installed browser
	$(SERIAL) NUMBA_CACHE_DIR=$(CURDIR)/$(LOWEST)/numba $(LOWEST)/bin/pytest -n 2 --dist worksteal -q $(OLD_PACKAGES)

# The tests with every index of compiled code checked. Code with these checks has a cache of its own.
BOUNDS ?= tests research/tests
test-bounds: $(STAMP) browser
	$(SERIAL) NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/build/numba-bounds $(BIN)/pytest -n 2 --dist worksteal -q $(BOUNDS)

# The same tests in many worlds: threads, no compiled code, small blocks, other sources, another order; prints a table.
worlds: $(STAMP)
	$(BIN)/python -m tests.worlds $(WORLDS)

# Damaged and hostile files for everything that reads files; what fails is kept in build/fuzz.
FUZZ_SECONDS ?= 600
fuzz: $(STAMP)
	$(SERIAL) $(BIN)/python -m tests.fuzz.fuzzer --seconds $(FUZZ_SECONDS)

# Memory or disk space that is used up at any call of everything that writes files.
failures: $(STAMP)
	$(SERIAL) $(BIN)/python -m tests.fuzz.failures --count 10000

screenshots: $(STAMP) browser
	$(BIN)/python -m tests.studio.screenshots

# Nothing is fetched: no foreign inventories, no fonts. Built anew each time, so that every example runs and every warning shows.
docs: $(STAMP)
	rm -rf docs/_build docs/api docs/gallery docs/results
	$(SERIAL) $(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "The documentation is in docs/_build/html/index.html"

pictures: docs
	$(BIN)/python docs/pictures.py
	$(BIN)/coterie cluster src/coterie/tables/samples/wine.csv --exclude cultivar --plot docs/images/wine.png

hooks: $(STAMP)
	$(BIN)/pre-commit install

# --- supply chain ---
# The hashes of all pinned wheels, to be made again whenever constraints.txt changes.
lock: $(STAMP)
	$(BIN)/python .ci/lock.py > constraints-hashed.txt.new
	mv constraints-hashed.txt.new constraints-hashed.txt

# The environment of `make install` from files with known hashes only (torch by its version).
locked:
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python $(PIP) $(TORCH) -c constraints.txt
	$(BIN)/python $(PIP) --require-hashes --no-deps -r constraints-hashed.txt
	$(BIN)/python $(PIP) --no-deps -e . -e ./research
	$(BIN)/python -m pip check
	@touch $(STAMP)

# The software bill of materials of the environment (CycloneDX).
sbom: $(STAMP)
	$(PYTHON) -m venv --clear build/sbom
	build/sbom/bin/python $(PIP) 'cyclonedx-bom>=7,<8'
	mkdir -p dist
	build/sbom/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --of JSON -o dist/coterie-sbom.json $(BIN)/python

# Wheel and source archive.
dist: $(STAMP)
	$(PYTHON) -m venv --clear build/tools
	build/tools/bin/python $(PIP) build twine
	build/tools/bin/python -m build --outdir dist .
	build/tools/bin/twine check --strict dist/*.whl dist/*.tar.gz

# The wheel in an empty environment, outside the repository, passes the library's tests: all but those about the repository itself.
WHEEL ?= $(or $(TMPDIR),/tmp)/coterie-wheel
wheel-test: browser
	rm -rf $(WHEEL)
	$(PYTHON) -m venv $(WHEEL)/venv
	$(WHEEL)/venv/bin/python $(PIP) $(TORCH) -c $(PINS)
	$(WHEEL)/venv/bin/python $(PIP) build
	$(WHEEL)/venv/bin/python -m build --outdir $(WHEEL) .
	test -n "$$(find $(WHEEL)/*.whl -size -5242880c)"
	$(WHEEL)/venv/bin/python $(PIP) -c $(PINS) "$$(ls $(WHEEL)/*.whl)[dask,studio,test]"
	cp -r tests conftest.py pyproject.toml docs examples README.md SECURITY.md $(WHEEL)
	cd $(WHEEL) && $(SERIAL) venv/bin/pytest -n 2 --dist worksteal -q tests $(foreach about,design docs kit readme,--ignore tests/test_$(about).py)

clean:
	rm -rf $(VENV) $(LOWEST) build dist demo docs/_build docs/api docs/gallery docs/results src/*.egg-info research/*.egg-info \
		.pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage* coverage.xml
