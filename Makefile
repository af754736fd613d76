# make test       format check, lint, type check, all tests, those of the documentation among them
# make docs       the documentation, as a site; a warning is an error, nothing is fetched
# make reproduce  the paper's experiments in a short form
# make benchmark  the speed claims, as ratios measured in one run
# Each creates .venv and installs what it needs. PYTHON=python3.12 chooses an interpreter for .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: test docs reproduce benchmark format clean

test: $(VENV)/.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2  # two processes share the cores; threads of BLAS would double their time

docs: $(VENV)/.installed
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "the documentation is in docs/_build/html/index.html"

reproduce: $(VENV)/.installed
	$(BIN)/cones reproduce functions --quick
	$(BIN)/cones reproduce rl --quick

benchmark: $(VENV)/.installed
	$(BIN)/python -m benchmarks --save benchmarks/RESULTS.md

format: $(VENV)/.installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("cones needs Python 3.11 or newer, and $(PYTHON) is %d.%d; try make PYTHON=python3.11" % v[:2])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis docs/_build docs/_generated
