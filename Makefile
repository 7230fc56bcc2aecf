# Two verbs need nothing before them: `make run` and `make test`. Each builds .venv from the hashed lock files once,
# and does again only what has changed since: every step leaves a stamp in .venv that depends on its inputs.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
PY := $(VENV)/bin/python
UV := $(VENV)/bin/uv
STAMPS := $(VENV)/stamps
PYTEST := $(PY) -m pytest -n 2 --dist loadgroup
export UV_PYTHON_DOWNLOADS := never

SIMCORE := $(shell find simcore -name '*.py' 2>/dev/null)
CATALOGS := $(shell find explorer/locale -name '*.po' 2>/dev/null)
COMPILE_LOCK := uv pip compile pyproject.toml --universal --fork-strategy fewest --python-version 3.11 \
  --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links --upgrade --quiet

.PHONY: help run test lint check lock bench clean messages warm

help:  ## say what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-10s%s\n", $$1, $$2}' Makefile

run: $(STAMPS)/package  ## start Trimtab and print its address (PORT=8000)
	@exec $(PY) manage.py up

test: lint $(STAMPS)/warm  ## lint, types, layers, Django checks, and every test (browser tests where Chromium is found)
	env -u DATABASE_URL -u REDIS_URL $(PYTEST) $(PYTEST_ARGS)
	@if [ -n "$${TEST_DATABASE_URL:-}" ] && [ -n "$${TEST_REDIS_URL:-}" ]; then \
	  echo "once more, on PostgreSQL and Redis: web, tasks and sockets"; \
	  DATABASE_URL="$$TEST_DATABASE_URL" REDIS_URL="$$TEST_REDIS_URL" VAR_DIR="$$(mktemp -d)" \
	    $(PY) manage.py migrate --noinput --verbosity 0; \
	  DATABASE_URL="$$TEST_DATABASE_URL" REDIS_URL="$$TEST_REDIS_URL" \
	    $(PYTEST) -m "not embedded" tests/explorer $(PYTEST_ARGS); \
	else echo "not run on PostgreSQL and Redis: TEST_DATABASE_URL and TEST_REDIS_URL are not set"; fi

lint: $(STAMPS)/test $(STAMPS)/package $(STAMPS)/messages  ## everything of `make test` that does not run the program
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-cache  # its cache does not notice a module that is new
	$(PY) manage.py check --fail-level WARNING
	$(PY) manage.py makemigrations --check --dry-run
	$(PY) manage.py compilemessages --check

check: test  ## the same as `make test`

lock: $(STAMPS)/uv  ## resolve the lock files again, to the newest versions that pyproject.toml allows
	$(VENV)/bin/$(COMPILE_LOCK) --group installer --output-file requirements.lock
	$(VENV)/bin/$(COMPILE_LOCK) --group installer --group test --constraint requirements.lock \
	  --output-file requirements-test.lock
	@! grep -nE '^--|://|@ ' requirements.lock requirements-test.lock

bench: $(STAMPS)/package $(STAMPS)/warm  ## how fast the engine is on this machine
	$(PY) -m simcore bench serving
	$(PY) -m simcore bench edit

clean:  ## remove what make built; var/ (your data) stays
	rm -rf $(VENV) .ruff_cache .hypothesis staticfiles
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
	find explorer/locale -name '*.mo' -delete 2>/dev/null || true

messages: $(STAMPS)/messages  ## compile the translations
warm: $(STAMPS)/warm  ## compile the engine once, so that the first run is as fast as the second

# --- how .venv comes to be ------------------------------------------------------------------------------------------
# A version manager's shim may stand in PATH under a name that it cannot run: so each candidate is run, and must be
# able to make an environment (Debian keeps ensurepip in python3-venv).
$(STAMPS)/venv:
	@for name in python3.14 python3.13 python3.12 python3.11 python3; do \
	  if $$name -c 'import sys, venv, ensurepip, ctypes, sqlite3; assert sys.version_info >= (3, 11)' 2>/dev/null; then \
	    found=$$name; break; fi; done; \
	if [ -z "$${found:-}" ]; then \
	  echo "Trimtab needs Python 3.11 to 3.14 with venv (Debian and Ubuntu: apt install python3 python3-venv)." >&2; \
	  exit 1; fi; \
	if [ ! -x $(PY) ]; then echo "making $(VENV) with $$found" >&2; $$found -m venv $(VENV); fi
	@mkdir -p $(STAMPS) && touch $@

# pip installs uv alone, by its own hashed lines of the lock; uv installs everything else, many times faster.
$(STAMPS)/uv: $(STAMPS)/venv
	@test -x $(UV) || { awk '/^[^ ]/ {wanted = /^uv==/} wanted' requirements.lock > $(STAMPS)/uv.lock; \
	  $(PY) -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $(STAMPS)/uv.lock; }
	@touch $@

$(STAMPS)/run: requirements.lock $(STAMPS)/uv
	@echo "installing $$(grep -c == requirements.lock) packages" >&2
	@$(UV) pip install --python $(PY) --quiet --require-hashes --no-deps -r requirements.lock
	@touch $@

# The `trimtab` command, pointing at this checkout. uv brings its own build backend: nothing is fetched.
$(STAMPS)/package: pyproject.toml $(STAMPS)/run
	@$(UV) pip install --python $(PY) --quiet --offline --no-deps --editable .
	@touch $@

$(STAMPS)/test: requirements-test.lock $(STAMPS)/run
	@echo "installing the tools for tests" >&2
	@$(UV) pip install --python $(PY) --quiet --require-hashes --no-deps -r requirements-test.lock
	@touch $@

$(STAMPS)/messages: $(CATALOGS) $(STAMPS)/run
	@$(PY) manage.py compilemessages
	@touch $@

$(STAMPS)/warm: $(SIMCORE) $(STAMPS)/run
	@echo "compiling the engine (once per version of it)" >&2
	@$(PY) -m simcore warm
	@touch $@
