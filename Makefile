# The targets of barnabas; `make` alone lists them. Everything runs in .venv, which `make setup` makes.
PYTHON := .venv/bin/python
SHELL := /bin/bash
SECONDS_OF_FUZZING ?= 60
REQUESTS ?= 2000000
SEEDS ?= 2000
ROUNDS ?= 30
SEED ?= 1
KINDS ?=
BESIDE_KAFKA ?=
CASES ?=
CLASSES ?=
PART ?=
WITHOUT_C ?=
KEEP ?=

.DEFAULT_GOAL := help
.PHONY: help setup wheel demo test strict sim lint types bench bench-guard sparkbench interop kafkatests differential fuzz torture chaos exactlyonce docs check requirements clean

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: ## everything the other targets need, on a bare Debian machine too
	@tools/setup.sh

wheel: setup ## dist/*.whl with the machine code, for Python 3.11 and later on this kind of machine; to install it takes no compiler
	@.venv/bin/uv build -q --wheel --out-dir dist
	@ls dist/*.whl

demo: setup ## a year of flights through the broker and a Spark pipeline, checked against pandas
	@$(PYTHON) -m demo run

test: setup ## all tests that need no tools of other languages, on all cores (PART=storage: those of tests/storage; WITHOUT_C=1: without the C library)
	@$(if $(WITHOUT_C),BARNABAS_WITHOUT_C=1) $(PYTHON) -m tests.parallel $(PART)

strict: setup ## the same tests in Python's development mode, with every warning an error
	@PYTHONDEVMODE=1 $(PYTHON) -W error -m pytest -m "not interop" -o timeout=600

lint: setup ## style, layering, generated files
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m ruff format --check .
	@.venv/bin/lint-imports --no-cache

types: setup ## mypy, strict
	@$(PYTHON) -m mypy

check: lint types ## lint and types, and figures of the code
	@$(PYTHON) tools/figures.py

bench: setup ## all that is measured, beside Kafka, RabbitMQ, ActiveMQ, NATS and Redis, into docs/performance.md: four hours (CASES="..." for some: `python -m bench list`)
	@tools/setup.sh peers
	@$(PYTHON) -m bench run $(CASES) --page

bench-guard: setup ## a report of what became 10 % slower than the recorded results
	@$(PYTHON) -m bench guard

sparkbench: setup ## the Spark source and sink beside Spark's own connector
	@$(PYTHON) bench/spark/compare.py
	@$(PYTHON) bench/spark/sink.py

kafkatests: ## Apache Kafka's own integration tests of its clients, Streams and Connect against barnabas: up to an hour (CLASSES="..." for some)
	@tools/setup.sh interop
	@$(PYTHON) -m tests.kafkatests $(CLASSES)
	@test -n "$(CLASSES)" || $(PYTHON) -m tests.kafkatests --of streams
	@test -n "$(CLASSES)" || $(PYTHON) -m tests.kafkatests --of connect

interop: ## the clients and tools of other languages, and all tests without the C library
	@tools/setup.sh interop
	@$(PYTHON) -m pytest tests/interop -m "interop or not interop"
	@$(MAKE) --no-print-directory test WITHOUT_C=1
	@$(PYTHON) -m tests.kafkatests
	@$(PYTHON) -m tests.kafkatests --of streams
	@$(PYTHON) -m tests.kafkatests --of connect

differential: ## ask Apache Kafka and record its answers, then compare ours
	@tools/setup.sh interop
	@$(PYTHON) -m tests.differential.record
	@$(PYTHON) -m tests.differential.dropped.record
	@$(PYTHON) -m tests.differential.rights.record
	@$(PYTHON) -m tests.differential.logins.record
	@$(PYTHON) -m tests.differential.settings.record
	@$(PYTHON) -m tests.differential.connect.record
	@$(PYTHON) -m tests.differential.capture --transactions 200
	@$(PYTHON) -m pytest tests/differential

fuzz: setup ## random and mutated bytes at the decoders and at a live broker
	@$(PYTHON) -m tests.fuzz --seconds $(SECONDS_OF_FUZZING) --requests $(REQUESTS)

sim: setup ## SEEDS=n runs of the simulator: kills, power cuts and disk faults in virtual time
	@$(PYTHON) -m barnabas.testing.simulation --seeds $(SEEDS)
	@$(PYTHON) -m barnabas.testing.simulation --seeds $(SEEDS) --profile cluster
	@$(PYTHON) -m barnabas.testing.simulation --seeds $(SEEDS) --profile transactions
	@$(PYTHON) -m barnabas.testing.simulation --seeds $(SEEDS) --profile transactions-cluster
	@$(PYTHON) -m barnabas.testing.simulation --seeds $(SEEDS) --profile mirror

torture: setup ## kill a broker under load, ROUNDS=30 times by the plan of SEED=1 (KINDS=move,stop: only so), and check that nothing is lost
	@$(PYTHON) -m tests.torture --rounds $(ROUNDS) --seed $(SEED) --kinds "$(KINDS)"
	@$(PYTHON) -m tests.torture.spark --rounds $(ROUNDS) --seed $(SEED)
	@$(PYTHON) -m tests.torture.tables --rounds $(ROUNDS) --seed $(SEED)
	@$(PYTHON) -m tests.torture.engine --rounds $(ROUNDS) --seed $(SEED)
	@$(PYTHON) -m tests.torture.views --rounds $(ROUNDS) --seed $(SEED)
	@$(PYTHON) -m tests.torture.databases --rounds $(ROUNDS) --seed $(SEED)
	@$(PYTHON) -m tests.torture.connectors --rounds $(ROUNDS) --seed $(SEED)

exactlyonce: ## kill consume-transform-produce loops and brokers, ROUNDS=30 times; Kafka's TransactionalMessageCopier
	@tools/setup.sh interop
	@$(PYTHON) -m tests.torture.transactions --rounds $(ROUNDS) --seed $(SEED)
	@$(PYTHON) -m tests.torture.transactions.kafkas_copier

chaos: setup ## kill, stop and cut off brokers, controllers and ZooKeepers of a cluster under load (BESIDE_KAFKA=1: Apache Kafka's too)
	@$(PYTHON) -m tests.torture.cluster --rounds $(ROUNDS) --seed $(SEED) --kinds "$(KINDS)" $(if $(BESIDE_KAFKA),--beside-kafka --save)
	@$(if $(KINDS),,$(PYTHON) -m tests.torture.mirroring --rounds $(ROUNDS) --seed $(SEED))

docs: ## the reference pages from the code, and a site of all pages in build/site
	@tools/setup.sh docs
	@$(PYTHON) tools/docs.py
	@$(PYTHON) -m sphinx -q -W --keep-going -n -c docs -d build/doctrees -b html . build/site
	@echo "written: build/site/index.html"

PIN = .venv/bin/uv pip compile -q $(if $(KEEP),,--upgrade) --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--custom-compile-command "make requirements" pyproject.toml

requirements: ## pin the development environment anew (KEEP=1: add what pyproject.toml asks for, and upgrade nothing else)
	@$(PIN) --extra dev -o requirements/dev.txt
	@$(PIN) --extra docs -c requirements/dev.txt -o requirements/docs.txt

clean: ## remove everything that the other targets made
	@rm -rf .venv .cache build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis demo-output
