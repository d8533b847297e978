# `make` alone lists what there is. Each target does its own set-up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test quick lint docs bench bench-quick soak services pictures golden matrix rule clean java

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(STAMP) ## Make .venv with the command at .venv/bin/floodmark

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "Floodmark needs Python 3.10 or later; $(PYTHON) is older. Run: make PYTHON=python3.12 setup"; exit 1; }
	@echo "Setting up $(VENV): Spark and the rest are fetched once, which takes a few minutes"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all]' --group dev
	@$(BIN)/python -m compileall -q src/floodmark
	@touch $@

java:
	@java -version 2>/dev/null || \
	  { echo "Spark needs Java 17, and there is no java here. Install it with: apt-get install openjdk-17-jre-headless (Debian, Ubuntu) or brew install openjdk@17 (macOS)"; exit 1; }

demo: setup java ## Run a stream, kill it in the middle of a batch, see it come back
	@$(BIN)/floodmark demo

services: setup java ## Fetch the real servers and other Pythons that the tests start
	@$(BIN)/python scripts/services.py
	@$(BIN)/python scripts/pythons.py
	@$(BIN)/python scripts/browser.py

lint: setup ## Style, types, the walls between the layers, dead code and known weaknesses
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --cache-dir .cache/import-linter
	@$(BIN)/vulture
	@$(BIN)/bandit --quiet --configfile pyproject.toml --recursive src

# In two processes: a file's tests stay in one, which has a session and servers of its own.
test: lint services ## Everything that has to hold, real servers included
	@ended=0; \
	$(BIN)/python -m pytest -q -n 2 -m 'not spark and not services and not soak' --deselect tests/fuzz || ended=1; \
	$(BIN)/python -m pytest -m 'not spark and not services and not soak' tests/fuzz || ended=1; \
	$(BIN)/python -m pytest -q -n 2 --dist loadfile -m '(spark or services) and not soak' || ended=1; \
	$(BIN)/python bench/quick || ended=1; \
	exit $$ended

quick: setup ## What needs neither Spark nor servers: run it while you work
	@$(BIN)/ruff check .
	@$(BIN)/python -m pytest -q -n 2 -m 'not spark and not services and not soak' --deselect tests/fuzz

bench: setup java services ## Measure what the README claims, side by side: docs/benchmarks.md
	@$(BIN)/python scripts/benchmarks.py $(ONLY)

bench-quick: setup ## A few ratios in half a minute: fails if one is half as fast as before
	@$(BIN)/python bench/quick

soak: setup java services ## The long campaigns; docs/reliability.md keeps their last numbers
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --group emulators
	@$(BIN)/python -m pytest -m soak --override-ini addopts= -q -s

docs: setup ## Build the site in site/, with both generators; a warning fails it
	@$(BIN)/python scripts/reference.py
	@$(BIN)/python scripts/man_page.py
	@$(BIN)/python scripts/rule_docs.py
	@$(BIN)/python scripts/diagrams.py
	@$(BIN)/python scripts/site.py
	@echo "The site is in site/: open site/index.html, or run $(BIN)/zensical serve"

pictures: setup ## Take the pictures of the documents anew: pages and terminals
	@$(BIN)/python scripts/screenshots.py
	@$(BIN)/python scripts/terminal_pictures.py

matrix: setup java ## Try every Spark, and write docs/spark-versions.md
	@$(BIN)/python scripts/spark_matrix.py

golden: setup java ## Make tests/golden anew, with every Spark version
	@$(BIN)/python scripts/make_golden.py

rule: setup ## Begin a rule: make rule NAME=orphan-side-file KIND=checkpoint
	@$(BIN)/python scripts/new_rule.py $(NAME) $(KIND)

clean: ## Remove what the other targets made
	rm -rf $(VENV) .cache data site
