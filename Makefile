# What people type; how it is done is in scripts/.

export CGO_ENABLED ?= 0

.PHONY: run build test lint bench sim fuzz dist generate clean

run: build ## build, start the service, play the demo through it, stay up
	bin/muster demo

build: ## the binary and the example game server, into bin/
	go build -trimpath -o bin/ ./cmd/... ./examples/...

test: ## install what the tests need and run all of them
	scripts/test.sh

lint: ## format, vet, staticcheck
	scripts/lint.sh

bench: build ## the table of docs/performance.md
	bin/muster bench

SEEDS ?= 100
sim: ## the simulator, with SEEDS new seeds
	SIM_SEEDS=$(SEEDS) go test ./internal/sim/... -count=1 -timeout=0

FUZZTIME ?= 10s
fuzz: ## each fuzz test for FUZZTIME
	scripts/fuzz.sh $(FUZZTIME)

dist: ## static binaries for all systems, with checksums, into dist/
	scripts/dist.sh

generate:
	go generate ./...

clean:
	rm -rf bin dist
