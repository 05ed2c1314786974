# `make` alone lists the targets.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

CLUSTER := e2e/cluster/cluster.py
NAME ?= dev
NODES ?= 4

##@ Look at it

.PHONY: demo
demo: ## Show the operator at work on a control plane of its own, leave both running (NODE=real: with containers, as root)
	@e2e/demo/demo.sh up

.PHONY: demo-down
demo-down: ## End what `make demo` started, and nothing else
	@e2e/demo/demo.sh down

.PHONY: cluster
cluster: ## Start a real control plane with simulated nodes under .cluster/NAME (NAME=dev NODES=4)
	@e2e/need.sh go python3 openssl
	@$(CLUSTER) up --name $(NAME) --nodes $(NODES)

.PHONY: cluster-down
cluster-down: ## End that control plane (NAME=dev)
	@$(CLUSTER) down --name $(NAME)

##@ Work on it

.PHONY: build
build: ## Build the operator: target/release/warmpool
	@e2e/need.sh cargo cc
	cargo build --release --locked

BIN ?= $(HOME)/.local/bin

.PHONY: plugin
plugin: build ## Link it as the plugin kubectl-warmpool into a folder of the PATH (BIN=~/.local/bin)
	@mkdir -p "$(BIN)"
	ln -sf "$(CURDIR)/target/release/warmpool" "$(BIN)/kubectl-warmpool"

.PHONY: crds
crds: ## Write crds/ anew from the types in src/api
	@e2e/need.sh cargo cc
	cargo run --locked --bin warmpool -- crds --out-dir crds

.PHONY: config
config: ## Write the manifests of config/ anew from the chart
	@e2e/need.sh go python3
	@$(CLUSTER) build helm
	config/generate.sh

.PHONY: fmt
fmt: ## Format the source
	cargo fmt

.PHONY: lint
lint: ## Refuse unformatted code, every warning of clippy, and mutants that are not made any more
	@e2e/need.sh cargo cc python3
	e2e/mutants/mutants.py --check
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings

.PHONY: audit
audit: ## Check licences, bans, sources and, where their database can be had, advisories of the dependencies with cargo-deny
	@e2e/need.sh cargo cc
	@command -v cargo-deny >/dev/null || { \
	  echo "cargo-deny is missing; installing it: cargo install --locked cargo-deny (some minutes)"; \
	  cargo install --locked cargo-deny; }
	cargo deny check --hide-inclusion-graph bans licenses sources
	@if cargo deny fetch db; then cargo deny check advisories; else \
	  echo "Known vulnerabilities were NOT checked: the database of advisories cannot be fetched from here."; fi

##@ Test it

.PHONY: test
test: lint unit e2e ## Everything a change has to pass: lint, unit and e2e (what .ci/run runs)

.PHONY: unit
unit: ## Unit and property tests: no cluster needed
	@e2e/need.sh cargo cc
	cargo test --locked
	$(EXPLORE)

EXPLORE := cargo test --locked --profile explore --test explore

.PHONY: explore
explore: ## Search the larger worlds of tests/explore for a schedule that breaks an invariant (EXPLORE_STATES=100000 of each)
	@e2e/need.sh cargo cc
	$(EXPLORE) -- --ignored --nocapture --test-threads 1

WALKS ?= 1000000
FROM ?= 0

.PHONY: soak
soak: ## Walk at random through worlds full of faults (WALKS=1000000 FROM=0, the first seed)
	@e2e/need.sh cargo cc
	WALKS=$(WALKS) FROM=$(FROM) $(EXPLORE) -- --nocapture walks

.PHONY: mutants
mutants: ## Take the operator's safeguards away one by one, and see each loss caught
	@e2e/need.sh cargo cc python3
	e2e/mutants/mutants.py

.PHONY: e2e
e2e: ## Tests against a real control plane, which is built on first use and started by the tests
	@e2e/need.sh cargo cc go python3 openssl
	@e2e/prometheus.sh >/dev/null
	$(CLUSTER) build
	$(CLUSTER) build helm
	cargo test --locked --test apiserver -- --ignored
	cargo test --locked --test chart -- --ignored

.PHONY: chart-test
chart-test: ## The part of e2e that is about the chart and config/: Helm and kubectl on a real control plane
	@e2e/need.sh cargo cc go python3 openssl
	$(CLUSTER) build
	$(CLUSTER) build helm
	cargo test --locked --test chart -- --include-ignored

.PHONY: storm
storm: ## Some of those tests again with up to 2,000 claims each: some minutes, and no part of `make test`
	@e2e/need.sh cargo cc go python3 openssl
	$(CLUSTER) build
	cargo test --locked --test apiserver -- big::

CHAOS_MINUTES ?= 20

.PHONY: chaos
chaos: ## Let everything fail in turn under load, then 3,000 random objects (CHAOS_MINUTES=20 SEED=N)
	@e2e/need.sh cargo cc go python3 openssl faketime
	$(CLUSTER) build
	CHAOS_MINUTES=$(CHAOS_MINUTES) cargo test --locked --test apiserver -- chaos::
	cargo test --locked --test apiserver -- faults::
	cargo test --locked --test apiserver -- watches::
	OBJECTS=3000 cargo test --locked --test apiserver -- drawn::

CLAIMS ?= 50000

.PHONY: churn
churn: ## See that the operator does not grow with the claims that it has served (CLAIMS=50000)
	@e2e/need.sh cargo cc go python3 openssl
	$(CLUSTER) build
	CLAIMS=$(CLAIMS) cargo test --locked --test apiserver -- churn::

.PHONY: image-test
image-test: ## Build the image with buildah and check it (root; some minutes; not part of `test`)
	@e2e/image/test.sh

.PHONY: e2e-node
e2e-node: ## Tests with real containers, on a kubelet started on this machine; needs root (KEEP=1 leaves it up)
	@e2e/need.sh cargo cc go python3 openssl git
	@e2e/node/packages.sh buildah
	@e2e/node/story/run.py $(if $(KEEP),--keep)

.PHONY: bench
bench: ## Measure the planner alone, then the operator on a control plane of the benchmark's own
	@e2e/need.sh cargo cc go python3 openssl
	$(CLUSTER) build
	cargo bench --locked --bench planner --bench cluster

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
