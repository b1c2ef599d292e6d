package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"plimsoll/internal/model"
	"plimsoll/internal/record/writer"
)

// mostMemory is what no input may make the program take, in bytes.
const mostMemory = 500 << 20

// ending is how a program ended.
type ending struct {
	code        int
	out, stderr string
}

// plimsoll runs the program as users do. Whatever it is given, it ends, by itself, in
// no more than the memory it may take, and not with a stack.
func plimsoll(t *testing.T, args ...string) ending {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	told := filepath.Join(t.TempDir(), "memory")
	c := exec.CommandContext(ctx, "measured", append([]string{told, "plimsoll"}, args...)...)
	var out, stderr bytes.Buffer
	c.Stdout, c.Stderr = &out, &stderr
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatalf("plimsoll %v did not end", args)
	}
	raw, err := os.ReadFile(told)
	ok(t, err)
	rss, err := strconv.Atoi(string(raw))
	ok(t, err)
	if rss > mostMemory {
		t.Errorf("plimsoll %v took %d MB, want at most %d", args, rss>>20, mostMemory>>20)
	}
	t.Logf("%d MB, %v of CPU: %s", rss>>20, (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Round(time.Millisecond), firstLine(stderr.String()))
	if strings.Contains(stderr.String(), "goroutine ") {
		t.Errorf("a stack: %s", stderr.String())
	}
	return ending{c.ProcessState.ExitCode(), out.String(), stderr.String()}
}

// measureMemory runs a command and writes to a file the most memory that it had, in bytes. Linux
// counts for a process what the one that started it had by then, as long as they share their
// memory (vfork): the tests' own process, which may be larger than what is tested.
func measureMemory() {
	c := exec.Command(os.Args[2], os.Args[3:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // of one that hangs, this alone is ended
	runtime.LockOSThread()
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		must("measure the memory", err)
	}
	rss := c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	must("measure the memory", os.WriteFile(os.Args[1], strconv.AppendInt(nil, rss, 10), 0o600))
	os.Exit(c.ProcessState.ExitCode())
}

func firstLine(s string) string { line, _, _ := strings.Cut(s, "\n"); return line }

// wants checks the exit code and that the sentence is in what was said.
func (e ending) wants(t *testing.T, code int, sentence string) {
	t.Helper()
	if e.code != code || !strings.Contains(e.stderr, sentence) {
		t.Errorf("exit code %d, want %d; it said %q, want %q", e.code, code, firstLine(e.stderr), sentence)
	}
}

var aGauge = &model.Signal{Name: "node_nf_conntrack_entries", Kind: model.Gauge}

// aRun makes a run of a minute with a load, closed or cut off, and returns its
// directory.
func aRun(t *testing.T, closed bool) string {
	t.Helper()
	const start = 1_700_000_000_000
	dir := filepath.Join(t.TempDir(), "run")
	w, err := writer.Create(dir, model.Run{Version: "test", Started: start, Plan: model.Plan{Mode: "run", Interval: 1000, Load: &model.LoadPlan{}},
		Hosts: []model.Host{{Name: "local"}}})
	ok(t, err)
	for i := range int64(60) {
		w.Sample("local", start+i*1000, aGauge, float64(i))
		ok(t, w.Commit())
	}
	w.Event(model.Event{Time: start, Host: "local", Kind: "note"})
	h := hdr.New(1, 60_000_000, 3)
	ok(t, h.RecordValue(1000))
	enc, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
	ok(t, err)
	w.Interval(start, start+1000, "response", string(enc))
	ok(t, w.Update(func(r *model.Run) {
		r.Windows = []model.Window{{Name: model.Baseline, Start: start, End: start + 10_000}, {Name: model.Hold, Start: start + 10_000, End: start + 59_000}}
	}))
	if closed {
		ok(t, w.Close())
	}
	return dir
}

// copyOf copies a run, which is much quicker than to make another.
func copyOf(t *testing.T, run string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	ok(t, os.CopyFS(dir, os.DirFS(run)))
	return dir
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func edit(t *testing.T, file, old, new string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	ok(t, err)
	if !bytes.Contains(raw, []byte(old)) {
		t.Fatalf("%s has no %s", file, old)
	}
	ok(t, os.WriteFile(file, bytes.Replace(raw, []byte(old), []byte(new), 1), 0o600))
}

// sparse makes a file of that size that takes no room.
func sparse(t *testing.T, file string, size int64) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o600)
	ok(t, err)
	ok(t, errors.Join(f.Truncate(size), f.Close()))
}

// repeat writes the same bytes n times.
func repeat(t *testing.T, file string, head, what, tail string, n int) {
	t.Helper()
	f, err := os.Create(file)
	ok(t, err)
	_, err = f.WriteString(head)
	ok(t, err)
	many := strings.Repeat(what, 1000)
	for range n / 1000 {
		_, err = f.WriteString(many)
		ok(t, err)
	}
	_, err = f.WriteString(tail)
	ok(t, errors.Join(err, f.Close()))
}

// files are those of a run that diagnose reads, and what it says when they are none.
var files = []string{"run.json", "latency.hlog", "series", "series/*/index", "series/*/meta.json", "series/*/chunks", "series/*/chunks/000001", "series/*/tombstones"}

func inRun(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	ok(t, err)
	if len(found) != 1 {
		t.Fatalf("%s: %q", pattern, found)
	}
	return found[0]
}

// In the place of each file of a run may be anything.
func TestWhatIsNoFileOfARun(t *testing.T) {
	t.Parallel()
	runs := map[bool]string{true: aRun(t, true), false: aRun(t, false)}
	secret := filepath.Join(t.TempDir(), "secret")
	ok(t, os.WriteFile(secret, []byte("root:x:0:0\n"), 0o600))
	for _, pattern := range append(files, "series/wal/00000000") {
		for name, put := range map[string]func(string) error{
			"fifo":          func(f string) error { return unix.Mkfifo(f, 0o666) },
			"link to zeros": func(f string) error { return os.Symlink("/dev/zero", f) },
			"link outside":  func(f string) error { return os.Symlink(secret, f) },
			"zeros":         func(f string) error { return unix.Mknod(f, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))) },
			"directory":     func(f string) error { return os.Mkdir(f, 0o700) },
		} {
			t.Run(pattern+" "+name, func(t *testing.T) {
				dir := copyOf(t, runs[!strings.Contains(pattern, "wal")])
				file := inRun(t, dir, pattern)
				ok(t, os.RemoveAll(file))
				err := put(file)
				if errors.Is(err, unix.EPERM) {
					t.Skipf("not as this user: %v", err)
				}
				ok(t, err)
				got := plimsoll(t, "diagnose", dir)
				if strings.HasPrefix(name, "link") {
					got.wants(t, exitRunDir, linkOut)
				}
				got.wants(t, exitRunDir, "")
				if strings.Contains(got.stderr+got.out, "root:x") {
					t.Errorf("it shows what a link leads to: %s", got.stderr)
				}
			})
		}
	}
}

// What a stranger's run claims must not be believed.
func TestARunThatIsTooMuch(t *testing.T) {
	t.Parallel()
	runs := map[bool]string{true: aRun(t, true), false: aRun(t, false)}
	for name, c := range map[string]struct {
		closed bool
		spoil  func(t *testing.T, dir string)
		code   int
		want   string
	}{
		"an interval of a millisecond": {true, func(t *testing.T, dir string) { edit(t, dir+"/run.json", `"interval_ms": 1000`, `"interval_ms": 1`) }, exitOK, ""},
		"no interval":                  {true, func(t *testing.T, dir string) { edit(t, dir+"/run.json", `"interval_ms": 1000`, `"interval_ms": 0`) }, exitOK, ""},
		"an interval below nothing": {true, func(t *testing.T, dir string) {
			edit(t, dir+"/run.json", `"interval_ms": 1000`, `"interval_ms": -9000000000000000000`)
		}, exitOK, ""},
		"a window of 300 years": {true, func(t *testing.T, dir string) {
			edit(t, dir+"/run.json", `"end_ms": 1700000059000`, `"end_ms": 11170000000000`)
		}, exitRunDir, "window hold"},
		"a window before time": {true, func(t *testing.T, dir string) {
			edit(t, dir+"/run.json", `"start_ms": 1700000010000`, `"start_ms": -9000000000000000000`)
		}, exitRunDir, "window hold"},
		"a manifest of 10 GB": {true, func(t *testing.T, dir string) { sparse(t, dir+"/run.json", 10<<30) }, exitRunDir, "run.json"},
		"hosts without end": {true, func(t *testing.T, dir string) {
			repeat(t, dir+"/run.json", `{"format":1,"hosts":[{}`, ",{}", "]}", 2_700_000)
		}, exitRunDir, "hosts"},
		"notes without end": {true, func(t *testing.T, dir string) {
			repeat(t, dir+"/run.json", `{"format":1,"notes":[""`, `,""`, "]}", 2_700_000)
		}, exitOK, ""},
		"brackets without end": {true, func(t *testing.T, dir string) { repeat(t, dir+"/run.json", `{"format":1,"x":`, `[`, "", 5_000_000) }, exitRunDir, "run.json"},
		"latencies of 10 GB":   {true, func(t *testing.T, dir string) { sparse(t, dir+"/latency.hlog", 10<<30) }, exitRunDir, "longer than"},
		"a line many times": {true, func(t *testing.T, dir string) {
			raw, err := os.ReadFile(dir + "/latency.hlog")
			ok(t, err)
			line := raw[bytes.LastIndexByte(bytes.TrimSuffix(raw, []byte("\n")), '\n')+1:]
			repeat(t, dir+"/latency.hlog", "", string(line), "", 1_000_000)
		}, exitRunDir, "cannot have"},
		"latencies of another day": {true, func(t *testing.T, dir string) { edit(t, dir+"/latency.hlog", "=response,1700", "=response,1701") }, exitRunDir, "the run's samples are"},
		"events of 10 GB":          {true, func(t *testing.T, dir string) { sparse(t, dir+"/events.jsonl", 10<<30) }, exitOK, ""},
		"an index of 10 GB":        {true, func(t *testing.T, dir string) { sparse(t, inRun(t, dir, "series/*/index"), 10<<30) }, exitRunDir, "want at most"},
		"chunks of 10 GB":          {true, func(t *testing.T, dir string) { sparse(t, inRun(t, dir, "series/*/chunks/000001"), 10<<30) }, exitRunDir, "want at most"},
		"a log of 10 GB":           {false, func(t *testing.T, dir string) { sparse(t, dir+"/series/wal/00000000", 10<<30) }, exitRunDir, "this is no run's"},
		"a log of many segments":   {false, func(t *testing.T, dir string) { manyFiles(t, dir+"/series/wal", 10_001) }, exitRunDir, "more than 10000 entries"},
		"a block of the first of times": {true, func(t *testing.T, dir string) {
			edit(t, inRun(t, dir, "series/*/meta.json"), `"minTime": 1`, `"minTime": -1`)
		}, exitOK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyOf(t, runs[c.closed])
			c.spoil(t, dir)
			plimsoll(t, "diagnose", dir).wants(t, c.code, c.want)
		})
	}
}

func manyFiles(t *testing.T, dir string, n int) {
	t.Helper()
	for i := range n {
		ok(t, os.WriteFile(fmt.Sprintf("%s/%08d", dir, i), nil, 0o600))
	}
}

// A profile of some megabytes unpacks to gigabytes, or is small and makes many.
func TestAProfileThatIsTooMuch(t *testing.T) {
	t.Parallel()
	run := aRun(t, true)
	zeros := packed(t, func(w io.Writer) { io.CopyN(w, zero{}, 16<<20) })
	for name, write := range map[string]func(f io.Writer){
		"a bomb of 3 GB":           func(f io.Writer) { f.Write(bytes.Repeat(zeros, 190)) },
		"a bomb within a bomb":     func(f io.Writer) { f.Write(packed(t, func(w io.Writer) { w.Write(bytes.Repeat(zeros, 190)) })) },
		"empty samples":            func(f io.Writer) { f.Write(bytes.Repeat([]byte{0x12, 0}, 8_000_000)) },
		"a sample of labels":       func(f io.Writer) { f.Write(field(2, bytes.Repeat([]byte{0x1a, 0}, 8_000_000))) },
		"a location of lines":      func(f io.Writer) { f.Write(field(4, bytes.Repeat([]byte{0x22, 0}, 8_000_000))) },
		"a stack without end":      func(f io.Writer) { f.Write(deepStack(5_000_000)) },
		"many stacks of many ways": func(f io.Writer) { f.Write(manyStacks(1500, 1500)) },
		"the end of the device":    func(f io.Writer) { io.CopyN(f, zero{}, 100<<20) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyOf(t, run)
			f, err := os.Create(filepath.Join(dir, "cpu.pb.gz"))
			ok(t, err)
			write(f)
			ok(t, f.Close())
			plimsoll(t, "flame", dir).wants(t, exitRunDir, "cpu.pb.gz")
			plimsoll(t, "flame", f.Name()).wants(t, exitRunDir, "cpu.pb.gz")
		})
	}
	t.Run("nobody writes", func(t *testing.T) {
		t.Parallel()
		fifo := filepath.Join(t.TempDir(), "fifo")
		ok(t, unix.Mkfifo(fifo, 0o600))
		plimsoll(t, "flame", fifo).wants(t, exitRunDir, "fifo")
		plimsoll(t, "diagnose", fifo).wants(t, exitRunDir, "fifo: not a directory")
		plimsoll(t, "flame", "/dev/zero").wants(t, exitRunDir, "/dev/zero")
	})
}

// zero gives zeros without end.
type zero struct{}

func (zero) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func packed(t *testing.T, write func(io.Writer)) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	ok(t, err)
	write(z)
	ok(t, z.Close())
	return b.Bytes()
}

// field is one of protocol buffers that has bytes.
func field(n byte, data []byte) []byte {
	return append(binary.AppendUvarint([]byte{n<<3 | 2}, uint64(len(data))), data...)
}

// profileOf is a profile of one kind of value, with so many functions.
func profileOf(functions int) []byte {
	p := field(1, []byte{8, 1, 16, 1})
	p = append(append(p, field(6, nil)...), field(6, []byte("count"))...)
	for i := range functions {
		id := binary.AppendUvarint([]byte{8}, uint64(i+1))
		p = append(p, field(6, fmt.Appendf(nil, "function_%d", i))...)
		p = append(p, field(5, append(id, binary.AppendUvarint([]byte{16}, uint64(i+2))...))...)
		p = append(p, field(4, append(id, field(4, id)...))...)
	}
	return p
}

func sampleOf(stack []byte) []byte { return field(2, append(field(1, stack), 16, 1)) }

func deepStack(depth int) []byte {
	return append(profileOf(1), sampleOf(bytes.Repeat([]byte{1}, depth))...)
}

// manyStacks has stacks that have nothing in common.
func manyStacks(stacks, depth int) []byte {
	p := profileOf(stacks + depth)
	for i := range stacks {
		stack := binary.AppendUvarint(nil, uint64(i+1))
		for d := range depth - 1 {
			stack = append(binary.AppendUvarint(nil, uint64(stacks+d+1)), stack...)
		}
		p = append(p, sampleOf(stack)...)
	}
	return p
}

const aRule = `id: bad
title: A rule
kind: cause
subject: [host]
story: none
applies: node_nf_conntrack_entries > 0
clues:
  - {id: c, role: decides, measure: "%s", is: "> 0", why: w, say: "%s", by_hand: b}
`

// A colleague's rules may be anything.
func TestRulesThatAreTooMuch(t *testing.T) {
	t.Parallel()
	run := aRun(t, true)
	rule := func(measure, say string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			ok(t, os.WriteFile(dir+"/l/bad/rule.yaml", fmt.Appendf(nil, aRule, measure, say), 0o600))
		}
	}
	laughs := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'l'; c++ {
		laughs += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
	}
	records := "- {record: 'a:b:c0', help: h, expr: up}\n"
	for i := range 40 {
		records += fmt.Sprintf("- {record: 'a:b:c%d', help: h, expr: 'a:b:c%d + a:b:c%d'}\n", i+1, i, i)
	}
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		code  int
		want  string
	}{
		"a subquery by the millisecond": {rule("max_over_time(up[365d:1ms])", "s"), exitRules, "moments; want at most"},
		"one in another":                {rule("max_over_time(max_over_time(up[1h:1s])[1h:1s])", "s"), exitOK, ""},
		"a sentence of a gigabyte":      {rule("up", strings.Repeat(`{{printf \"%1000000d\" 1}}`, 1000)), exitOK, ""},
		"a range of all time":           {rule("max_over_time(node_nf_conntrack_entries[200y])", "s"), exitOK, ""},
		"a rule of 200 MB":              {func(t *testing.T, dir string) { repeat(t, dir+"/l/bad/rule.yaml", "story: ", "a\\n", "", 200<<20/3) }, exitRules, "rule.yaml"},
		"2 MB of rules": {func(t *testing.T, dir string) {
			for i := range 43 {
				sub := fmt.Sprintf("%s/l/r%d", dir, i)
				ok(t, os.Mkdir(sub, 0o700))
				repeat(t, sub+"/rule.yaml", "story: ", strings.Repeat("a", 50), "", 1000)
			}
		}, exitRules, "more than the set may have"},
		"rules without end": {func(t *testing.T, dir string) {
			for i := range 1001 {
				sub := fmt.Sprintf("%s/l/r%d", dir, i)
				ok(t, os.Mkdir(sub, 0o700))
				ok(t, os.WriteFile(sub+"/rule.yaml", nil, 0o600))
			}
		}, exitRules, "more than 1000 rules"},
		"a gigabyte of rules": {func(t *testing.T, dir string) {
			for i := range 32 {
				sub := fmt.Sprintf("%s/l/r%d", dir, i)
				ok(t, os.Mkdir(sub, 0o700))
				sparse(t, sub+"/rule.yaml", 32<<20)
			}
		}, exitRules, "more than 65536 bytes"},
		"files without end":    {func(t *testing.T, dir string) { manyFiles(t, dir+"/l", 20_001) }, exitRules, "or 20000 files"},
		"aliases without end":  {func(t *testing.T, dir string) { ok(t, os.WriteFile(dir+"/l/bad/rule.yaml", []byte(laughs), 0o600)) }, exitRules, "rule.yaml"},
		"records of records":   {func(t *testing.T, dir string) { ok(t, os.WriteFile(dir+"/records.yaml", []byte(records), 0o600)) }, exitRules, "with its records"},
		"brackets without end": {func(t *testing.T, dir string) { repeat(t, dir+"/l/bad/rule.yaml", "story: ", "[", "", 60_000) }, exitRules, "rule.yaml"},
		"a fifo":               {func(t *testing.T, dir string) { ok(t, unix.Mkfifo(dir+"/l/bad/rule.yaml", 0o600)) }, exitRules, "want a plain file"},
		"zeros":                {func(t *testing.T, dir string) { ok(t, os.Symlink("/dev/zero", dir+"/l/bad/rule.yaml")) }, exitRules, linkOut},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ok(t, os.MkdirAll(dir+"/l/bad", 0o700))
			c.spoil(t, dir)
			plimsoll(t, "diagnose", run, "--rules", dir).wants(t, c.code, c.want)
			if c.code != exitOK {
				plimsoll(t, "rules", "check", dir).wants(t, c.code, c.want)
			}
		})
	}
	t.Run("the whole system", func(t *testing.T) {
		plimsoll(t, "rules", "check", "/").wants(t, exitRules, "")
	})
	t.Run("thresholds without end", func(t *testing.T) {
		plimsoll(t, "diagnose", run, "--thresholds", "/dev/zero").wants(t, exitRules, "more than")
	})
}

// Whatever is named as the file of a token, nothing of it is shown, and no server is asked.
func TestATokenFileThatIsNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		ok(t, os.WriteFile(dir+"/"+name, []byte(text), 0o600))
		return dir + "/" + name
	}
	fifo := func(name string) string {
		ok(t, unix.Mkfifo(dir+"/"+name, 0o600))
		return dir + "/" + name
	}
	huge := file("huge", "")
	ok(t, os.Truncate(huge, 1<<40))
	for name, c := range map[string]struct{ path, want string }{
		"zeros":         {"/dev/zero", "more than 65536 bytes"},
		"a terabyte":    {huge, "more than 65536 bytes"},
		"nobody writes": {fifo("alone"), "it is empty; want a line with the token"},
		"empty":         {file("empty", " \n"), "it is empty; want a line with the token"},
		"two lines":     {file("two", "hunter2\nX-Own: a\n"), "want one line of printable ASCII"},
		"no text":       {file("binary", "hunter2\x00"), "want one line of printable ASCII"},
		"a directory":   {dir, "is a directory"},
		"below a file":  {file("plain", "") + "/x", "not a directory"},
		"links in a circle": {func() string {
			ok(t, os.Symlink("circle", dir+"/circle"))
			return dir + "/circle"
		}(), "too many levels of symbolic links"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := plimsoll(t, "diagnose", "--prometheus", "http://127.0.0.1:1", "--token-file", c.path)
			e.wants(t, exitUsage, c.want)
			if !strings.Contains(e.stderr, filepath.Base(c.path)) || strings.Contains(e.stderr, "hunter2") {
				t.Errorf("it said %q", e.stderr)
			}
		})
	}
}

// What a command line names as a file of certificates, keys or packets may be none.
func TestFilesThatAreNone(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	ok(t, unix.Mkfifo(fifo, 0o600))
	config := filepath.Join(t.TempDir(), "web.yml")
	ok(t, os.WriteFile(config, []byte("tls_server_config: {cert_file: "+fifo+", key_file: "+fifo+"}\n"), 0o600))
	for name, c := range map[string]struct {
		words string
		code  int
		want  string
	}{
		"certificates without end":   {"load https://127.0.0.1:1/ -n 1 --cacert /dev/zero", exitUsage, "/dev/zero: more than"},
		"certificates of nobody":     {"load https://127.0.0.1:1/ -n 1 --cacert " + fifo, exitUsage, "want at least one as PEM"},
		"a key without end":          {"load https://127.0.0.1:1/ -n 1 --cert " + fifo + " --key /dev/zero", exitUsage, "/dev/zero: more than"},
		"serve's certificate":        {"serve --cert /dev/zero --key " + fifo, exitUsage, "/dev/zero: more than"},
		"serve's key":                {"serve --cert " + fifo + " --key " + fifo, exitUsage, "failed to find any PEM"},
		"a web config without end":   {"watch --listen 127.0.0.1:0 --web-config /dev/zero", exitUsage, "/dev/zero: want a plain file"},
		"a web config of nobody":     {"watch --listen 127.0.0.1:0 --web-config " + fifo, exitUsage, "want a plain file"},
		"a web config's certificate": {"watch --listen 127.0.0.1:0 --web-config " + config, exitUsage, "want a plain file"},
		"packets without end":        {"capture /dev/zero", exitRunDir, "want a capture file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plimsoll(t, strings.Fields(c.words)...).wants(t, c.code, c.want)
		})
	}
}

// A server that is asked may be anybody's.
func TestAServerThatIsTooMuch(t *testing.T) {
	t.Parallel()
	write := func(w http.ResponseWriter, s string) bool { _, err := io.WriteString(w, s); return err == nil }
	head := `{"status":"success","data":{"resultType":"matrix","result":[`
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"redirects": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"x", http.StatusTemporaryRedirect)
		}, "sends us elsewhere"},
		"10 GB": {func(w http.ResponseWriter, _ *http.Request) {
			write(w, head+`{"metric":{"a":"`)
			io.CopyN(w, zeroes{}, 10<<30)
		}, "cannot be read"},
		"series without end": {func(w http.ResponseWriter, _ *http.Request) {
			for write(w, head); write(w, strings.Repeat(`{"metric":{}},`, 1000)); {
			}
		}, "too much"},
		"readings without end": {func(w http.ResponseWriter, _ *http.Request) {
			for write(w, head+`{"metric":{"__name__":"node_load1"},"values":[[0,"0"]`); write(w, strings.Repeat(`,[0,"0"]`, 1000)); {
			}
		}, "cannot be read"},
		"hosts without end": {func(w http.ResponseWriter, _ *http.Request) {
			write(w, head)
			for i := range 10_000 {
				write(w, fmt.Sprintf(`{"metric":{"__name__":"node_nf_conntrack_entries","instance":"h%d"},"values":[[1,"0"],[2,"0"]]},`, i))
			}
			write(w, `{"metric":{"__name__":"node_nf_conntrack_entries","instance":"h"},"values":[[1,"0"],[2,"0"]]}]}}`)
		}, "hosts; want at most"},
		"a packed bomb": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
			write(w, "")
			io.CopyN(z, zeroes{}, 3<<30)
		}, "not as Prometheus does"},
		"closed at once": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "closed it without an answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plimsoll(t, "diagnose", "--prometheus", anybodys(t, c.answer), "--at", "1000").wants(t, exitUnreachable, c.want)
		})
	}
}

// anybodys is the address of a server that answers so.
func anybodys(t *testing.T, answer http.HandlerFunc) string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // else it is not noticed that the client is gone
		answer(w, r)
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(srv.CloseClientConnections)
	return srv.URL
}

// Who says nothing is given up. All are asked at once, in one of the places that tests have beside one another: they only wait.
func TestWhoeverIsSilentIsGivenUp(t *testing.T) {
	t.Parallel()
	silence := anybodys(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	aByteASecond := anybodys(t, func(w http.ResponseWriter, r *http.Request) {
		tick := time.Tick(time.Second)
		for _, err := io.WriteString(w, " "); err == nil; _, err = io.WriteString(w, " ") {
			w.(http.Flusher).Flush()
			select {
			case <-tick:
			case <-r.Context().Done():
				return
			}
		}
	})
	gone, err := net.Listen("tcp", "127.0.0.1:0") // accepted by the kernel alone
	ok(t, err)
	defer gone.Close()
	nobody, silent := t.TempDir()+"/nobody", t.TempDir()+"/silent"
	ok(t, errors.Join(unix.Mkfifo(nobody, 0o600), unix.Mkfifo(silent, 0o600)))
	writer, err := os.OpenFile(silent, os.O_RDWR, 0)
	ok(t, err)
	defer writer.Close()
	var all sync.WaitGroup
	for _, c := range []struct {
		words string
		code  int
		want  string
	}{
		{"diagnose --at 1000 --prometheus " + silence, exitUnreachable, "accepted the connection and did not answer within"},
		{"diagnose --at 1000 --prometheus " + aByteASecond, exitUnreachable, "was not done after"},
		{"diagnose --prometheus http://" + gone.Addr().String(), exitUnreachable, "accepted the connection and did not answer within"},
		{"diagnose --prometheus http://127.0.0.1:1 --token-file " + silent, exitUsage, "silent: its writer was not done after 20s"},
		{"capture " + nobody, exitRunDir, "nobody wrote to this pipe for 20s"},
	} {
		all.Go(func() { plimsoll(t, strings.Fields(c.words)...).wants(t, c.code, c.want) })
	}
	all.Wait()
}

// zeroes gives the digit 0 without end.
type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// A link in a folder of rules is not followed out of it: what is no rule would be
// shown, line by line, as what is wrong with it.
func TestALinkInAFolderOfRulesLeadsNowhereElse(t *testing.T) {
	dir := t.TempDir()
	ok(t, os.WriteFile(dir+"/private", []byte("hunter2: x\n"), 0o600))
	ok(t, os.MkdirAll(dir+"/rules/l/bad", 0o700))
	ok(t, os.Symlink("../../../private", dir+"/rules/l/bad/rule.yaml"))
	plimsoll(t, "rules", "check", "--rules", dir+"/rules").wants(t, exitRules, linkOut)
}
