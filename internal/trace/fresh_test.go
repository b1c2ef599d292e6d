package trace

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const sums = "bpf/SHA256SUMS"

// TestObjectsAreFresh compares every C source, header, line of flags and object
// with the list that was written when the objects were built. It needs no clang.
func TestObjectsAreFresh(t *testing.T) {
	var paths []string
	for _, pattern := range []string{"*/*.h", "*/*/*.h", "*/*.bpf.c", "*/generate.go", "*/bpf_bpfel.go", "*/bpf_bpfel.o"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		paths = append(paths, found...)
	}
	slices.Sort(paths)
	var b strings.Builder
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), p)
	}
	if os.Getenv("PLIMSOLL_BPF_BUILT") == "1" { // set by make bpf alone: the list is only true right after a build
		if err := os.WriteFile(sums, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(sums)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) == b.String() {
		return
	}
	then := strings.Split(string(want), "\n")
	for _, line := range strings.Split(b.String(), "\n") {
		if !slices.Contains(then, line) {
			_, name, _ := strings.Cut(line, "  ")
			t.Errorf("%s has changed since the objects were built", name)
		}
	}
	t.Error("the BPF objects may be stale; make bpf builds them anew")
}
