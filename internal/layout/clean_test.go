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

// What a CI that reads the log takes for commands of its own is none, wherever text is cut.
func TestTextBeginsNoCommandOfACI(t *testing.T) {
	for in, want := range map[string]string{
		"::error file=a::b":                `::e\u0072ror file=a::b`,
		"a\n \t\u00a0::add-mask::x":        "a\n \t\u00a0" + `::add\u002dmask::x`,
		"::stop-commands::x\n::x::":        `::\u0073top-commands::x` + "\n" + `::\u0078::`,
		"says ##[error]x":                  `says ##\u005berror]x`,
		"##vso[task.setvariable x]y":       `##vso\u005btask.setvariable x]y`,
		"###teamcity[x]":                   `###teamcity\u005bx]`,
		"::1 a::error:: [::ffff:10.0.0.1]": "::1 a::error:: [::ffff:10.0.0.1]",
		"::ffff:10.0.0.1 fe80::1":          "::ffff:10.0.0.1 fe80::1",
		"# [a] ## Heading [b] x#[1]":       "# [a] ## Heading [b] x#[1]",
		"\u001b::error::":                  `\u001b::error::`,
	} {
		if got := Clean(in); got != want || Clean(got) != got {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
		var out bytes.Buffer
		w := NewWriter(&out)
		for _, b := range []byte(in) {
			w.Write([]byte{b})
		}
		if out.String() != want {
			t.Errorf("%q in pieces became %q, want %q", in, out.String(), want)
		}
	}
	if got := Line("x\n::error::"); got != `x\n::error::` {
		t.Errorf("a line has %q", got)
	}
	var out bytes.Buffer
	w := NewWriter(&out)
	Own(w, "::error title=ours::")
	w.Write([]byte("a\n::notice::theirs"))
	if want := "::error title=ours::a\n" + `::\u006eotice::theirs`; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// A JSON document stays one, and says the same.
func TestWriterKeepsJSON(t *testing.T) {
	text := "::error::##[x] a\x1b\u009b\u202e\x7f\U000e0041 \"'\\ é"
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
