package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"plimsoll/internal/layout"
)

// Words that are lost are no success, whether who prints them looks at each line's error or not.
func TestWordsThatAreLostAreAnError(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, command := range []string{"--help", "signals", "rules list", "runs list", "trace list", "lab list", "rules show net.syn_flood"} {
		var told bytes.Buffer
		w := theWorld()
		w.args, w.stdout, w.stderr = strings.Fields(command), layout.NewWriter(full), layout.NewWriter(&told)
		if code := run(t.Context(), w); code != exitRunDir || !strings.Contains(told.String(), "no space left on device") {
			t.Errorf("plimsoll %s >/dev/full ends with %d and %q; want %d and a sentence", command, code, told.String(), exitRunDir)
		}
	}
}
