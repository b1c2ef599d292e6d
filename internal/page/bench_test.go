package page

import (
	"io"
	"os"
	"testing"

	"plimsoll/internal/judge"
	"plimsoll/internal/query"
	"plimsoll/internal/record"
	"plimsoll/internal/ruleset"
	"plimsoll/rules"
)

// BenchmarkPage reads and writes the page of the run in $PLIMSOLL_RUN, which bench/longrun
// makes as long as is wanted; judging is measured apart:
//
//	PLIMSOLL_RUN=DIR go test ./internal/page -run '^$' -bench . -benchtime 1x -cpuprofile cpu.pb.gz
func BenchmarkPage(b *testing.B) {
	dir := os.Getenv("PLIMSOLL_RUN")
	if dir == "" {
		b.Skip("no run in $PLIMSOLL_RUN")
	}
	set, err := ruleset.Load(rules.FS)
	check(b, err)
	rec, err := record.Open(dir)
	check(b, err)
	defer rec.Close()
	q, err := query.Of(rec)
	check(b, err)
	r, err := judge.Asked(q, rec, set)
	check(b, err)
	b.Run("judge", func(b *testing.B) {
		for b.Loop() {
			_, err := judge.Run(rec, set)
			check(b, err)
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			_, err := Read(rec, q, r, set)
			check(b, err)
		}
	})
	out, err := Read(rec, q, r, set)
	check(b, err)
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			n := counted(0)
			check(b, Write(&n, Page{Runs: []*Run{out}}))
			b.ReportMetric(float64(n), "bytes")
		}
	})
}

// counted counts what is written to it.
type counted int

func (n *counted) Write(p []byte) (int, error) {
	*n += counted(len(p))
	return io.Discard.Write(p)
}
