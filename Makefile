# The targets that everyone uses: people, .ci/run and the README. `make` lists them.

GO          ?= go
GOFUMPT     := $(GO) run mvdan.cc/gofumpt@v0.12.0
STATICCHECK := $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2

FUZZTIME    ?= 30s
BENCH       ?= .
COUNT       ?= 1
CHAOSTIME   ?= 60s
SOAKTIME    ?= 30m
QUICK       ?=
TESTFLAGS   ?=
# The packages that test and race work on.
PKG         ?= ./...

# probe scans with simd/archsimd where the CPU has it. A plain `go build` gets
# the portable path, which test and check cover as well.
export GOEXPERIMENT := simd

.DEFAULT_GOAL := help
.PHONY: build run test check race fuzz bench bench-e2e chaos soak reference help

build: ## build bin/sluice, a static binary, and the commands beside it
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/...

run: build ## start a router with simulated engines and show what it does (ONCE=1: exit after the tour)
	bin/tour -sluice bin/sluice

test: ## run all tests, in random order (PKG=./probe/... TESTFLAGS=-v)
	$(GO) test -shuffle=on $(TESTFLAGS) $(PKG)
	GOEXPERIMENT= $(GO) test -shuffle=on $(TESTFLAGS) ./probe/...
	@$(GO) test -v -run '^TestInstalled$$' ./bench/clients | grep 'skipped:' || true

race: ## run all tests under the race detector
	$(GO) test -race -shuffle=on $(TESTFLAGS) $(PKG)

check: ## formatting, vet, staticcheck, the rules of the house, go.mod
	@files=$$($(GOFUMPT) -l .) || exit 1; test -z "$$files" || { echo "not formatted, run gofumpt -w:"; echo "$$files"; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags soak ./bench
	GOEXPERIMENT= $(GO) vet ./probe/...
	GOEXPERIMENT= GOARCH=arm64 $(GO) vet ./probe/...
	$(STATICCHECK) ./...
	$(GO) test -run '^TestHouse' ./bench
	$(GO) mod tidy -diff

fuzz: ## run every fuzz target in turn (FUZZTIME=30s each, PKG=./probe/...)
	@list=$$($(GO) test -list '^Fuzz' $(PKG)) || { echo "$$list"; exit 1; }; \
	echo "$$list" | awk '/^Fuzz/ {names = names " " $$1} /^ok/ {n = split(names, f, " "); for (i = 1; i <= n; i++) print $$2, f[i]; names = ""}' | \
	while read -r pkg name; do \
		echo "$$pkg $$name"; \
		$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$pkg" || exit 1; \
	done

bench: ## run all benchmarks (BENCH=regexp COUNT=6 PKG=./probe/...)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PKG)

bench-e2e: ## the router beside nginx, haproxy and Go's proxy, about 15 minutes (QUICK=1: under two); report in bench/report
	$(GO) run ./bench/e2e $(if $(QUICK),quick) out=bench/report

chaos: ## workers that die, stall and lie under 64 clients (CHAOSTIME=60s)
	$(GO) test -race -count 1 -timeout 10m -run '^TestChaos$$' -v ./bench -args -chaos $(CHAOSTIME)

soak: ## the built command for a long time, and 1,000 reloads under load (SOAKTIME=30m)
	$(GO) test -count 1 -timeout 20m -run '^TestReloadsUnderLoad$$' -v ./bench -args -reloads 1000
	$(GO) test -tags soak -count 1 -timeout 0 -run '^TestSoak$$' -v ./bench -args -soak $(SOAKTIME)

reference: ## write configs/REFERENCE.md and configs/schema.json anew
	$(GO) test -count 1 -run '^TestReference$$' ./configs -args -update

help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
