package nginx

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whoever writes a service's configuration can have it include what he likes: itself
// twice, or a hundred thousand files.
func TestIncludesHaveAnEnd(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("twice", "include /twice;\ninclude /twice;\n")
	write("large", strings.Repeat("# nothing\n", 1<<20))
	write("often", strings.Repeat("include /large;\n", 1000))
	write("many", "include /m*.part;\n")
	for i := range maxConfFiles + 1 {
		write(fmt.Sprintf("m%d.part", i), "a b;")
	}
	for file, want := range map[string]string{"/twice": "at most", "/often": "bytes in all", "/many": "files and"} {
		l := &loader{root: root, dir: "/"}
		if _, err := l.load(file, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", file, err)
		}
	}
}
