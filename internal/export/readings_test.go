package export

import (
	"bytes"
	"testing"

	"plimsoll/internal/model"
)

var (
	asked  = &model.Signal{Name: "asked_total", Kind: model.Counter, Labels: []string{"phase", "by"}, Help: "How often \"it\" was asked,\nback\\slash."}
	always = &model.Signal{Name: "always", Kind: model.Gauge, Help: "No labels."}
)

func TestPrometheusText(t *testing.T) {
	var b bytes.Buffer
	list := []Reading{{asked, []string{"hold", "b\n\"x\""}, 3}, {always, nil, 0.5}, {asked, []string{"calm", "a"}, 1e6}}
	if err := Prometheus(&b, list); err != nil {
		t.Fatal(err)
	}
	const want = `# HELP always No labels.
# TYPE always gauge
always 0.5
# HELP asked_total How often "it" was asked,\nback\\slash.
# TYPE asked_total counter
asked_total{by="a",phase="calm"} 1e+06
asked_total{by="b\n\"x\"",phase="hold"} 3
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestReadingsAsCSV(t *testing.T) {
	var b bytes.Buffer
	r, err := NewReadings(&b)
	if err != nil {
		t.Fatal(err)
	}
	r.Put(1000, "=cmd()", asked, 2, "hold", "a,b")
	r.Put(2000, "local", always, 0.25)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	const want = "time_ms,name,host,labels,value\n1000,asked_total,'=cmd(),\"by=\"\"a,b\"\",phase=\"\"hold\"\"\",2\n2000,always,local,,0.25\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
