package phpfpm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A configuration that includes itself, again and again, has an end.
func TestIncludesHaveAnEnd(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"itself.conf": strings.Repeat("include=/itself.conf\n", 100),
		"none.conf":   strings.Repeat("include=/nosuch*\n", maxConfFiles+1),
		"large":       strings.Repeat("; nothing\n", 400_000),
		"often.conf":  strings.Repeat("include=/large\n", 100),
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"/itself.conf", "/none.conf", "/often.conf"} {
		l := &loader{root: root, main: file}
		if _, err := l.load(file, "", 0); err == nil || !strings.Contains(err.Error(), "want at most") {
			t.Errorf("%s: %v", file, err)
		}
	}
}
