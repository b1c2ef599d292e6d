package cpu

import (
	"bufio"
	"debug/elf"
	"encoding/binary"
	"io"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"plimsoll/internal/probe/livetest"
	"plimsoll/internal/trace/symbol"
	"plimsoll/internal/trace/tracetest"
)

// The script: two methods that take CPU time, called from two lines of one function.
const script8 = `<?php
class Worker {
    public function busy($n) {
        $s = 0.0;
        for ($i = 0; $i < $n; $i++) {
            $s += sqrt($i);
        }
        return $s;
    }
    static function plain($n) {
        $x = 1;
        for ($i = 0; $i < $n; $i++) {
            $x = ($x * 31 + $i) % 1000003;
        }
        return $x;
    }
}
function outer($w) {
    return $w->busy(100000) +
        Worker::plain(100000);
}
$w = new Worker;
while (true) {
    outer($w);
}
`

func phpScript(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "busy.php")
	if err := os.WriteFile(path, []byte(script8), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// program finds one of these programs, or skips the test.
func program(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := osexec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skipf("none of %v is here", names)
	return ""
}

// knows skips the test if the version of a PHP is none that is known here.
func knows(t *testing.T, php string) {
	t.Helper()
	f, err := elf.Open(php)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	if _, ok := phpVersions[phpVersion(f)]; !ok {
		t.Skipf("%s is PHP %s, of which nothing is known here", php, phpVersion(f))
	}
}

func TestScriptOfPHP(t *testing.T) {
	php := program(t, "php8.2", "php")
	knows(t, php)
	tr := started(t)
	me := "php" + strconv.Itoa(os.Getpid())
	path := phpScript(t)
	begun(t, me, php, nil, path)
	scriptIsSeen(t, tr, me, path)
}

// scriptIsSeen waits for some samples, and looks for the script's functions in them.
func scriptIsSeen(t *testing.T, tr *Trace, me, path string) {
	t.Helper()
	var g Group
	tracetest.Eventually(t, "its script was found 60 times", func() bool {
		g = seen(t, tr, me)
		return g.function("php:") > 60
	})
	want := map[string]uint64{
		"php:sqrt in Worker::busy " + path + ":6": 0,
		"php:Worker::plain " + path + ":":         0,
	}
	for name := range want {
		if n := g.function(name); n < 3 {
			t.Errorf("%s was found %d times of %d: %+v", name, n, g.all(), g.Functions)
		}
	}
	if script, user := g.function("php:"), g.User; float64(script) < 0.8*float64(user) {
		t.Errorf("%d of %d samples know the script: %+v", script, user, g.Functions)
	}
	lines := chains(tr, me)
	for _, want := range []string{
		"php:{main} " + path + ":24 < none",
		"php:outer " + path + ":19 < php:{main} " + path + ":24",
		"php:outer " + path + ":20 < php:{main} " + path + ":24",
		"php:Worker::busy " + path + ":6 < php:outer " + path + ":19",
		"php:sqrt < php:Worker::busy " + path + ":6",
	} {
		if !lines[want] {
			t.Errorf("nowhere %s", want)
		}
	}
	for line := range lines {
		if strings.Contains(line, "[unknown]") {
			t.Errorf("%s", line)
		}
	}
}

// chains returns for a group's script functions who called whom.
func chains(tr *Trace, me string) map[string]bool {
	lines := map[string]bool{}
	for _, s := range tr.taken.samples() {
		for i, f := range s.Frames {
			if s.Labels["groupname"] != me || f.Module != phpFrames {
				continue
			}
			caller := "none"
			if i+1 < len(s.Frames) {
				caller = s.Frames[i+1].Function
			}
			lines[f.Function+" < "+caller] = true
		}
	}
	return lines
}

const fpmPool = `[global]
error_log = DIR/log
daemonize = no
[www]
listen = DIR/socket
pm = static
pm.max_children = 2
catch_workers_output = yes
user = nobody
group = nogroup
`

// Under php-fpm the workers are forked from a process that was known at the start,
// so that the first sample knows the script.
func TestScriptOfFPM(t *testing.T) {
	fpm := livetest.PHPFPM(t)
	knows(t, fpm)
	path := phpScript(t)
	for dir := filepath.Dir(path); dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { // the workers are nobody
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	conf := filepath.Join(dir, "fpm.conf")
	if err := os.WriteFile(conf, []byte(strings.ReplaceAll(fpmPool, "DIR", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	tracetest.Need(t, Tracer())
	me := "php-fpm" + strconv.Itoa(os.Getpid())
	pid, _ := begun(t, me, fpm, nil, "-F", "-y", conf)
	var conn net.Conn
	tracetest.Eventually(t, "php-fpm answers", func() (ok bool) {
		var err error
		conn, err = net.Dial("unix", filepath.Join(dir, "socket"))
		return err == nil
	})
	defer conn.Close()
	tr := started(t)
	var where bpfPhp
	if err := tr.Maps.Maps[bpfMapPhpProcesses].Lookup(uint32(pid), &where); err != nil {
		t.Error("the master was not found at the start:", err)
	}
	if err := fastCGI(conn, path); err != nil {
		t.Fatal(err)
	}
	scriptIsSeen(t, tr, me, path)
}

// fastCGI asks for a script, as nginx does.
func fastCGI(w io.Writer, path string) error {
	out := bufio.NewWriter(w)
	record := func(kind byte, body []byte) {
		head := []byte{1, kind, 0, 1, 0, 0, 0, 0}
		binary.BigEndian.PutUint16(head[4:], uint16(len(body)))
		out.Write(append(head, body...))
	}
	record(1, []byte{0, 1, 0, 0, 0, 0, 0, 0}) // begin, as a responder
	var params []byte
	for _, p := range [][2]string{{"SCRIPT_FILENAME", path}, {"REQUEST_METHOD", "GET"}, {"SCRIPT_NAME", "/busy.php"}} {
		params = append(append(append(params, byte(len(p[0])), byte(len(p[1]))), p[0]...), p[1]...)
	}
	record(4, params)
	record(4, nil)
	record(5, nil)
	return out.Flush()
}

func TestScriptFrames(t *testing.T) {
	var s bpfScript
	copy(s.Function[:], "busy")
	copy(s.Class[:], "A\\B")
	copy(s.File[:], "/srv/x.php")
	want := symbol.Frame{Function: `php:A\B::busy /srv/x.php:12`, File: "/srv/x.php", Line: 12, Module: phpFrames}
	if got := scriptOf(&s).frame(12); got != want {
		t.Errorf("%+v", got)
	}
	s.FileLength = 500
	if got := scriptOf(&s).frame(12).File; got != "…/srv/x.php" {
		t.Errorf("%q", got)
	}
	internal, main := script{function: "sqrt"}.frame(0), script{file: "/x.php"}.frame(3)
	for want, frames := range map[string][]symbol.Frame{
		"php:sqrt in {main} /x.php:3": {internal, main}, "php:{main} /x.php:3": {main}, "php:sqrt": {internal},
	} {
		if got := leaf(frames); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestModulesOfPHP(t *testing.T) {
	for name, want := range map[string]bool{
		"php": true, "php8.2": true, "php-fpm8.2": true, "php-cgi": true, "libphp.so": true, "libphp8.2.so": true, "php-fpm": true,
		"php_helper": false, "nginx": false, "libxphp.so": false,
	} {
		if phpModule().MatchString(name) != want {
			t.Errorf("%s: want %v", name, want)
		}
	}
}

// What includes a file is told from what it does next, though PHP notes only the former.
func TestIncludesOfPHP(t *testing.T) {
	php := program(t, "php8.2", "php")
	knows(t, php)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var library strings.Builder
	library.WriteString("<?php\n")
	for i := range 3000 {
		library.WriteString("$f" + strconv.Itoa(i) + " = function ($a, $b) { return $a * $b + " + strconv.Itoa(i) + "; };\n")
	}
	lib := write("library.php", library.String())
	path := write("main.php", "<?php\nfunction loads() { require '"+lib+"'; }\nfunction loops() {\n  $x = 1; include '"+write("small.php", "<?php\n")+"';\n"+
		"  for ($i = 0; $i < 300000; $i++) { $x = $x ^ $i; }\n}\nwhile (true) { loads(); loops(); }\n")
	tr := started(t)
	me := "php" + strconv.Itoa(os.Getpid())
	begun(t, me, php, nil, "-d", "opcache.enable_cli=0", path)
	loads, loops := "php:{include} in loads "+path+":2", "php:loops "+path+":"
	var g Group
	tracetest.Eventually(t, "both were found 30 times", func() bool {
		g = seen(t, tr, me)
		return g.function(loads) > 30 && g.function(loops) > 30
	})
	if n := g.function("php:{include} in loops"); n > g.function(loops)/4 {
		t.Errorf("%d samples are taken for the include, %d for the loop after it: %+v", n, g.function(loops), g.Functions)
	}
}
