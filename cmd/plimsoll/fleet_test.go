package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"

	"plimsoll/internal/model"
)

// tool is a program that a test needs; the test is skipped without it, but not under CI.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv("CI") == "" {
		t.Skipf("%s is not here; scripts/install-deps tests installs it", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// realPrometheus starts one on data that is there already, and returns its address.
func realPrometheus(t *testing.T, data string, flags ...string) string {
	t.Helper()
	binary := tool(t, "prometheus")
	config := filepath.Join(t.TempDir(), "prometheus.yml")
	if err := os.WriteFile(config, []byte("global: {scrape_interval: 1m}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	log, err := os.Create(filepath.Join(t.TempDir(), "prometheus.log"))
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(binary, append([]string{"--config.file=" + config, "--storage.tsdb.path=" + data, "--storage.tsdb.retention.time=100y",
		"--web.listen-address=" + address}, flags...)...)
	c.Stdout, c.Stderr = log, log
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // its parent is this thread
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
		runtime.UnlockOSThread()
		log.Close()
	})
	url := "http://" + address
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		res, err := http.Get(url + "/-/ready")
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return url
			}
		}
		if time.Now().After(end) {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("prometheus is not ready: %v\n%s", err, text)
		}
	}
}

// fleetData writes a block with so many hosts, in turn with what was scraped in two cases of the lab,
// the readings 15 s apart, and flat before; it returns when it ends.
func fleetData(t *testing.T, data string, hosts int) time.Time {
	t.Helper()
	end := time.Now().Add(-time.Hour).Truncate(time.Minute)
	w, err := tsdb.NewBlockWriter(slog.New(slog.DiscardHandler), data, (2 * time.Hour).Milliseconds())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	app := w.Appender(context.Background())
	for n, name := range []string{"conntrack-full", "listen-backlog"} {
		list, err := readScraped("testdata/prometheus/" + name + ".json.gz")
		if err != nil {
			t.Fatal(err)
		}
		for host := n; host < hosts; host += 2 {
			for _, s := range list {
				s.Metric["instance"] = fmt.Sprintf("web%05d:9100", host)
				lset := labels.FromMap(s.Metric)
				const readings = 40
				for i := range readings {
					v := s.Values[max(len(s.Values)-readings+i, 0)]
					var text string
					if err := json.Unmarshal(v[1], &text); err != nil {
						t.Fatal(err)
					}
					value, err := strconv.ParseFloat(text, 64)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := app.Append(0, lset, end.Add(-15*time.Second*time.Duration(readings-1-i)).UnixMilli(), value); err != nil {
						t.Fatal(err)
					}
				}
			}
			if host%50 < 2 {
				if err := app.Commit(); err != nil {
					t.Fatal(err)
				}
				app = w.Appender(context.Background())
			}
		}
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	return end
}

// plimsollJSON runs a command and reads the document that it prints.
func plimsollJSON(t *testing.T, doc any, args ...string) {
	t.Helper()
	w, out, talk := testWorld(args...)
	if code := run(t.Context(), w); code != exitOK {
		t.Fatalf("%v: exit code %d: %s", args, code, talk.String())
	}
	if err := json.Unmarshal(out.Bytes(), doc); err != nil {
		t.Fatal(err)
	}
}

// A real Prometheus with a limit of samples that ten hosts exceed gives each host the verdict that it has alone.
// PLIMSOLL_FLEET=1000 makes it that many hosts, without the limit, and -v tells what it took.
func TestFleetOfARealPrometheus(t *testing.T) {
	t.Parallel()
	tool(t, "prometheus")
	hosts, limit := 24, "--query.max-samples=4000"
	if n, err := strconv.Atoi(os.Getenv("PLIMSOLL_FLEET")); err == nil {
		hosts, limit = n, "--query.max-samples=50000000"
	}
	data := t.TempDir()
	end := fleetData(t, data, hosts)
	url := realPrometheus(t, data, limit)
	at := strconv.FormatInt(end.Unix(), 10)
	began := time.Now()
	var doc model.Fleet
	plimsollJSON(t, &doc, "diagnose", "--prometheus", url, "--all", "--at", at, "--window", "4m", "--json")
	var use syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &use)
	t.Logf("%d hosts, %d queries, %d readings: %v, at most %d MiB with what made the data", len(doc.Hosts), doc.Queries, doc.Readings, time.Since(began).Round(time.Millisecond), use.Maxrss>>10)
	if len(doc.Hosts) != hosts || doc.Counts[model.AnswerCause] != hosts {
		t.Fatalf("%d hosts, counts %v, want %d causes: %+v", len(doc.Hosts), doc.Counts, hosts, doc.Hosts[0])
	}
	seen := map[string]bool{}
	for _, h := range doc.Hosts {
		if rule := strings.Join(h.Rules, " "); !seen[rule] {
			seen[rule] = true
			var r model.Report
			plimsollJSON(t, &r, "diagnose", "--prometheus", url, "--match", "host="+h.Host, "--at", at, "--window", "4m", "--json")
			if r.Verdict.Sentence != h.Sentence || r.Verdict.Answer != h.Answer {
				t.Errorf("%s is %s %q in its fleet, and %s %q alone", h.Host, h.Answer, h.Sentence, r.Verdict.Answer, r.Verdict.Sentence)
			}
		}
	}
	if len(seen) != 2 {
		t.Errorf("rules %v, want those of both cases", seen)
	}
}

// A server's label can be of any length: the table is not as wide as its longest.
func TestFleetTableIsNoWiderThanNames(t *testing.T) {
	row := fleetRow(model.FleetHost{Host: strings.Repeat("h", 1<<20), Fault: "none"})
	if n := len([]rune(row[0])); n != longestName || !strings.HasSuffix(row[0], "…") {
		t.Errorf("its name takes %d columns, want %d", n, longestName)
	}
}
