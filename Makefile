# `make` alone lists the targets.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

CLUSTER := e2e/cluster/cluster.py
NAME ?= dev
NODES ?= 4

# Another Kubernetes than the usual one: VERSION=1.30.14. Not read from the environment, where VERSION may mean anything.
VERSION :=
# For `make release` it is the version of warmpool.
RELEASE := $(if $(filter release,$(MAKECMDGOALS)),$(VERSION))
ifneq ($(filter-out $(RELEASE),$(VERSION)),)
export WARMPOOL_KUBERNETES := $(VERSION)
export WARMPOOL_CLUSTER_BIN := $(CURDIR)/.cluster/$(VERSION)/bin
endif

# The major version of Helm in the tests of the chart: 3 or 4.
HELM := 4
export WARMPOOL_HELM := helm$(filter-out 4,$(HELM))

##@ See it

.PHONY: demo
demo: ## Show the operator at work on a real control plane, and leave both running (NODE=real: with containers, as root)
	@e2e/demo/demo.sh up

.PHONY: demo-down
demo-down: ## Stop the control plane and the operator that `make demo` started
	@e2e/demo/demo.sh down

.PHONY: cluster
cluster: ## Start a real control plane with simulated nodes under .cluster/NAME (NAME=dev NODES=4)
	@e2e/need.sh go python3 openssl
	@$(CLUSTER) up --name $(NAME) --nodes $(NODES)

.PHONY: cluster-down
cluster-down: ## Stop that control plane (NAME=dev)
	@$(CLUSTER) down --name $(NAME)

##@ Change it

.PHONY: build
build: ## Build the operator: target/release/warmpool
	@e2e/need.sh cargo cc
	cargo build --release --locked

BIN ?= $(HOME)/.local/bin

.PHONY: plugin
plugin: build ## Build the kubectl plugin and link kubectl-warmpool into a folder of the PATH (BIN=~/.local/bin)
	@mkdir -p "$(BIN)"
	ln -sf "$(CURDIR)/target/release/warmpool" "$(BIN)/kubectl-warmpool"
	ln -sf "$(CURDIR)/target/release/warmpool" "$(BIN)/kubectl_complete-warmpool"

.PHONY: crds
crds: ## Generate crds/, and the chart's copy of it, from the types in src/api
	@e2e/need.sh cargo cc
	cargo run --locked --bin warmpool -- crds --out-dir crds
	cp crds/*.yaml charts/warmpool/files/crds/

.PHONY: config
config: ## Generate the manifests of config/ from the chart
	@e2e/need.sh go python3
	@$(CLUSTER) build $(WARMPOOL_HELM)
	config/generate.sh

.PHONY: reference
reference: ## Generate the pages of docs/reference, and the pictures of docs
	@e2e/need.sh cargo cc python3
	WRITE_REFERENCE=1 cargo test --locked --test docs -- reference
	docs/pictures.py

.PHONY: session
session: ## Run the first ten minutes of docs on a real control plane, and draw them (WRITE=1 draws the picture of README)
	@e2e/need.sh cargo cc go python3 openssl
	@$(CLUSTER) build
	@$(CLUSTER) build $(WARMPOOL_HELM)
	TRANSCRIPT=$(CURDIR)/.cluster/session.json cargo test --locked --test chart -- every_command_of_the_first_ten_minutes
	docs/session.py .cluster/session.json $(if $(WRITE),docs/assets,.cluster)/session.svg

DOCS := .cluster/docs

.PHONY: docs
docs: ## Build the site of the documentation into .cluster/site (SOURCE=URL of the files, for links to them)
	@e2e/need.sh python3
	@cmp -s docs/requirements.txt $(DOCS)/requirements.txt || { rm -rf $(DOCS); python3 -m venv $(DOCS) && \
	  $(DOCS)/bin/pip install --quiet --disable-pip-version-check -r docs/requirements.txt && cp docs/requirements.txt $(DOCS)/; }
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict
	@echo "open $(CURDIR)/.cluster/site/index.html, or serve that folder"

.PHONY: release
release: ## Build what this machine can build of a release into release/VERSION (VERSION=0.1.0 IMAGE=REPOSITORY SOURCE=URL)
	@e2e/need.sh cargo cc go python3
	@test -n "$(RELEASE)" || { echo "say which version: make release VERSION=0.1.0" >&2; exit 1; }
	@$(CLUSTER) build $(WARMPOOL_HELM)
	IMAGE="$(IMAGE)" SOURCE="$(SOURCE)" packaging/release.sh $(RELEASE) release/$(RELEASE)

.PHONY: fmt
fmt: ## Format the source
	cargo fmt

.PHONY: lint
lint: ## Check formatting, clippy warnings, and that every mutant still applies
	@e2e/need.sh cargo cc python3
	docs/pictures.py --check
	e2e/mutants/mutants.py --check
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings

.PHONY: audit
audit: ## Check licenses, bans, sources and advisories of the dependencies with cargo-deny
	@e2e/need.sh cargo cc
	@command -v cargo-deny >/dev/null || { \
	  echo "cargo-deny is missing. Installing it (some minutes): cargo install --locked cargo-deny"; \
	  cargo install --locked cargo-deny; }
	cargo deny check --hide-inclusion-graph bans licenses sources
	@if cargo deny fetch db; then cargo deny check advisories; else \
	  echo "Known vulnerabilities were NOT checked: the advisory database could not be fetched."; fi

##@ Test it

.PHONY: test
test: ## Run everything that a change has to pass: lint, unit and e2e (as .ci/run does)
	@e2e/need.sh cargo cc go python3 openssl
	@e2e/meanwhile.sh "$(CLUSTER) build" $(MAKE) lint unit
	@$(MAKE) e2e

.PHONY: unit
unit: ## Run unit and property tests; they need no cluster
	@e2e/need.sh cargo cc python3
	e2e/cluster/build_test.py
	e2e/cluster/processes_test.py
	cargo test --locked
	$(EXPLORE) --test autoscaling

EXPLORE := cargo test --locked --no-default-features --config tests/explore/profile.toml --test explore

.PHONY: explore
explore: ## Search larger worlds for a schedule that breaks an invariant (EXPLORE_STATES=100000 per scene)
	@e2e/need.sh cargo cc
	$(EXPLORE) -- --ignored --nocapture --test-threads 1

WALKS ?= 1000000
FROM ?= 0

.PHONY: soak
soak: ## Run random schedules full of faults against the invariants (WALKS=1000000, first seed FROM=0)
	@e2e/need.sh cargo cc
	WALKS=$(WALKS) FROM=$(FROM) $(EXPLORE) -- --nocapture walks

.PHONY: mutants
mutants: ## Remove the operator's safeguards one by one, and check that a test catches each removal
	@e2e/need.sh cargo cc go python3 openssl faketime
	$(CLUSTER) build
	e2e/mutants/mutants.py

# Six tests at a time take both processors while they share operators. Of those that need a control plane alone, most wait.
LABS ?= 4
# Spares processor time: Go's programs collect garbage a quarter as often, and etcd does not wait for the disk. What it has
# written outlives its process, and no test crashes the machine. Benchmarks leave both as they are by default.
SPARING := GOGC=400 GOMEMLIMIT=1GiB ETCD_UNSAFE_NO_FSYNC=true

.PHONY: e2e
e2e: ## Run the tests against real control planes; the first run builds Kubernetes (VERSION=1.30.14; on LABS=4 of them)
	@e2e/need.sh cargo cc go python3 openssl
	@e2e/prometheus.sh >/dev/null
	@e2e/other_crds.sh >/dev/null
	$(CLUSTER) build
	$(CLUSTER) build $(WARMPOOL_HELM)
	e2e/examples.sh
	cargo test --locked --no-run --test apiserver --test chart
	$(SPARING) e2e/side_by_side.py "cargo test --locked --quiet --test chart -- --ignored" \
	  "LABS=$(LABS) cargo test --locked --quiet --test apiserver -- --ignored --test-threads 6"

.PHONY: chart-test
chart-test: ## Run only the e2e tests of the chart and config/, with Helm and kubectl on a real control plane (HELM=4)
	@e2e/need.sh cargo cc go python3 openssl
	$(CLUSTER) build
	$(CLUSTER) build $(WARMPOOL_HELM)
	cargo test --locked --test chart -- --include-ignored

.PHONY: storm
storm: ## Run tests with up to 2,000 claims each (some minutes; not part of test)
	@e2e/need.sh cargo cc go python3 openssl
	$(CLUSTER) build
	cargo test --locked --test apiserver -- big::

CHAOS_MINUTES ?= 20

.PHONY: chaos
chaos: ## Let each component fail in turn under load, then try 3,000 random objects (CHAOS_MINUTES=20 SEED=N)
	@e2e/need.sh cargo cc go python3 openssl faketime
	$(CLUSTER) build
	CHAOS_MINUTES=$(CHAOS_MINUTES) cargo test --locked --test apiserver -- chaos::
	cargo test --locked --test apiserver -- faults::
	cargo test --locked --test apiserver -- watches::
	OBJECTS=3000 cargo test --locked --test apiserver -- drawn::

CLAIMS ?= 50000

.PHONY: churn
churn: ## Check that the operator's memory does not grow with the claims it has served (CLAIMS=50000)
	@e2e/need.sh cargo cc go python3 openssl
	$(CLUSTER) build
	CLAIMS=$(CLAIMS) cargo test --locked --test apiserver -- churn::

.PHONY: image-test
image-test: ## Build the image with buildah and check it, as root (some minutes; not part of test)
	@e2e/image/test.sh

.PHONY: e2e-node
e2e-node: ## Run the tests with real containers on a kubelet on this machine, as root (KEEP=1 leaves it running)
	@e2e/need.sh cargo cc go python3 openssl git
	@e2e/node/packages.sh buildah
	@e2e/examples.sh
	@e2e/node/story/run.py $(if $(KEEP),--keep)

# The oldest Kubernetes that README and the chart promise, one in the middle, and the newest. Each takes a build of some
# minutes and some 400 MB in .cluster/VERSION.
VERSIONS ?= 1.30.14 1.33.13 1.37.2

.PHONY: versions
versions: ## Run e2e on the oldest promised Kubernetes, one in the middle and the newest, with Helm 4 and 3 (VERSIONS="1.30.14")
	@e2e/each.py .cluster/versions \
	  $(foreach version,$(VERSIONS),"e2e VERSION=$(version)" "chart-test VERSION=$(version) HELM=3")

# WRITE=1 writes the figures of this run into docs/performance.md, and draws a burst with and without refill that yields.
WRITE :=
FIGURES := $(if $(WRITE),-- --markdown docs/performance.md --plots docs/performance)
WITHOUT_YIELD := target/without-yield/warmpool

.PHONY: bench
bench: ## Measure plans, decisions and, three times, the operator on a control plane (over an hour on a quiet machine; WRITE=1)
	@e2e/need.sh cargo cc go python3 openssl
	$(CLUSTER) build
	$(if $(WRITE),benches/cluster/without_yield.py $(WITHOUT_YIELD))
	cargo bench --locked --bench planner
	cargo bench --locked --bench decisions $(FIGURES)
	cargo bench --locked --bench cluster $(FIGURES) $(if $(WRITE),--without-yield $(WITHOUT_YIELD))

.PHONY: bench-quick
bench-quick: ## Measure 20 claims/s, a burst and a fill once, each beside its floor, in some five minutes after the build
	@e2e/need.sh cargo cc go python3 openssl
	$(CLUSTER) build
	cargo bench --locked --bench cluster -- --quick

.PHONY: flamegraph
flamegraph: ## Record with perf where the operator's processor time goes, and draw it (WRITE=1 draws into docs/performance)
	@e2e/need.sh cargo cc go python3 openssl perf
	$(CLUSTER) build
	benches/flamegraph/run.sh $(if $(WRITE),docs/performance docs/performance.md)

.PHONY: everything
everything: ## Run each target that tests, measures or stands in README, as root (hours); called again, go on with those that have not passed
	@e2e/each.py .cluster/everything lint unit e2e chart-test session audit docs "plugin BIN=.cluster/everything" \
	  "--keep-going demo demo-down" "--keep-going demo demo-down NODE=real" image-test e2e-node storm churn chaos mutants \
	  explore soak versions bench-quick flamegraph bench

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
