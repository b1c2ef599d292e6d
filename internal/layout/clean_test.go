package layout

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"
)

func TestCleanShowsWhatItTookOut(t *testing.T) {
	for in, want := range map[string]string{
		"plain, né 中":              "plain, né 中",
		"\x1b]0;title\x07":         `\u001b]0;title\u0007`,
		"a\u009b31mb":              `a\u009b31mb`,
		"\u202etxt.exe\u2066":      `\u202etxt.exe\u2066`,
		"a\rb\x7f":                 `a\u000db\u007f`,
		"\xff\x9b31m":              "\ufffd\ufffd31m",
		"a\nb\tc":                  "a\nb\tc",
		"zero\u200bwidth\ufeff":    `zero\u200bwidth\ufeff`,
		"line\u2028sep":            `line\u2028sep`,
		"tag\U000e0041":            `tag\udb40\udc41`,
		"\ufffd stays as it came.": "\ufffd stays as it came.",
	} {
		if got := Clean(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	if got := Line("a\nVERDICT: HEALTHY\tx"); got != `a\nVERDICT: HEALTHY\tx` {
		t.Errorf("a line has %q", got)
	}
}

// A JSON document stays one, and says the same.
func TestWriterKeepsJSON(t *testing.T) {
	text := "a\x1b\u009b\u202e\x7f\U000e0041 \"'\\ é"
	doc, err := json.MarshalIndent(map[string]string{text: text}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := NewWriter(&out).Write(doc); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); Clean(s) != s {
		t.Errorf("%q steers a terminal", s)
	}
	var back map[string]string
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back[text] != text {
		t.Errorf("%s says %q: %v", out.Bytes(), back, err)
	}
}

func TestWriterKeepsRunesThatComeInPieces(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out)
	for _, b := range []byte("aé中\U0001f600\u009bz") {
		if n, err := w.Write([]byte{b}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if want := "aé中\U0001f600" + `\u009b` + "z"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	out.Reset()
	w.Write([]byte("x\xe4\xb8"))
	if err := w.flush(); err != nil || out.String() != "x\ufffd\ufffd" {
		t.Errorf("the end of a broken rune: %q, %v", out.String(), err)
	}
}

// Escapes of ours go through by Own alone.
func TestWriterTellsOursFromTheirs(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out)
	w.Write([]byte("\x1b[31mtheirs"))
	if err := Own(w, "\x1b[31mours\x1b[0m"); err != nil {
		t.Fatal(err)
	}
	if want := `\u001b[31mtheirs` + "\x1b[31mours\x1b[0m"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range append(hostile, unprintable...) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, clean := range []func(string) string{Clean, Line} {
			got := clean(s)
			if clean(got) != got || !utf8.ValidString(got) || len(got) > 6*len(s) {
				t.Fatalf("%q became %q", s, got)
			}
		}
		var out bytes.Buffer
		w := NewWriter(&out)
		w.Write([]byte(s[:len(s)/2]))
		w.Write([]byte(s[len(s)/2:]))
		if err := w.flush(); err != nil || out.String() != Clean(s) {
			t.Fatalf("%q in two pieces gave %q, in one %q", s, out.String(), Clean(s))
		}
	})
}
