package requests

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"plimsoll/internal/model"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/tcp/tcptest"
	"plimsoll/internal/trace/tracetest"
)

// Signals rest on all functions, for without one turns are told wrong.
func TestTurnsRestOnEveryFunction(t *testing.T) {
	spec, err := loadBpf()
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range spec.Programs {
		if trace.OnFunction(p) && !slices.Contains(needs[server.begun], name) {
			t.Errorf("%s is not needed", name)
		}
	}
}

// Where there is no IPv6 its programs are not asked for; a kernel's types need not name its functions.
func TestIPv6IsLeftOutWhereThereIsNone(t *testing.T) {
	kernel, err := trace.KernelTypes()
	if err != nil {
		t.Skip(err)
	}
	for _, ipv6 := range []bool{true, false} {
		spec, err := loadBpf()
		if err != nil {
			t.Fatal(err)
		}
		byFunctions.choose(spec, kernel, ipv6)
		for _, name := range []string{"in_inet6_recvmsg", "in_inet6_sendmsg"} {
			if (spec.Programs[name] != nil) != ipv6 {
				t.Errorf("IPv6 %v: %s %v", ipv6, name, spec.Programs[name])
			}
		}
	}
}

// TestRefusedFunction: without the reads of IPv6 sockets no turns are told, rather than
// requests that lie unread for ever; how connections end is.
func TestRefusedFunction(t *testing.T) {
	tracetest.Need(t, Tracer())
	spec, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	const refused = "in_inet6_recvmsg"
	spec.Programs[refused] = load(t, byFunctions).Programs[refused] // the others are as this kernel takes them
	if spec.Programs[refused] == nil {
		t.Skip("no IPv6")
	}
	spec.Programs[refused].AttachTo = "no_such_function"
	tr, err := start(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	status := tr.Status()
	for _, s := range signals {
		want := s == withoutByte || s == lost
		if read := status[s.Name].State == model.Read; read != want {
			t.Errorf("%s: %+v, want read %v", s.Name, status[s.Name], want)
		}
	}
}

// TestRequestsBetweenPrograms: what comes when not all programs are attached is not known
// to be unread, for the read may have gone unseen.
func TestRequestsBetweenPrograms(t *testing.T) { eachWay(t, betweenPrograms) }

func betweenPrograms(t *testing.T, w way) {
	ns := tcptest.OwnNetns(t, Tracer())
	tr, err := attach(load(t, w))
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	path := filepath.Join(t.TempDir(), "sock")
	name, _ := startServer(t, path)
	c := dial(t, "unix", path)
	defer c.Close()
	fmt.Fprintln(c, "never")
	if err := tr.Resume(); err != nil {
		t.Fatal(err)
	}
	p := at(t, tr, ns, "unix:"+path)
	if p.Unread != nil && *p.Unread != 0 || p.now(name) > 0 || w == byFunctions && p.Begun != 0 {
		t.Errorf("%+v", p)
	}
	ask(t, c, "wait 0")
	wait(t, tr, ns, "unix:"+path, "the next is followed", func(p Place) bool { return p.group(name).InHand.Buckets.Count() == 1 })
}
