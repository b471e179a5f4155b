# Every target does its own setup: it needs Rust, Python >= 3.11 and a C compiler, nothing else.
XTASK := cargo run --quiet --locked --package xtask --

.PHONY: help demo recipes cookbook test test-full test-sdk test-deployments test-cuda-sim test-gpu kernels compatibility soak fuzz schemathesis deploy-check build dist lint bench model openapi sdk check-sdk

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## train a real model through the official SDK and show what it learned
	@$(XTASK) demo $(ARGS)

test: ## all lints and tests: those of Rust, and the SDK suite against a real server
	@$(XTASK) test

test-full: ## the same with all layouts of slow tests, and the server without its features: before an issue is resolved
	@$(XTASK) test-full

test-sdk: ## only the SDK suite; ARGS go to pytest
	@$(XTASK) test-sdk $(ARGS)

test-deployments: ## the SDK suite on SQLite, on PostgreSQL, and on two API servers with two workers of one rank and of two
	@$(XTASK) test-deployments

compatibility: ## drive every name of the SDK and write the generated part of docs/users/compatibility.md
	@$(XTASK) compatibility

soak: ## half an hour of attacks, and of mixed work of 64 tenants under faults; ARGS go to tests/soak/soak.py
	@$(XTASK) soak $(ARGS)

fuzz: ## search for inputs that a decoder does not survive, guided by coverage; ARGS are targets and seconds of processor time
	@$(XTASK) fuzz $(ARGS)

schemathesis: ## random requests after the API description with the keys of three roles; ARGS go to tests/schemathesis/run.py
	@$(XTASK) schemathesis $(ARGS)

test-cuda-sim: ## the simulated CUDA libraries, NVIDIA's compiler and assembler on kernels, and the SDK suite on a simulated GPU; ARGS go to pytest
	@$(XTASK) test-cuda-sim $(ARGS)

test-gpu: ## the op suite and the tests of CUDA on the GPU of this machine; ARGS go to pytest
	@$(XTASK) test-gpu $(ARGS)

kernels: ## compile the CUDA kernels to the PTX and the cubins that are committed, and list the registers and shared memory that they need
	@$(XTASK) kernels

deploy-check: ## validate the templates for deployments
	@$(XTASK) deploy-check

recipes: ## train with each recipe on the test model, check its effect, draw the figures; ARGS go to checks/run.py
	@$(XTASK) recipes $(ARGS)

cookbook: ## run programs of tinker-cookbook, unpatched, against a server; ARGS go to tests/cookbook/run.py
	@$(XTASK) cookbook $(ARGS)

build: ## build target/release/trainyard
	@$(XTASK) build

dist: ## package the release binary in dist/: wheels, an archive, a Debian package, a bill of materials, checksums
	@$(XTASK) dist

lint: ## check formatting, the wording of comments and messages, and lints
	@$(XTASK) lint

bench: ## measure against PyTorch with PEFT on the test model, and the API; ARGS go to bench/run.py
	@$(XTASK) bench $(ARGS)

model: ## download the test model into .cache/
	@$(XTASK) model

openapi: ## write openapi/openapi.json from the server's code
	@$(XTASK) openapi

sdk: ## write the generated parts of the SDKs from openapi/openapi.json
	@$(XTASK) sdk

check-sdk: ## check the generated parts of the SDKs, their types and their documentation
	@$(XTASK) check-sdk
