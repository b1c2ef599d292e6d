package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/model"
	"plimsoll/internal/record/writer"
)

// TestARunIsJudgedWhileItLasts: each line that is asked is answered by one, also before there is anything to judge.
func TestARunIsJudgedWhileItLasts(t *testing.T) {
	const start = 1_700_000_000_000
	dir := filepath.Join(t.TempDir(), "run")
	ask := func() (s soFar) {
		t.Helper()
		w, _, _ := testWorld()
		var said bytes.Buffer
		w.stdin, w.commandOut = strings.NewReader("\n"), &said
		c := lastingJudge(w)
		c.SetArgs([]string{dir})
		ok(t, c.Execute())
		ok(t, json.Unmarshal(said.Bytes(), &s))
		return s
	}
	if s := ask(); s.Failed == "" || s.Sentence != "" {
		t.Errorf("of no run: %+v", s)
	}
	w, err := writer.Create(dir, model.Run{Started: start, Plan: model.Plan{Interval: 1000}, Hosts: []model.Host{{Name: "a"}}})
	ok(t, err)
	defer w.Close()
	ok(t, w.Update(func(r *model.Run) { r.Windows = []model.Window{{Name: model.Hold, Start: start}} }))
	cpu := &model.Signal{Name: "node_cpu_seconds_total", Kind: model.Counter, Labels: []string{"cpu", "mode"}}
	for i := range int64(6) {
		w.Sample("a", start+i*1000, cpu, float64(i), "0", "idle")
		ok(t, w.Commit())
	}
	if s := ask(); s.Failed != "" || s.Answer == "" || s.Sentence == "" || s.CPU <= 0 {
		t.Errorf("of a run that lasts: %+v", s)
	}
}
