# make demo   find a real fault in a real nginx + PHP-FPM service
# make test   everything that is checked before a change goes in
# make release   binaries, archives, packages, checksums and SBOM, in dist
# make install   the binary, man pages and completions, below PREFIX (/usr/local)
# They need some Go (scripts/go fetches a newer one if need be) and, for the parts in
# network namespaces, root.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
PREFIX ?= /usr/local
GO = scripts/go
export CGO_ENABLED = 0

.PHONY: build install-deps demo test bench bpf clean release install

build: bin/plimsoll

.PHONY: bin/plimsoll
bin/plimsoll:
	$(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o $@ ./cmd/plimsoll

install-deps:
	@scripts/install-deps

demo: install-deps build
	bin/plimsoll lab tune --twin throughput-chain --report bin/demo.html

# Three packages, and four tests of each, at a time, however many CPUs there are: many only wait, others load
# the machine on purpose, and some of what they read is the whole machine's. What fails is run once more, alone, and said.
# They are vetted before, and built without DWARF: they send themselves to other machines.
test: build
	@scripts/install-deps tests
	$(GO) vet ./...
	$(GO) run ./scripts/gotest -timeout=60m -p=3 -parallel=4 -vet=off -ldflags=-w ./...

bench: build
	$(GO) test -run '^$$' -bench . -benchmem ./...

# bpf builds the BPF objects anew: clang 14 and llvm-strip. They are committed, so
# that nothing else needs a C compiler; git diff shows whether they were stale.
bpf:
	@command -v clang >/dev/null || { echo "make: clang is not here; apt-get install clang llvm" >&2; exit 1; }
	$(GO) generate ./internal/trace/...
	PLIMSOLL_BPF_BUILT=1 $(GO) test -count=1 -run '^TestObjectsAreFresh$$' ./internal/trace

release:
	@scripts/release dist

install: build
	install -D -m 755 bin/plimsoll $(DESTDIR)$(PREFIX)/bin/plimsoll
	bin/plimsoll man $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	bin/plimsoll completion bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/plimsoll
	bin/plimsoll completion zsh >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_plimsoll
	bin/plimsoll completion fish >$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/plimsoll.fish

clean:
	rm -rf bin dist
