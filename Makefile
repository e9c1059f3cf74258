# Everything a newcomer needs: `make demo` and `make test`. Both set themselves up.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo test test-slow test-integrations test-floor check clean
setup: $(STAMP)

# The stamp is written last, so an interrupted set-up starts again.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "torch" "torchvision"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $(STAMP)

demo: setup
	$(BIN)/samix demo

test: setup
	$(BIN)/python -m pytest -n 2 -m "not slow"

# What trains for longer, starts processes or compares with an earlier commit.
test-slow: setup
	$(BIN)/python -m pytest -n 2 -m slow

# Frameworks too heavy for everyday tests, in an environment of their own.
test-integrations: constraints.txt
	test -x $(VENV)-integrations/bin/python || $(PYTHON) -m venv $(VENV)-integrations
	$(VENV)-integrations/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "torch" "torchvision"
	$(VENV)-integrations/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev,integrations]"
	$(VENV)-integrations/bin/python -m pytest tests/test_integrations.py

# The lowest versions that pyproject.toml allows. torch 2.5 brings its CUDA libraries, 5 GB. Shapes are not checked: the
# plugin of jaxtyping 0.2.34 comes too late for that.
test-floor:
	test -x $(VENV)-floor/bin/python || $(PYTHON) -m venv $(VENV)-floor
	$(PYTHON) tests/helpers/floors.py > $(VENV)-floor/constraints.txt
	$(VENV)-floor/bin/python -m pip install --quiet --disable-pip-version-check -c $(VENV)-floor/constraints.txt -e ".[dev]"
	$(VENV)-floor/bin/python -m pytest -n 2 -m "not slow" -o addopts="--import-mode=importlib -q"

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV) $(VENV)-integrations $(VENV)-floor build dist runs
