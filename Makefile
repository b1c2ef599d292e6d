# make demo   find a real fault in a real nginx + PHP-FPM service
# make test   everything that is checked before a change goes in
# Both need Go and, for the parts in network namespaces, root.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
export CGO_ENABLED = 0

.PHONY: build install-deps demo test bench bpf clean

build: bin/plimsoll

.PHONY: bin/plimsoll
bin/plimsoll:
	@command -v go >/dev/null || { echo "make: Go is not in the PATH; see https://go.dev/doc/install" >&2; exit 1; }
	go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o $@ ./cmd/plimsoll

install-deps:
	@scripts/install-deps

demo: install-deps build
	bin/plimsoll lab tune --twin throughput-chain

test: build
	@scripts/install-deps tests
	go vet ./...
	go test -timeout 20m ./...

bench: build
	go test -run '^$$' -bench . -benchmem ./...

# bpf builds the BPF objects anew: clang 14 and llvm-strip. They are committed, so
# that nothing else needs a C compiler; git diff shows whether they were stale.
bpf:
	@command -v clang >/dev/null || { echo "make: clang is not here; apt-get install clang llvm" >&2; exit 1; }
	go generate ./internal/trace/...
	PLIMSOLL_BPF_BUILT=1 go test -count=1 -run '^TestObjectsAreFresh$$' ./internal/trace

clean:
	rm -rf bin
