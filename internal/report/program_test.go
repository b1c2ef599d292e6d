package report

import (
	"strings"
	"testing"

	"plimsoll/internal/model"
)

func ofProgram(parts ...model.ProgramPart) model.Report {
	r := base()
	r.Plan = model.Plan{Mode: "watch", Program: "import.py"}
	r.Load = nil
	r.Verdict = model.Verdict{Answer: model.AnswerHealthy, Sentence: "No program waits for a CPU."}
	r.Program = &model.ProgramTime{Host: "server", Names: []string{"python3"}, Seconds: 9, WindowSeconds: 10, CPUs: 0.4, SystemShare: 0.5, Processes: 1, Threads: 1, Looks: 600,
		Parts: parts, Sentence: "import.py spends its time somehow", About: []string{}}
	return r
}

// What a program spends most of its time on has a remedy, or is said to be nothing that holds it up; all of it fits a screen
// with the remedy last.
func TestProgramFitsAScreen(t *testing.T) {
	for _, doing := range []string{"running", "queued", "throttled", "unseen", "terminal", "reclaim", "disk", "lock", "socket_read", "socket_write", "connect",
		"poll", "sleep", "page_fault", "pipe", "pipe_write", "child", "file_lock", "uninterruptible_other", "stopped", "file_system", "other"} {
		parts := []model.ProgramPart{{Doing: doing, Call: "write", Towards: "10.0.0.5:5432", Share: 0.7, Text: strings.Repeat("doing what it does ", 8)}}
		for range 9 {
			parts = append(parts, model.ProgramPart{Doing: "disk", Share: 0.033, Text: strings.Repeat("and another thing, too, ", 6)})
		}
		var out strings.Builder
		if err := Text(&out, ofProgram(parts...), TextOptions{Width: 80}); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		for _, line := range lines {
			if len([]rune(line)) > 80 {
				t.Errorf("%s: %q is longer than 80 columns", doing, line)
			}
		}
		if len(lines) > briefLines || !strings.Contains(out.String(), "\nfaster ") || !strings.Contains(out.String(), "\ncost ") {
			t.Errorf("%s: %d lines:\n%s", doing, len(lines), out.String())
		}
		if held := doing == "poll" || doing == "child" || doing == "other" || doing == "unseen"; strings.Contains(out.String(), "at most (70") == held {
			t.Errorf("%s: held up %v:\n%s", doing, !held, out.String())
		}
	}
}

// Where the verdict is about the program it is told with its fix, and else as what there is to say of the host.
func TestProgramAndVerdict(t *testing.T) {
	r := ofProgram(model.ProgramPart{Doing: "socket_read", Towards: "$(reboot):1", Share: 1, Text: "waiting for an answer"})
	var out strings.Builder
	if err := Text(&out, r, TextOptions{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "the host   healthy: No program waits") || !strings.Contains(out.String(), "ss -tnpi dst '$(reboot):1'") {
		t.Errorf("the host's verdict and a quoted peer are wanted:\n%s", out.String())
	}
	r.Program.About = []string{"process.blocked"}
	out.Reset()
	if err := Text(&out, r, TextOptions{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "VERDICT: HEALTHY") || strings.Contains(out.String(), "\nfaster ") {
		t.Errorf("the verdict is wanted:\n%s", out.String())
	}
	r.Program = &model.ProgramTime{Missing: "no program was there"}
	out.Reset()
	if err := Text(&out, r, TextOptions{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "nothing is known of its time: no program was there") {
		t.Error(out.String())
	}
}

func TestTimesFaster(t *testing.T) {
	for share, want := range map[float64]string{0.5: "2 times", 0.9: "10 times", 0.1: "1.1 times", 1: "a hundred times and more"} {
		if got := timesFaster(share); got != want {
			t.Errorf("%v: %q, want %q", share, got, want)
		}
	}
}
