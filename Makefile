# `make demo` and `make test` need python3 (3.11 or later) and make, nothing else. Everything goes into $(VENV).
#   make PYTHON=python3.12 test      with another interpreter
#   make VENV=/tmp/venv test         in another place
#   make test ARGS="-k frames"       with arguments for pytest

PYTHON ?= python3
VENV ?= .venv
ARGS ?=

# -P: the folders errors/, client/ … of this directory must not pass for modules of that name.
PY = $(VENV)/bin/python -P
SOURCES := pyproject.toml $(shell find src a2a agents client daemon dialects errors files framing gateway imports -name '*.py' -type f)

unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-short check check-ruff check-basedpyright check-mypy check-layers format interop bench docs site coverage release clean

help:
	@echo 'make demo      see the daemon work'
	@echo 'make test      run the tests'
	@echo 'make test-short  the tests that tell most in half a minute, for another interpreter'
	@echo 'make check     lint, format, types, layers'
	@echo 'make format    lint and format, and change what can be changed'
	@echo 'make interop   the tests against other JSON-RPC implementations, where they are installed'
	@echo 'make bench     measure; bench/README.md says what and how'
	@echo 'make docs      write the generated parts of docs/ anew'
	@echo 'make site      build the web site of docs/ into site/'
	@echo 'make coverage  what the tests reach'
	@echo 'make release   build what is published into dist/: wheel, sdist, bill of materials'
	@echo 'make clean     remove what make has made'

demo: $(VENV)/demo.done
	@$(PY) -m discreet demo $(ARGS)

test: $(VENV)/test.done
	@$(PY) -m pytest -q -n auto --dist worksteal $(ARGS)

# What depends on the interpreter: the decoder, threads, processes, SQLite, imports, and a process for each dialect.
SHORT := $(addprefix tests/,framing/test_parser_cases.py framing/test_channel.py framing/transports \
	errors/test_wire.py errors/test_details.py errors/redaction/test_tracebacks.py daemon/rpc \
	$(addprefix daemon/dispatch/,test_blocked_loop.py test_dispatcher.py test_dispatcher_cancellation.py test_limits.py) \
	daemon/process daemon/operations/test_input_errors.py daemon/schemas/test_round_trip.py \
	agents/stores/test_contract.py agents/stores/test_sqlite.py client/outbound/test_ssrf.py \
	client/test_calls.py client/test_live.py::test_every_kind_of_request_to_a_daemon \
	client/test_live.py::test_many_threads_share_one_peer packaging/test_imports.py process/test_process_supervision.py \
	process/test_process_mcp.py process/test_process_language_server.py process/test_process_acp.py)

test-short: $(VENV)/test.done
	@$(PY) -m pytest -q -n auto --dist worksteal $(SHORT) $(ARGS)

interop: $(VENV)/test.done
	@$(PY) -m pytest -q tests/interop $(ARGS)

bench: $(VENV)/test.done
	@PATH="$(abspath $(VENV))/bin:$$PATH" bench/run $(ARGS)

docs: $(VENV)/test.done
	@$(PY) docs/write_settings.py
	@$(PY) docs/write_errors.py

# --strict: a link or an anchor that leads nowhere fails the build; so does a page that loads anything from another host.
site: $(VENV)/site.done
	@$(VENV)/bin/zensical build --clean --strict
	@! grep -rnE --include='*.html' '<(script|img|iframe)[^>]* src="(https?:)?//|<link[^>]* href="(https?:)?//' site

# `make -j2 check` runs two at a time.
check: check-ruff check-basedpyright check-mypy check-layers

check-ruff: $(VENV)/dev.done
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

check-basedpyright: $(VENV)/dev.done
	$(PY) -m basedpyright --pythonpath $(VENV)/bin/python $(ARGS)

check-mypy: $(VENV)/dev.done
	$(PY) -m mypy

check-layers: $(VENV)/dev.done
	$(VENV)/bin/lint-imports --no-cache

format: $(VENV)/dev.done
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

# From the folders through the links, so that lines are counted where they stand.
coverage: $(VENV)/dev.done
	@PYTHONPATH=src $(PY) -m coverage run -m pytest -q $(ARGS)
	@$(PY) -m coverage report

# Byte for byte the same for the same tree and the same setuptools.
release: $(VENV)/test.done
	@$(PY) tools/release.py 2>$(VENV)/release.log || { tail -n 5 $(VENV)/release.log >&2; exit 1; }

clean:
	rm -rf $(VENV) build dist site .cache *.egg-info .coverage .coverage.* .hypothesis
	rm -rf .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps: what is installed is the package as users get it, anew when a source has changed.
$(VENV)/demo.done: $(VENV)/made $(SOURCES)
	@$(call install,.)
	@touch $@

$(VENV)/test.done: $(VENV)/made $(SOURCES)
	@$(call install,".[test]")
	@touch $(VENV)/demo.done $@

$(VENV)/dev.done: $(VENV)/made $(SOURCES)
	@$(call install,$(EVERYTHING))
	@touch $(VENV)/demo.done $(VENV)/test.done $@

$(VENV)/site.done: $(VENV)/made pyproject.toml
	@$(call install,".[docs]")
	@touch $@

EVERYTHING = ".[fast,watch,test,dev]"

# build/ would carry modules over that the tree no longer has.
install = echo 'installing $(1) into $(VENV)' && rm -rf build *.egg-info \
	&& $(PY) -m pip install --quiet --disable-pip-version-check $(1) && rm -rf build *.egg-info

$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo '$(PYTHON) is missing or older than 3.11; name another: make PYTHON=python3.12 …' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo '$(PYTHON) lacks venv or ensurepip; on Debian and Ubuntu: apt install python3-venv' >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@touch $@
