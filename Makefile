# The only list of commands. Each target prepares what it needs by itself.
.DEFAULT_GOAL := help
.PHONY: help run test test-long check format bench docs conformance record-expr-cases record-template-cases audit mutation clean
SHELL := /bin/bash

VENV  := .venv
RUN   := $(VENV)/bin/
READY := $(VENV)/.ready

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): pyproject.toml uv.lock .ci/setup
	@.ci/setup $(VENV) && touch $@

run: $(READY)  ## the whole system on its embedded default, with a simulated fleet
	@$(RUN)hyperfleet demo $(ARGS)

test: $(READY)  ## the tests, without the long ones
	@.ci/servers
	$(RUN)pytest -n auto --dist worksteal $(ARGS)

test-long: $(READY)  ## the long tests: crashes, fuzzing, hostile texts, concurrency
	@.ci/servers
	$(RUN)pytest -n auto --dist worksteal -m long $(ARGS)

check: $(READY)  ## format, lint, types and import contracts
	$(RUN)ruff format --check .
	$(RUN)ruff check .
	$(RUN)mypy
	$(RUN)lint-imports

format: $(READY)  ## bring the code into shape
	$(RUN)ruff check --fix-only .
	$(RUN)ruff format .

bench: $(READY)  ## measure; figures go to docs/performance.md by hand
	$(RUN)python -m bench $(ARGS)

conformance: $(READY)  ## how much of the expr language's recorded answers we give
	$(RUN)python -m tests.conformance.expr $(ARGS)

record-expr-cases: $(READY)  ## ask the original expr language again for the answers to our own cases (needs Go, or gets it)
	$(RUN)python -m tests.conformance.expr_cases.record

record-template-cases: $(READY)  ## ask Go again for the texts of our own templates (needs Go, or gets it)
	$(RUN)python -m tests.conformance.adapter.record

docs: $(READY)  ## write the generated parts of docs/ and the JSON Schema anew
	$(RUN)python -m docs.generate

audit: $(READY)  ## known vulnerabilities of the dependencies, where a database of them can be reached
	@.ci/audit

mutation: $(READY)  ## which changed lines no test notices (takes long)
	rm -rf mutants
	$(RUN)mutmut run --max-children 2 $(ARGS)
	@$(RUN)mutmut results
	@$(RUN)mutmut results --all true | awk -F '[.: ]+' '{count[$$3 " " $$NF]++} END {for (key in count) print key, count[key]}' | sort

clean:  ## remove everything that make created
	rm -rf $(VENV) .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache mutants
