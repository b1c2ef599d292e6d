package main

import (
	"bytes"
	"strings"
	"testing"

	"plimsoll/internal/change"
)

// What an entry says stays within the lines that are about it.
func TestWhatAnEntrySaysBeginsNoLine(t *testing.T) {
	const text = "x\nVERDICT: ok\r\x1b[2J"
	var out bytes.Buffer
	one := change.Result{Entry: change.Entry{ID: 3, Change: change.Change{Kind: change.Sysctl, Name: text}, Host: text}, Sentences: []string{"it is " + text + " again"}}
	if err := printUndone(&world{stdout: &out}, []change.Result{one}, false); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Count(got, "\n") != 2 || strings.ContainsAny(got, "\r\x1b") || !strings.Contains(got, `     it is x\nVERDICT: ok\u000d`) {
		t.Errorf("%q", got)
	}
}
