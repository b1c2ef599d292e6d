package main

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"plimsoll/internal/load"
	"plimsoll/internal/model"
)

func TestShortages(t *testing.T) {
	plan := model.LoadPlan{Connections: 30_000, Threads: 2}
	for _, c := range []struct {
		why     string
		has     room
		want    []string // parts of the sentence, none for no sentence
		certain bool
	}{
		{"nothing is known", room{}, nil, false},
		{"enough of all", room{files: 30_020, ports: &localPorts{usable: 30_000}, memory: 1 << 30}, nil, false},
		{"files", room{files: 20_000}, []string{"open files: for 30,000 connections 30,020 are needed", "may open 20,000", "ulimit -n 30020", "ask for fewer (-c 19980)"}, true},
		{"the range of ports", room{ports: &localPorts{usable: 28_232}}, []string{"local ports: for 30,000 connections", "28,232 are usable", "ip_local_port_range=\"1024 65535\""}, false},
		{"what the last run left", room{ports: &localPorts{usable: 40_000, held: 11_105, timeWait: 11_104}},
			[]string{"40,000 are usable", "11,105 of them held", "11,104 by TIME_WAIT", "wait a minute"}, false},
		{"the range of ports, on loopback", room{target: netip.MustParseAddr("127.0.0.1"), ports: &localPorts{usable: 28_232}}, []string{"(--source 127.1.0.0/24)"}, false},
		{"ports of several addresses", room{sources: 2, ports: &localPorts{usable: 15_000}}, nil, false},
		{"too few ports of several addresses", room{sources: 2, ports: &localPorts{usable: 15_000, held: 1}}, []string{"from 2 addresses to one address 15,000 are needed of each", "1 of them held"}, false},
		{"no way from loopback", room{target: netip.MustParseAddr("192.0.2.1"), sources: 1, faults: []load.SourceFault{{Source: netip.MustParseAddr("127.0.0.1"), Errno: unix.EINVAL}}},
			[]string{"no connection to 192.0.2.1 can be made from 127.0.0.1: what comes from loopback does not leave this machine"}, true},
		{"no way", room{target: netip.MustParseAddr("192.0.2.1"), sources: 1, faults: []load.SourceFault{{Source: netip.MustParseAddr("10.0.0.1"), Errno: unix.ENETUNREACH}}},
			[]string{"ENETUNREACH", "ip route get 192.0.2.1 from 10.0.0.1"}, true},
		{"the CPUs of the service", room{cpus: 2, here: true}, []string{"CPU: the service shares this machine's 2 CPUs with the generator, whose 2 threads", "--from NAME=ssh:HOST", "-R"}, false},
		{"CPUs enough for both", room{cpus: 4, here: true}, nil, false},
		{"CPUs of its own", room{cpus: 2}, nil, false},
		{"memory", room{memory: 100 << 20}, []string{"memory: for 30,000 connections about 137 MiB are needed", "100 MiB are available", "-c "}, false},
		{"memory for both ends", room{memory: 200 << 20, here: true}, []string{"about 254 MiB are needed"}, false},
		{"memory by io_uring", room{memory: 500 << 20}, []string{"about 607 MiB are needed (20.7 KiB each", "800 KiB of 2 threads besides"}, false},
		{"memory of connections that stay by io_uring", room{memory: 140 << 20}, []string{"(4.68 KiB each", "MiB of 2 threads besides", "-c "}, false},
		{"memory over TLS", room{memory: 1 << 30}, []string{"about 1.97 GiB are needed (68.7 KiB each"}, false},
	} {
		plan.URL = "http://127.0.0.1/"
		if strings.HasSuffix(c.why, "over TLS") {
			plan.URL = "https://127.0.0.1/"
		}
		plan.Engine = ""
		if strings.HasSuffix(c.why, "by io_uring") {
			plan.Engine = model.IOURing
		}
		plan.KeepAlive = strings.Contains(c.why, "stay")
		got := shortages(plan, c.has)
		if len(c.want) == 0 {
			if len(got) > 0 {
				t.Errorf("%s: %+v, want nothing said", c.why, got)
			}
			continue
		}
		if len(got) != 1 || got[0].certain != c.certain {
			t.Errorf("%s: %+v, want one shortage, certain %v", c.why, got, c.certain)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(got[0].text, part) {
				t.Errorf("%s: %q, want %q in it", c.why, got[0].text, part)
			}
		}
	}
}

// A rate is held against what the generator takes for it.
func TestShortageOfCPUs(t *testing.T) {
	for _, c := range []struct {
		why  string
		plan model.LoadPlan
		has  room
		want string
	}{
		{"a small rate", model.LoadPlan{Rate: 10_000, KeepAlive: true}, room{cpus: 2, here: true}, ""},
		{"more than half of what the service needs, too", model.LoadPlan{Rate: 150_000, KeepAlive: true}, room{cpus: 2, here: true}, "150,000 requests/s take the generator about 1.1 CPUs, and this machine has 2 CPUs, which the service needs, too"},
		{"a connection for each", model.LoadPlan{Rate: 30_000}, room{cpus: 2, here: true}, "about 1.2 CPUs"},
		{"a machine of its own", model.LoadPlan{Rate: 150_000, KeepAlive: true}, room{cpus: 2}, ""},
		{"more than that has", model.LoadPlan{Rate: 10, Stages: []model.Stage{{Rate: 300_000}}, KeepAlive: true}, room{cpus: 2}, "300,000 requests/s take the generator about 2.1 CPUs, and this machine has 2 CPUs: drive it"},
	} {
		if got := c.has.cpuShortage(c.plan); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.why, got, c.want)
		}
	}
}

// What a pool may grow to is said; it may never be needed.
func TestShortagesOfAPoolThatGrows(t *testing.T) {
	for connections, certain := range map[int]bool{10: false, 19_990: true} {
		plan := model.LoadPlan{URL: "http://127.0.0.1/", Connections: connections, MaxConnections: 30_000, Threads: 2}
		got := shortages(plan, room{files: 20_000})
		if len(got) != 1 || got[0].certain != certain || !strings.Contains(got[0].text, "for 30,000 connections 30,020 are needed") || !strings.Contains(got[0].text, "ask for fewer (--max-connections 19980)") {
			t.Errorf("-c %d: %+v, want files for 30,000 connections, certain %v", connections, got, certain)
		}
	}
}

func TestFailuresAreExplainedWithTheirNumbers(t *testing.T) {
	outcomes := map[string]int64{"2xx": 9, "4xx": 6, "connect:EADDRNOTAVAIL": 7, "connect:EMFILE": 8, "read:ECONNRESET": 1, "protocol:bad_chunk": 3}
	has := room{files: 256, ports: &localPorts{usable: 20, held: 20, timeWait: 15}}
	want := []string{
		"8 connect EMFILE: the generator may open 256 files (hard limit, ulimit -Hn), and for 300 connections 318 are needed: raise it (ulimit -n), or ask for fewer (-c)",
		`7 connect EADDRNOTAVAIL: no local port was free: for 300 connections to one address as many are needed, and 20 are usable (net.ipv4.ip_local_port_range), 20 of them held towards it (15 by TIME_WAIT, left by connections of this load or of earlier ones): widen the range (sysctl -w net.ipv4.ip_local_port_range="1024 65535"), or come from more addresses (--source with addresses of this machine)`,
		"6 4xx: " + byOutcome["4xx"],
		"3 protocol bad_chunk: " + byOutcome["protocol:bad_chunk"],
		"1 read ECONNRESET: " + explanations["ECONNRESET"],
	}
	if d := cmp.Diff(want, explainAll(model.LoadPlan{Connections: 300, Threads: 1}, model.Load{Outcomes: outcomes}, has)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for keep, first := range map[bool]string{true: ": wait a minute, in which TIME_WAIT passes, widen", false: ": let connections stay (without --no-keepalive), since each that this side closes first holds its port for a minute, widen"} {
		if said := explain(model.LoadPlan{Connections: 20, Threads: 1, KeepAlive: keep}, "connect:EADDRNOTAVAIL", has); !strings.Contains(said, first) {
			t.Errorf("%q, want %q: there would be ports enough", said, first)
		}
	}
	if said := explain(model.LoadPlan{Connections: 3, MaxConnections: 300, Threads: 1}, "connect:EMFILE", has); !strings.HasSuffix(said, "ask for fewer (--max-connections)") {
		t.Errorf("%q, want the flag that asked for so many", said)
	}
}

// What is said to be enough is.
func TestFewerConnectionsThatThereAreFilesFor(t *testing.T) {
	for _, files := range []int64{10, 16, 19, 25, 40, 256} {
		for _, tables := range []bool{false, true} {
			has, plan := room{files: files, tables: tables}, model.LoadPlan{URL: "http://127.0.0.1/", Connections: 100_000, Threads: 2}
			fits := func(n int) bool {
				p := plan
				p.Connections, p.Threads = n, min(2, n)
				return load.NeededFiles(p, false) <= files || tables && load.ThreadsFor(p, files) > 0
			}
			n := 0
			if said := fewer(plan, has); said != "" {
				if _, err := fmt.Sscanf(said, ", or ask for fewer (-c %d)", &n); err != nil {
					t.Errorf("%d files: %q: %v", files, said, err)
				}
			}
			if n > 0 && !fits(n) || fits(n+1) {
				t.Errorf("%d files, own tables %v: %d connections are told as the most", files, tables, n)
			}
		}
	}
}

// Whatever can become of a request over HTTP/1.1 says what to do.
func TestEachWayToFailIsExplained(t *testing.T) {
	doc, err := os.ReadFile("../../internal/load/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, faults, _ := strings.Cut(string(doc), "protocol:FAULT ")
	faults, _, _ = strings.Cut(faults, ";")
	names := strings.FieldsFunc(faults, func(r rune) bool { return !unicode.IsLetter(r) && r != '_' })
	if len(names) < 9 {
		t.Fatalf("%q: these are too few faults of a reply", names)
	}
	outcomes := []string{"4xx", "5xx", "read:eof", "read:ECONNRESET", "read:timeout", "write:EPIPE", "write:timeout", "queue:timeout",
		"connect:timeout", "connect:ECONNREFUSED", "connect:EMFILE", "connect:EADDRNOTAVAIL", "check:status", "check:body", "check:length"}
	for _, name := range names {
		outcomes = append(outcomes, "protocol:"+name)
	}
	for _, o := range outcomes {
		if said := explain(model.LoadPlan{Connections: 3}, o, room{files: 9, ports: &localPorts{}}); said == "" {
			t.Errorf("%s: nothing is said of what it means", o)
		}
	}
}

// A generator that was stopped does not accuse the service.
func TestAGeneratorThatStoodStill(t *testing.T) {
	got := explainAll(model.LoadPlan{Rate: 10}, model.Load{Outcomes: map[string]int64{"queue:timeout": 3}, StoodStill: 3.01}, room{})
	if len(got) != 2 || !strings.HasPrefix(got[0], "the generator itself stood still for 3.01 s: ") {
		t.Errorf("%q, want that the generator stood still first", got)
	}
}

func TestALoadThatFellShortIsAnError(t *testing.T) {
	good := map[string]int64{"2xx": 5}
	for _, c := range []struct {
		why  string
		plan model.LoadPlan
		got  model.Load
		want string // "" for no error
	}{
		{"all good", model.LoadPlan{}, model.Load{Outcomes: good}, ""},
		{"nothing was tried", model.LoadPlan{}, model.Load{}, ""},
		{"only errors came", model.LoadPlan{}, model.Load{Outcomes: map[string]int64{"5xx": 4, "connect:EMFILE": 2}}, "not one good reply: 6 tried"},
		{"some connections failed", model.LoadPlan{Connections: 30_000}, model.Load{Outcomes: good, Missing: &model.MissingConnections{Failed: 11_105}}, "11,105 of 30,000 connections were never open"},
		{"the time was too short for all connections", model.LoadPlan{Connections: 9}, model.Load{Outcomes: good, Missing: &model.MissingConnections{Untried: 3}}, "before 3 of 9 connections"},
		{"the requests were done before", model.LoadPlan{Connections: 9, Requests: 5}, model.Load{Outcomes: good, Missing: &model.MissingConnections{Untried: 3}}, ""},
		{"a rate that was not sent", model.LoadPlan{Rate: 10}, model.Load{Outcomes: map[string]int64{"2xx": 5, "queue:timeout": 2}}, "2 requests found no connection"},
	} {
		err := fellShort(c.plan, c.got)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v, want no error", c.why, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || codeOf(err) != exitNotPassed):
			t.Errorf("%s: %v, want %q and exit code %d", c.why, err, c.want, exitNotPassed)
		}
	}
}

func TestFailuresOverTLSSayTheirCause(t *testing.T) {
	l := model.Load{
		Outcomes: map[string]int64{"tls:certificate_wrong_host": 4, "tls:timeout": 3, "read:alert_internal_error": 1},
		Causes:   map[string]string{"tls:certificate_wrong_host": "x509: certificate is valid for a, not b"},
	}
	got := explainAll(model.LoadPlan{URL: "https://b/", Connections: 1}, l, room{})
	if len(got) != 2 || !strings.Contains(got[0], "4 tls certificate_wrong_host: ") || !strings.Contains(got[0], "--server-name (x509: certificate is valid for a, not b)") || !strings.Contains(got[1], "3 tls timeout: ") {
		t.Errorf("%q", got)
	}
}
