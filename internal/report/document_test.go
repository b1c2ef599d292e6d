package report

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDocument(t *testing.T) {
	var b bytes.Buffer
	if err := Document(&b, map[string]any{"a": 2000894.9999998, "b": `1.23456789012 "\\`, "c": int64(1792000000000), "d": []float64{0.1 + 0.2, 1e-9, -0.5}}); err != nil {
		t.Fatal(err)
	}
	want := `{
  "schema": 1,
  "a": 2000895,
  "b": "1.23456789012 \"\\\\",
  "c": 1792000000000,
  "d": [
    0.3,
    1e-09,
    -0.5
  ]
}
`
	if b.String() != want {
		t.Errorf("got %s", b.String())
	}
	b.Reset()
	if err := Document(&b, struct{}{}); err != nil || b.String() != "{\n  \"schema\": 1\n}\n" {
		t.Errorf("an empty one: %q, %v", b.String(), err)
	}
	if err := Document(&b, []int{1}); err == nil {
		t.Error("a bare list was written")
	}
}

// Whatever is in it, what is written is JSON, and a number is what it was but for the tenth digit.
func TestDocumentsAreJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, text := rapid.Float64().Draw(t, "number"), rapid.String().Draw(t, "text")
		var b bytes.Buffer
		if err := Document(&b, map[string]any{"n": v, "t": text, "l": []any{v, text}}); err != nil {
			if math.IsInf(v, 0) || math.IsNaN(v) {
				return
			}
			t.Fatal(err)
		}
		var got struct {
			N float64
			T string
		}
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatalf("%v: %s", err, b.String())
		}
		if math.Abs(got.N-v) > math.Abs(v)*1e-8 || got.T != strings.ToValidUTF8(text, "\ufffd") {
			t.Fatalf("%v became %v, %q became %q", v, got.N, text, got.T)
		}
	})
}
