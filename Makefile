# `make demo`, `make test` and `make docs` do all of their own set-up on a fresh machine.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test lint check docs pictures browser screenshots clean install
install: $(STAMP)

# torch goes in first and pinned: a plain `torch` pulls gigabytes of CUDA libraries.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "coterie needs Python 3.10 or newer: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -qq && apt-get install -y -qq python3-venv; \
		else echo "python3-venv is missing: install it (Debian: apt-get install python3-venv)"; exit 1; fi
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch -c constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dask,train,studio,dev]'
	@touch $(STAMP)

demo: $(STAMP)
	$(BIN)/coterie demo

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The studio's tests need a browser: Debian's chromium, where it may be installed; else they are skipped, aloud.
browser:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		(apt-get update -qq && timeout 300 apt-get install -y -qq --no-install-recommends chromium) >/dev/null 2>&1; } || \
		echo "There is no chromium, so the tests in a browser will be skipped (Debian: apt-get install chromium)"

check: $(STAMP) browser
	OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/pytest -n 2 -q

screenshots: $(STAMP) browser
	$(BIN)/python -m tests.studio.screenshots

# Nothing is fetched: no foreign inventories, no fonts. Built anew each time, so that every example runs and every warning shows.
docs: $(STAMP)
	rm -rf docs/_build docs/api docs/gallery docs/results
	OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 \
		$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "The documentation is in docs/_build/html/index.html"

pictures: docs
	$(BIN)/python docs/pictures.py
	$(BIN)/coterie cluster src/coterie/data/samples/wine.csv --exclude cultivar --plot docs/images/wine.png

test: lint check

clean:
	rm -rf $(VENV) build dist demo docs/_build docs/api docs/gallery docs/results src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
