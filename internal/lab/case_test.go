package lab

import (
	"io/fs"
	"net"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"plimsoll/internal/model"
	cases "plimsoll/lab"
)

func TestCasesAreComplete(t *testing.T) {
	list, err := (&Lab{Cases: cases.FS}).List()
	if err != nil {
		t.Fatal(err)
	}
	folders, err := fs.Glob(cases.FS, "*/case.yaml")
	if err != nil || len(list) != len(folders) || len(list) < 30 {
		t.Errorf("%d cases in %d folders; want one each, and some dozens (%v)", len(list), len(folders), err)
	}
	for _, c := range list {
		t.Run(c.ID, func(t *testing.T) { checkRenders(t, c) })
	}
}

// checkRenders fills in everything a case has, as it is and mended.
func checkRenders(t *testing.T, c *Case) {
	for _, mends := range [][]string{nil, c.mendIDs()} {
		v, err := c.values("/run/x", mends)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range c.Steps {
			if s.File == nil {
				continue
			}
			text, err := s.File.text(cases.FS)
			if err != nil {
				t.Fatal(err)
			}
			text, err = v.render(s.File.Path, text)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(text, "<no value>") {
				t.Errorf("%s has an empty place", s.File.Path)
			}
		}
		if _, err := c.Load.args(v, "x-server"); err != nil {
			t.Error(err)
		}
	}
	if c.Truth.Answer == model.AnswerCause && c.Seen.Mended == "" {
		t.Error("what was seen after the mend is missing")
	}
}

const good = `
id: one
title: t
symptom: s
what: w
vars: {limit: "1"}
steps:
  - sysctl: {host: server, name: net.core.somaxconn, value: "{{.limit}}"}
load: {url: http://10.77.0.2/, connections: 1, duration: 1s}
truth: {answer: cause, root: [a.b], mended: [healthy]}
mends: [{id: m, title: t, rules: [a.b], set: {limit: "2"}}]
seen: {with: w, faulty: f, mended: m}
`

func TestParseCaseRefuses(t *testing.T) {
	for _, tc := range []struct{ name, old, new, want string }{
		{"nothing wrong", "", "", ""},
		{"an unknown field", "title: t\n", "title: t\ntitel: t\n", "field titel not found"},
		{"an odd id", "id: one", "id: One/..", `id "One/.."`},
		{"an empty what", "what: w", "what: ''", "what is empty"},
		{"no symptom", "symptom: s", "symptom: ''", "symptom is empty"},
		{"a tale for a symptom", "symptom: s", "symptom: " + strings.Repeat("long ", 30), "one line of at most 100"},
		{"a twin without a measure", "mends: [", "twin: {}\nmends: [", "twin: needs measure"},
		{"a limit behind that is not named", "root: [a.b], ", "root: [a.b], then: [{hidden: true}], ", "then 1: needs root"},
		{"a limit behind that cannot be mended", "root: [a.b], ", "root: [a.b], then: [{root: [a.c]}], ", "no mend for rule a.c"},
		{"a root of what is healthy", "answer: cause", "answer: healthy", "has no root"},
		{"an unknown host", "host: server", "host: srv", `host "srv"`},
		{"a global setting as a namespace's", "net.core.somaxconn", "kernel.panic", "only settings below net."},
		{"two kinds in a step", "  - sysctl:", "  - nft: {host: server, rules: x}\n    sysctl:", "2 kinds of step"},
		{"another machine-wide setting", "  - sysctl:", "  - machine_sysctl: {name: kernel.panic, value: '1'}\n  - sysctl:", "may be changed"},
		{"a path that leaves the work directory", "  - sysctl:", "  - file: {path: ../x, content: y}\n  - sysctl:", "inside the work directory"},
		{"a disk file of no size", "  - sysctl:", "  - disk_file: {path: x}\n  - sysctl:", "at most 64 MiB"},
		{"a template that is not there", "  - sysctl:", "  - file: {path: x, from: no/such}\n  - sysctl:", `no template "no/such"`},
		{"a load of both kinds", "url: http://10.77.0.2/, ", "url: http://10.77.0.2/, command: [x], ", "either url or command"},
		{"a load of neither, for no time", "{url: http://10.77.0.2/, connections: 1, duration: 1s}", "{connections: 1}", "duration of a watch"},
		{"a bad duration", "duration: 1s", "duration: long", "invalid duration"},
		{"an unknown answer", "answer: cause", "answer: maybe", `answer "maybe"`},
		{"a cause that cannot be mended", "rules: [a.b]", "rules: [a.c]", "no mend for rule a.b"},
		{"a mend of nothing", "set: {limit: ", "set: {limits: ", "not in vars"},
		{"a need without a package", "vars: {", "needs: [{find: x}]\nvars: {", "find (a program, or a path) and package"},
		{"a var that nothing reads", `vars: {`, `vars: {lmit: "2", `, "no step reads the vars lmit"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := parseCase([]byte(strings.Replace(good, tc.old, tc.new, 1)), fstest.MapFS{})
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error is %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestUnknownCaseSaysWhatToDo(t *testing.T) {
	l := &Lab{Cases: cases.FS}
	for _, id := range []string{"no-such", "../templates", ""} {
		if _, err := l.Case(id); err == nil || !strings.Contains(err.Error(), "plimsoll lab list") {
			t.Errorf("Case(%q): %v", id, err)
		}
	}
}

func FuzzParseCase(f *testing.F) {
	data, err := fs.ReadFile(cases.FS, "throughput-chain/case.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(good))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parseCase(data, cases.FS)
		if (c == nil) == (err == nil) {
			t.Fatalf("case %v, error %v: expected one of them", c, err)
		}
	})
}

func FuzzParseJournal(f *testing.F) {
	f.Add(`{"do":"netns","name":"x-client"}` + "\n" + `{"do":"process","name":"nginx","pid":12,"start":34}` + "\n" + `{"do":"di`)
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := parseJournal(strings.NewReader(text))
		if err != nil && entries != nil {
			t.Fatal("entries and an error")
		}
	})
}

func TestListens(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2328 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 70537 1 0000000000000000 100 0 0 10 0
   1: 0100007F:0050 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 70538 1 0000000000000000 100 0 0 10 0
`
	if !listens([]byte(table), "9000") || listens([]byte(table), "80") || listens(nil, "9000") {
		t.Error("expected a listener on 9000 and on nothing else")
	}
}

// A service that listens on [::] alone is found by the lab: it answers on IPv4, too.
func TestListenerOnAllOfIPv6IsWaitedFor(t *testing.T) {
	l, err := net.Listen("tcp6", "[::]:0")
	if err != nil {
		t.Skipf("no IPv6 here: %v", err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := &child{name: "test", pid: os.Getpid(), done: make(chan struct{})}
	if err := c.waitListening(t.Context(), "tcp", port); err != nil {
		t.Error(err)
	}
}

func TestUnixListenerIsFoundByItsPath(t *testing.T) {
	table := "Num       RefCount Protocol Flags    Type St Inode Path\n" +
		"0000000000000000: 00000002 00000000 00010000 0001 01 4321 /run/x/php.sock\n" +
		"0000000000000000: 00000003 00000000 00000000 0001 03 4322 /run/x/other.sock\n" +
		"0000000000000000: 00000003 00000000 00000000 0001 03 4323\n"
	if !listensAt([]byte(table), "/run/x/php.sock") {
		t.Error("the listener is not found")
	}
	if listensAt([]byte(table), "/run/x/other.sock") || listensAt([]byte(table), "/run/x") || listensAt(nil, "") {
		t.Error("a listener is found that is none")
	}
}
