# What people type; how it is done is in scripts/.

export CGO_ENABLED ?= 0

.PHONY: run first-minute build test attack lint screenshots windows commits audit bench soak crash chaos sim elections fuzz dist packages systemd reproducible generate clean

run: ## play the demo: from a release at hand, or compiled; stay up
	scripts/run.sh

first-minute: ## how long make run takes from a fresh clone with an empty build cache
	scripts/firstminute.sh

build: ## the binary and the example game server, into bin/
	GOWORK=off GOGC=off GOMEMLIMIT=1GiB go build -trimpath -o bin/ ./cmd/... ./examples/...

test: ## install what the tests need and run all of them
	scripts/test.sh

attack: ## the attacks on the running binary and on its doors; make test runs them too
	scripts/attack.sh

lint: ## format, vet, staticcheck
	scripts/lint.sh
	scripts/staticcheck.sh

screenshots: ## the pictures of the console in docs/images, from the test in a browser
	rm -rf bin/screenshots && mkdir -p bin/screenshots docs/images
	CONSOLE_SHOTS=$(CURDIR)/bin/screenshots go test ./e2e -run '^TestConsoleInABrowser$$' -count=1 -timeout=10m
	cd bin/screenshots && cp overview-light.png fleet-metrics-dark.png game-session-light.png $(CURDIR)/docs/images/

windows: export GOOS = windows
windows: ## compile and vet for Windows; make test only checks the types. WINE=wine runs tests of what differs there, too, from Wine 10 on
	go build -trimpath -o /dev/null ./cmd/muster
	go vet ./cmd/... ./gameserver/... ./gameclient/...
ifdef WINE
	go test -trimpath -vet=off -exec $(WINE) -skip '^TestTerminate$$' ./internal/atomicfile ./internal/socketerror ./internal/buildfetch ./internal/agent/process # Wine delivers no Ctrl-Break
endif

BASE ?= origin/main
commits: ## each commit since BASE builds and vets
	scripts/commits.sh $(BASE)

bench: build ## the table of docs/performance.md
	bin/muster bench

MINUTES ?= 20
soak: build ## a small load for MINUTES that fails when the service grows
	bin/muster bench soak --for $(MINUTES)m

crash: ## kill -9 and power cuts under load for MINUTES each, with a checker of what clients were told
	CRASH_MINUTES=$(MINUTES) go test ./e2e -run '^TestHistoryThrough' -count=1 -timeout=0 -v

RUNS ?= 10
chaos: ## three nodes in network namespaces under every fault, RUNS times; SEED=… repeats one, FAULT=… takes those with this in their name
	CHAOS_RUNS=$(RUNS) CHAOS_SEED=$(SEED) CHAOS_FAULT="$(FAULT)" go test ./e2e -run '^TestChaos$$' -count=1 -timeout=0 -v

audit: ## gosec, and known vulnerabilities of what is linked
	scripts/vulnerabilities.sh
	scripts/gosec.sh

SEEDS ?= 100
sim: ## the simulator, with SEEDS new seeds
	SIM_SEEDS=$(SEEDS) go test ./internal/sim/... -count=1 -timeout=0

elections: ## the simulation of the cluster's journal, with SEEDS new seeds
	RAFT_SEEDS=$(SEEDS) go test ./internal/journal/raft -run '^TestElections$$' -count=1 -timeout=0

FUZZTIME ?= 10s
fuzz: ## each fuzz test for FUZZTIME
	scripts/fuzz.sh $(FUZZTIME)

dist: ## a release, into dist/: binaries, archives, packages and images, with checksums and bills of materials
	scripts/dist.sh

packages: ## the tests of packages, images, the Helm chart and the Compose file with all their tools; installs those
	scripts/packages.sh

systemd: build ## the .deb on a real systemd, in a container of its own; takes root. SUITE=trixie takes that Debian
	scripts/systemd.sh

reproducible: ## builds a release twice, and compares
	scripts/reproducible.sh

generate:
	go generate ./...

clean:
	rm -rf bin dist
