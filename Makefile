# Every target does its own setup: it needs Rust, Python >= 3.11 and a C compiler, nothing else.
XTASK := cargo run --quiet --locked --package xtask --

.PHONY: help demo test test-sdk test-deployments test-cuda-sim soak deploy-check build lint bench model openapi

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## train a real model through the official SDK and show what it learned
	@$(XTASK) demo

test: ## lint, Rust tests, then the SDK suite against a real server
	@$(XTASK) test

test-sdk: ## the SDK suite alone; ARGS go to pytest
	@$(XTASK) test-sdk $(ARGS)

test-deployments: ## the SDK suite on SQLite, on PostgreSQL, and on two API servers with two workers
	@$(XTASK) test-deployments

soak: ## half an hour of mixed work of 64 tenants under faults; ARGS go to tests/soak/soak.py
	@$(XTASK) soak $(ARGS)

test-cuda-sim: ## the simulated CUDA libraries, with kernels that NVIDIA's compiler compiles
	@$(XTASK) test-cuda-sim $(ARGS)

deploy-check: ## validate the templates for deployments
	@$(XTASK) deploy-check

build: ## build target/release/trainyard
	@$(XTASK) build

lint: ## check formatting and lints
	@$(XTASK) lint

bench: ## measure against PyTorch with PEFT on the test model, and the API; ARGS go to bench/run.py
	@$(XTASK) bench $(ARGS)

model: ## download the test model into .cache/
	@$(XTASK) model

openapi: ## write openapi/openapi.json from the server's code
	@$(XTASK) openapi
