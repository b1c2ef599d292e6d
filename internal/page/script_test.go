package page

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestScriptIsBuiltOfItsSources holds page.js against the sources whose hash the build wrote
// into its first line; ui/build.mjs adds them up in the same way.
func TestScriptIsBuiltOfItsSources(t *testing.T) {
	const ui = "../../ui"
	if _, err := os.Stat(ui); errors.Is(err, fs.ErrNotExist) {
		t.Skip("the sources are not here")
	}
	names, err := filepath.Glob(ui + "/src/*")
	check(t, err)
	slices.Sort(names)
	sum := sha256.New()
	for _, path := range slices.Concat([]string{ui + "/package-lock.json", ui + "/build.mjs"}, names) {
		text, err := os.ReadFile(path)
		check(t, err)
		name, err := filepath.Rel(ui, path)
		check(t, err)
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
	}
	first, _, _ := strings.Cut(pageJS, "\n")
	if want := "// Built of ui/ by npm run build; sources " + hex.EncodeToString(sum.Sum(nil)); first != want {
		t.Errorf("page.js is not the build of ui/: cd ui && npm ci && npm run build\n got %s\nwant %s", first, want)
	}
}

// TestScriptFitsAPage: nothing in the script ends its element, and it fetches nothing.
func TestScriptFitsAPage(t *testing.T) {
	for _, bad := range []string{"</script", "<!--", "fetch(", "sendBeacon(", "WebSocket", "XMLHttpRequest", "import(", "innerHTML", "eval("} {
		if strings.Contains(pageJS, bad) {
			t.Errorf("%q stands in the script", bad)
		}
	}
}
