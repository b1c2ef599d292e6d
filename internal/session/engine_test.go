package session

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/load"
	"plimsoll/internal/model"
	"plimsoll/internal/orphans/heldtest"
)

// fakeEngine as the first argument makes the test binary a load engine that
// does what the second one says.
const fakeEngine = "fake-engine"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == fakeHolder {
		os.Exit(Hold(os.Args[2], os.Args[3:], os.Environ()))
	}
	if len(os.Args) == 4 && os.Args[1] == fakeWatch {
		os.Exit(watchFor(os.Args[2], os.Args[3]))
	}
	if len(os.Args) == 2 && os.Args[1] == fakeCollector {
		playCollector()
	}
	if len(os.Args) == 3 && os.Args[1] == fakeEngine {
		playEngine(os.Args[2])
	}
	heldtest.Main(m)
}

// script is a load engine that says what a test wants to hear.
type script struct {
	out     *json.Encoder
	phase   string
	replies map[string]int64 // by phase
	order   []string
}

// playEngine reads the plan, plays one of the endings, and exits.
func playEngine(ending string) {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, syscall.SIGINT)
	var plan model.LoadPlan
	if err := json.NewDecoder(os.Stdin).Decode(&plan); err != nil || plan.Headers[0] != token {
		fmt.Fprintln(os.Stderr, "no plan:", plan.Headers, err)
		os.Exit(70)
	}
	s := &script{out: json.NewEncoder(os.Stdout), replies: map[string]int64{}}
	s.begin(model.Calm)
	if ending == "waits in calm" {
		<-interrupted
		s.end(true)
	}
	s.begin(model.Ramp)
	s.begin(model.Hold)
	switch ending {
	case "gives up":
		fmt.Fprintln(os.Stderr, "no such host")
		os.Exit(4)
	case "is killed":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "talks nonsense":
		fmt.Println("{")
		select {}
	case "waits in hold":
		s.say(load.Record{})
		<-interrupted
		s.end(true)
	case "says much at once":
		for range 50 {
			s.say(load.Record{})
		}
	}
	s.end(false)
}

// begin counts ten more replies in the phase that ends, and begins another.
func (s *script) begin(phase string) {
	r := load.Record{PhaseEnded: s.phase, PhaseStarted: phase}
	s.phase = phase
	if phase != load.Drain {
		s.order = append(s.order, phase)
	}
	s.say(r)
}

func (s *script) say(r load.Record) {
	r.Time, r.Phase, r.Target = time.Now().UnixMilli(), s.phase, "127.0.0.1:80"
	for _, phase := range s.order {
		if phase == s.phase || phase == r.PhaseEnded {
			s.replies[phase] += 10
		}
		r.Phases = append(r.Phases, load.PhaseRecord{Phase: phase, Requests: s.replies[phase], Outcomes: map[string]int64{"2xx": s.replies[phase]}})
	}
	if err := s.out.Encode(r); err != nil {
		os.Exit(1)
	}
}

func (s *script) end(cancelled bool) {
	s.begin(load.Drain)
	s.say(load.Record{Final: true, Totals: &load.Totals{CPUSeconds: 1.5, Cancelled: cancelled}})
	os.Exit(0)
}
