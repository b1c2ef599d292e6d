package record

import (
	"bytes"
	"testing"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"format": 1, "windows": [{"name": "hold", "start_ms": 1, "end_ms": 0}], "status": {"h": {"s": {"state": "read"}}}}`))
	f.Add([]byte(`{"format": 99}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		meta, err := parseManifest(raw)
		if err == nil && meta.Format != Format {
			t.Errorf("layout %d without an error", meta.Format)
		}
	})
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("{\"t\": 1, \"host\": \"h\", \"kind\": \"note\", \"text\": \"x\"}\n{\"t\": 2"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		failed := false
		for _, err := range parseEvents(bytes.NewReader(raw)) {
			if failed {
				t.Error("an event after an error")
			}
			failed = err != nil
		}
	})
}

func FuzzIntervals(f *testing.F) {
	h := hdr.New(1, 60_000_000, 3)
	if err := h.RecordValues(1234, 5); err != nil {
		f.Fatal(err)
	}
	enc, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("#[BaseTime: 0.000 (seconds since epoch)]\nTag=response,1700000000.000,1.000,1.234," + string(enc) + "\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		failed := false
		for i, err := range parseIntervals(bytes.NewReader(raw)) {
			if failed {
				t.Error("an interval after an error")
			}
			if failed = err != nil; failed {
				continue
			}
			if i.Histogram == nil || i.End < i.Start {
				t.Errorf("%+v", i)
			}
		}
	})
}
