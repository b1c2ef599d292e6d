package breakdown

import (
	"math"
	"strings"
	"testing"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

func newProgram(word string) *synthetic {
	s := newSynthetic()
	s.meta.Plan = model.Plan{Mode: "watch", Program: word}
	return s
}

func (s *synthetic) run() *record.Run {
	s.memory.Sort()
	return record.InMemory(s.meta, s.memory)
}

// The parts of a program's time are all of it, the largest first; files of which none stands out are one part.
func TestProgram(t *testing.T) {
	s := newProgram("4711")
	for labels, seconds := range map[string]float64{
		"doing=running,thread=import": 1, "doing=running,thread=pool": 0.5, "doing=disk,call=fsync,towards=/srv/journal,thread=import": 4,
		"doing=disk,call=read,towards=/srv/a,thread=import": 0.5, "doing=disk,call=read,towards=/srv/b,thread=import": 0.5, "doing=disk,call=read,towards=/srv/c,thread=import": 0.5,
		"doing=socket_read,call=recv,towards=10.0.0.5:5432,thread=import": 1,
	} {
		s.counter("plimsoll_program_seconds_total{host=server,"+labels+"}", seconds)
	}
	s.counter("plimsoll_program_thread_seconds_total{host=server,doing=running}", 3)
	s.counter("plimsoll_program_cpu_seconds_total{host=server,mode=user}", 1)
	s.counter("plimsoll_program_cpu_seconds_total{host=server,mode=system}", 0.5)
	s.counter("plimsoll_program_looks_total{host=server}", 500)
	s.level("plimsoll_program_processes{host=server,groupname=import.py}", 1)
	s.level("plimsoll_program_threads{host=server}", 2)
	p, err := Program(s.run())
	if err != nil {
		t.Fatal(err)
	}
	if p.Missing != "" || p.Host != "server" || p.Seconds != 8 || p.WindowSeconds != 10 || p.Looks != 500 || p.AtOnce != 2 {
		t.Errorf("%+v", p)
	}
	want := []model.ProgramPart{
		{Doing: "disk", Call: "fsync", Towards: "/srv/journal", Thread: "import", Seconds: 4, Share: 0.5, Text: "waiting for the disk: fsync of /srv/journal"},
		{Doing: "disk", Call: "read", Towards: several, Thread: "import", Seconds: 1.5, Share: 0.1875, Text: "waiting for the disk: read of many, none of which stands out"},
		{Doing: "running", Thread: "import", Seconds: 1.5, Share: 0.1875, Text: "computing"},
		{Doing: "socket_read", Call: "recv", Towards: "10.0.0.5:5432", Thread: "import", Seconds: 1, Share: 0.125, Text: "waiting for an answer from 10.0.0.5:5432"},
	}
	sum := 0.0
	for i, part := range p.Parts {
		sum += part.Share
		if i < len(want) && part != want[i] {
			t.Errorf("part %d: %+v, want %+v", i, part, want[i])
		}
	}
	if len(p.Parts) != len(want) || math.Abs(sum-1) > 1e-9 {
		t.Errorf("%d parts of %v in all", len(p.Parts), sum)
	}
	if got := "import.py (PID 4711) spends 50 % of its time waiting for the disk: fsync of /srv/journal"; p.Sentence != got {
		t.Errorf("%q, want %q", p.Sentence, got)
	}
}

// A program that was not there is told as that, and one that may not be seen with the reason; nothing of it is zero.
func TestNoProgram(t *testing.T) {
	s := newProgram("psql")
	s.level("node_load1{host=server}", 1)
	p, err := Program(s.run())
	if err != nil || len(p.Parts) > 0 || !strings.Contains(p.Missing, `no program "psql" was there`) {
		t.Errorf("%+v, %v", p, err)
	}
	s.meta.Status["server"][programSeconds] = model.Status{State: model.Denied, Why: "look at the threads of psql, which takes CAP_SYS_PTRACE"}
	if p, err = Program(s.run()); err != nil || !strings.Contains(p.Missing, "CAP_SYS_PTRACE") {
		t.Errorf("%+v, %v", p, err)
	}
	s.meta.Plan.Program = ""
	if p, err := Program(s.run()); p != nil || err != nil {
		t.Errorf("a run that was asked about no program: %+v, %v", p, err)
	}
}

// All that a program may be found doing has words.
func TestDoingHasWords(t *testing.T) {
	for _, doing := range []string{"running", "queued", "throttled", "unseen", "terminal", "reclaim", "disk", "lock", "socket_read", "socket_write", "connect", "accept",
		"poll", "sleep", "page_fault", "pipe", "pipe_write", "child", "file_lock", "uninterruptible_other", "stopped", "file_system", "other"} {
		for _, towards := range []string{"", "x"} {
			if text := doingWords(model.ProgramPart{Doing: doing, Towards: towards}); text == "" || strings.Contains(text, "in "+doing) {
				t.Errorf("%s towards %q: %q", doing, towards, text)
			}
		}
	}
}
