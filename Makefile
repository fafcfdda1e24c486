# `make help` lists what people type. Tools come from the machine where it has them, else from tests/testbed.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VERSION := $(shell sed -n '/^\[workspace.package\]/,/^$$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
IMG ?= backup-operator:v$(VERSION)
RUNNER_IMG ?= backup-runner:v$(VERSION)
# The runner without clients and servers of databases. Empty: all runs use RUNNER_IMG.
SLIM_RUNNER_IMG ?=
ENABLE_WEBHOOKS ?= false
OVERLAY ?= deploy/overlays/webhook
TESTBED := tests/testbed/testbed
KUBECTL ?= $(shell command -v kubectl || $(TESTBED) kubectl)

# The programs are linked statically, so that they run in every image and on every distribution.
TRIPLE := $(shell rustc -vV | sed -n 's/^host: //p')
TARGET_DIR := $(abspath $(or $(CARGO_TARGET_DIR),target))
BIN := $(TARGET_DIR)/$(TRIPLE)/release
STATIC := CARGO_TARGET_$(shell echo $(TRIPLE) | tr a-z- A-Z_)_RUSTFLAGS="-C target-feature=+crt-static"

##@ Use
.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '\nVariables: IMG=%s RUNNER_IMG=%s KUBECTL, KUBECONFIG; FORCE=1 (uninstall), KEEP=1 (test), CLUSTER=context (demo)\n' '$(IMG)' '$(RUNNER_IMG)'

.PHONY: demo
demo: ## On a bare machine: a cluster, a database, two backups, a restore that is compared, a dropped table back. CLUSTER=context uses a cluster of yours.
	@tests/demo/demo up

.PHONY: demo-down
demo-down: ## Remove all that `make demo` made.
	@tests/demo/demo down

.PHONY: install
install: ## Put the resource definitions into the cluster of KUBECONFIG.
	$(KUBECTL) apply --server-side --force-conflicts -k deploy/crds
	$(KUBECTL) wait --for=condition=Established --timeout=30s -f <($(KUBECTL) kustomize deploy/crds)

.PHONY: uninstall
uninstall: ## Remove the resource definitions; refuses while objects of theirs exist unless FORCE=1.
	@KUBECTL='$(KUBECTL)' FORCE='$(FORCE)' deploy/uninstall

.PHONY: deploy
deploy: install ## Put the operator into the cluster: IMG=… RUNNER_IMG=… SLIM_RUNNER_IMG=… OVERLAY=deploy/overlays/….
	$(render) | $(KUBECTL) apply --server-side --force-conflicts -f -
	$(render) | $(KUBECTL) get -f - -o jsonpath='{range .items[?(@.kind=="Deployment")]}-n {.metadata.namespace} deployment/{.metadata.name}{end}' | \
	  xargs $(KUBECTL) rollout status --timeout=120s

.PHONY: undeploy
undeploy: ## Remove the operator; resource definitions and backups stay.
	$(render) | $(KUBECTL) delete --ignore-not-found --wait -f -

.PHONY: run
run: install ## Run the operator on this machine against the cluster of KUBECONFIG: ENABLE_WEBHOOKS=false.
	ENABLE_WEBHOOKS=$(ENABLE_WEBHOOKS) RUNNER_IMAGE=$(RUNNER_IMG) SLIM_RUNNER_IMAGE=$(SLIM_RUNNER_IMG) LEADER_ELECT=false \
	METRICS_BIND_ADDRESS=127.0.0.1:8080 HEALTH_PROBE_BIND_ADDRESS=127.0.0.1:8081 cargo run -p operator

# The manifests of the operator with the images put in.
render = $(KUBECTL) kustomize $(OVERLAY) | sed -e 's|image: backup-operator:.*|image: $(IMG)|' \
	-e 's|value: backup-runner:.*|value: $(RUNNER_IMG)|' \
	-e '/name: SLIM_RUNNER_IMAGE/{n;s|value:.*|value: "$(SLIM_RUNNER_IMG)"|}'

##@ Build
.PHONY: build
build: ## Build operator, runner and plugin, linked statically.
	$(STATIC) cargo build --release --locked --target $(TRIPLE) -p operator -p runner -p kubectl-backup

.PHONY: docker-build
docker-build: image-context ## Build the images: IMG=… RUNNER_IMG=… SLIM_RUNNER_IMG=… (if set); with docker where an engine answers, else with buildah.
	@if docker info >/dev/null 2>&1; then \
	  docker build -t $(IMG) -f deploy/images/operator.Dockerfile target/image/operator; \
	  docker build -t $(RUNNER_IMG) -f deploy/images/runner.Dockerfile target/image/runner; \
	  [ -z "$(SLIM_RUNNER_IMG)" ] || docker build -t $(SLIM_RUNNER_IMG) -f deploy/images/runner-slim.Dockerfile target/image/runner-slim; \
	else \
	  operator=$$($(TESTBED) image $(IMG) deploy/images/operator.Dockerfile target/image/operator); \
	  runner=$$($(TESTBED) image $(RUNNER_IMG) deploy/images/runner.Dockerfile target/image/runner); \
	  printf '%s: %s\n' $(IMG) "$$operator" $(RUNNER_IMG) "$$runner"; \
	  [ -z "$(SLIM_RUNNER_IMG)" ] || \
	    printf '%s: %s\n' $(SLIM_RUNNER_IMG) "$$($(TESTBED) image $(SLIM_RUNNER_IMG) deploy/images/runner-slim.Dockerfile target/image/runner-slim)"; \
	fi

# One build context an image, so that an image is rebuilt only when its own program changed.
.PHONY: image-context
image-context: build
	@mkdir -p target/image/operator target/image/runner target/image/runner-slim
	@cp -p $(BIN)/backup-runner target/image/runner-slim/
	@cp -p $(BIN)/backup-operator target/image/operator/
	@cp -p $(BIN)/backup-runner deploy/images/mysql-client.sha256 target/image/runner/

.PHONY: manifests
manifests: ## Regenerate deploy/crds, docs/fields.md and docs/reasons.md from the Rust types, and deploy/install.yaml.
	SNAPSHOTS=overwrite cargo test -q -p crds --test generated
	$(KUBECTL) kustomize deploy/overlays/default >deploy/install.yaml

.PHONY: krew-package
krew-package: build ## Make the krew archive of this machine's platform and its manifest, in dist/.
	@krew/package $(BIN)/kubectl-backup v$(VERSION)

##@ Check
.PHONY: fmt
fmt: ## Format the code.
	cargo fmt --all

.PHONY: lint
lint: ## Check format, lints and scripts.
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	tests/run scripts

.PHONY: advisories
advisories: ## Known holes of what is built in, by RustSec's database.
	@tests/run advisories

.PHONY: test
test: ## Everything: format, lints, unit tests, and the real cluster. KEEP=1 leaves the cluster up.
	@tests/run all

.PHONY: test-unit
test-unit: ## What needs no cluster.
	@tests/run static lints unit

.PHONY: e2e
e2e: ## What needs the cluster: TESTS='name…' picks, KEEP=1 leaves it up.
	@tests/run e2e

.PHONY: test-long
test-long: ## What takes long: a million schedules against the oracle, 900 random schemas dumped and restored, ten minutes of random kills on the cluster.
	@tests/run long

.PHONY: bench
bench: build ## Measure beside the peers (MYDUMPER=PATH: one more), print the table, write docs/benchmarks.md. On a machine that does nothing else.
	@$(TESTBED) packages mariadbd:mariadb-server mariadb-dump:mariadb-client zstd:zstd gzip:gzip pigz:pigz mydumper:mydumper
	$(STATIC) cargo build --release --locked --target $(TRIPLE) -p dump --example nothing
	@tests/bench/run $(BIN)

.PHONY: faults
faults: ## What breaks in a cluster, one after the other, with runs due: lost, doubled, time to recover.
	@tests/run faults

# For the scripts: make -s print-BIN
.PHONY: print-%
print-%:
	@echo '$($*)'
