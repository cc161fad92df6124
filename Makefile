# make demo    a photograph denoised and a million options priced, NumPy against npjit
# make test    the tests;  TESTS="tests/test_demo.py -k photo" picks some
# make lint    formatters, linters and types
# make bench   the speed table, benches/RESULTS.md (installs JAX, PyTorch and Numba: gigabytes)
# make programs  whole programs against Numba, JAX and Pythran, benches/RESULTS_PROGRAMS.md
# make docs    the API pages, in build/docs
#
# Everything is installed into $(VENV), made where absent. Needs Python 3.11 to 3.13 and a C++17 compiler.

PYTHON ?= python3
VENV ?= .venv
TESTS ?= tests

BIN := $(VENV)/bin
CXX_FILES := $(filter-out runtime/_runtime.cpp, $(wildcard runtime/*.cpp runtime/*.h))
CYTHON_FILES := $(wildcard runtime/*.pyx runtime/*.pxi runtime/*.pxd)
PRELUDE_FILES := $(filter-out %/abi.h, $(wildcard npjit/codegen/prelude/*.h))

.PHONY: demo test lint format bench programs docs

demo: $(VENV)/demo.stamp
	$(BIN)/python -m npjit demo

test: $(VENV)/test,lint.stamp
	$(BIN)/python -m pytest $(TESTS)

lint: $(VENV)/test,lint.stamp
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/cython-lint $(CYTHON_FILES)
	$(BIN)/clang-format --dry-run --Werror $(CXX_FILES) $(PRELUDE_FILES)

format: $(VENV)/test,lint.stamp
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/python docs/coverage.py
	$(BIN)/clang-format -i $(CXX_FILES) $(PRELUDE_FILES)

bench: $(VENV)/bench.stamp
	$(BIN)/python -m benches.interleave
	$(BIN)/python -m benches.overheads
	$(BIN)/python -m benches.report

programs: $(VENV)/programs.stamp
	$(BIN)/python -m benches.programs

docs: $(VENV)/docs.stamp
	$(BIN)/python -m pdoc --output-directory build/docs npjit

# One stamp for each set of extras. Installed in place, so that only the runtime's sources ask for it again.
$(VENV)/%.stamp: pyproject.toml setup.py $(CXX_FILES) $(CYTHON_FILES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	touch '$@'
