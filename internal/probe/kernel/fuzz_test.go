package kernel

import (
	"bufio"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/probe"
)

// fileSources are the sources of all probes, opened for a tree.
func fileSources(tb testing.TB, root string) []openSource {
	tb.Helper()
	h := host.Recorded("server", root)
	var sources []openSource
	for _, p := range All() {
		if p.Name == Log().Name || p.Name == NetDev().Name || p.Name == Qdisc().Name || p.Name == NFTables().Name || p.Name == RoutingRules().Name {
			continue
		}
		r, err := p.Open(h)
		if err != nil {
			tb.Fatal(err)
		}
		switch wrapped := r.(type) {
		case *conntrack:
			r = wrapped.Reader
		case *udp:
			r = wrapped.Reader
		}
		sources = append(sources, r.(*files).sources...)
	}
	return sources
}

// FuzzFiles gives any bytes to any of the file parsers: an error or values,
// and no panic.
func FuzzFiles(f *testing.F) {
	for _, tree := range []string{"linux-6.18", "linux-6.18-cut-to-4.9", "broken"} {
		root := filepath.Join("testdata", tree)
		for i, s := range fileSources(f, root) {
			if b, err := os.ReadFile(filepath.Join(root, s.path)); err == nil {
				f.Add(byte(i), b)
			}
		}
	}
	sources := fileSources(f, "testdata/linux-6.18")
	f.Fuzz(func(t *testing.T, which byte, b []byte) {
		s := sources[int(which)%len(sources)]
		rec := newRecorder()
		_ = s.put(b, probe.NewOut(rec, "server", time.Unix(1, 0), time.Second))
	})
}

func FuzzParseConntrackStat(f *testing.F) {
	for _, tree := range []string{"linux-6.18", "linux-6.18-cut-to-4.9", "broken"} {
		b, err := os.ReadFile(filepath.Join("testdata", tree, "proc/net/stat/nf_conntrack"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		sums, err := parseConntrackStat(b)
		if (err == nil) != (sums != nil) {
			t.Errorf("want sums or an error, got %v and %v", sums, err)
		}
	})
}

// hexLines reads recorded netlink payloads, one a line.
func hexLines(tb testing.TB, path string) [][]byte {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var lines [][]byte
	scan := bufio.NewScanner(f)
	for scan.Scan() {
		b, err := hex.DecodeString(scan.Text())
		if err != nil {
			tb.Fatal(err)
		}
		lines = append(lines, b)
	}
	return lines
}

func FuzzAddConntrackAttrs(f *testing.F) {
	for _, b := range hexLines(f, "testdata/ctnetlink_stats.hex") {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = addConntrackAttrs(b, map[string]uint64{})
	})
}

func FuzzParseLink(f *testing.F) {
	for _, b := range hexLines(f, "testdata/rtnetlink_links.hex") {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := parseLink(b)
		if (err == nil) != (l.name != "") {
			t.Errorf("want a named link or an error, got %+v and %v", l, err)
		}
	})
}

func FuzzParseQdisc(f *testing.F) {
	for _, b := range hexLines(f, "testdata/rtnetlink_qdiscs.hex") {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, _, err := parseQdisc(b)
		if (err == nil) != (d.kind != "") {
			t.Errorf("want a discipline with its kind or an error, got %+v and %v", d, err)
		}
	})
}

func FuzzParseNFTRule(f *testing.F) {
	for _, b := range slices.Concat(hexLines(f, "testdata/nfnetlink_rules.hex"), hexLines(f, "testdata/nfnetlink_iptables.hex")) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseNFTRule(b)
		if (err == nil) != (r.table != "" && r.chain != "") {
			t.Errorf("want a rule with its table and chain or an error, got %+v and %v", r, err)
		}
	})
}

func FuzzParseLogRecord(f *testing.F) {
	f.Add([]byte("6,339,5140900,-;NET: Registered protocol family 10\n"))
	f.Add([]byte("4,1024,99,-;nf_conntrack: nf_conntrack: table full, dropping packet\n SUBSYSTEM=net\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := parseLogRecord(b); err == nil {
			logKind(r.text)
		}
	})
}
