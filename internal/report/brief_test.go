package report

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"plimsoll/internal/model"
)

func TestBriefGoldens(t *testing.T) {
	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			golden(t, s.name+"_brief.txt", text(t, s.make(), TextOptions{}))
			golden(t, s.name+"_evidence.txt", text(t, s.make(), TextOptions{Detail: Evidence}))
		})
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]+m")

// Where a limit is reached that has no fix of its own, what a request could be spared is one.
func TestBriefSaysWhatCanBeSpared(t *testing.T) {
	got := strings.Join(strings.Fields(string(text(t, billedReport(), TextOptions{}))), " ")
	if !strings.Contains(got, "up to 2.17 × the replies by: php.ini: opcache.enable=1") {
		t.Errorf("%s", got)
	}
}

// What packets show is said to its end where no rule says what it means: nothing else is said then.
func TestBriefSaysWhatPacketsShow(t *testing.T) {
	r := watchAloneReport()
	r.Plan = model.Plan{Mode: "capture", Capture: &model.CapturePlan{Files: []string{"a.pcap"}}}
	r.Verdict.Sentence = strings.Repeat("so many resets by the client, since it had closed. ", 8) + "Segments were lost, too."
	got := string(text(t, r, TextOptions{}))
	if !strings.Contains(got, "lost, too.") || strings.Count(got, "\n") > briefLines {
		t.Errorf("%s", got)
	}
}

// aStep begins what is to be done: a change, one that is a try since its cause is suspected, a look, or nothing at all.
var aStep = regexp.MustCompile(`(?m)^(fix|try|next) `)

// Whatever a run has, its brief report fits a small terminal, and says the answer,
// what to do, and how to see more.
func TestBriefFitsAScreen(t *testing.T) {
	words := func(t *rapid.T, name string) string {
		return strings.Join(rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,14}`), 1, 60).Draw(t, name), " ")
	}
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.SampledFrom(samples).Draw(t, "sample").make()
		r.Closed = rapid.Bool().Draw(t, "closed")
		r.Verdict.Sentence = words(t, "sentence")
		r.Notes = []string{words(t, "note")}
		for range rapid.IntRange(0, 2).Draw(t, "tools") {
			r.ToolSummaries = append(r.ToolSummaries, model.ToolSummary{Tool: words(t, "tool")})
		}
		for _, list := range [][]model.Finding{r.Verdict.Root, r.Verdict.Grounds} {
			for i := range list {
				f := &list[i]
				for range rapid.IntRange(0, 4).Draw(t, "clues") {
					f.Clues = append(f.Clues, model.Clue{Role: model.Decides, Truth: model.True, Say: words(t, "say"), ByHand: words(t, "by hand") + "  # " + words(t, "comment")})
				}
				f.Clues = append(f.Clues, f.Clues...)
				f.Fix = append([]model.Fix{{Title: words(t, "fix"), Command: strings.Repeat(words(t, "command")+"\n", rapid.IntRange(1, 5).Draw(t, "lines")), Costs: words(t, "costs")}}, f.Fix...)
			}
		}
		for i := range r.Verdict.Nearest {
			r.Verdict.Nearest[i].Settle, r.Verdict.Nearest[i].ByHand = words(t, "settle"), words(t, "by hand")
		}
		var b bytes.Buffer
		if err := Text(&b, r, TextOptions{Color: rapid.Bool().Draw(t, "color")}); err != nil {
			t.Fatal(err)
		}
		said := escapes.ReplaceAllString(b.String(), "")
		lines := strings.Split(strings.TrimSuffix(said, "\n"), "\n")
		if len(lines) > briefLines {
			t.Fatalf("%d lines\n%s", len(lines), said)
		}
		reasons := map[string]bool{}
		for _, l := range lines {
			if _, reason, ok := strings.Cut(l, " + "); ok {
				if reasons[reason] {
					t.Fatalf("said twice: %s\n%s", reason, said)
				}
				reasons[reason] = true
			}
			if n := utf8.RuneCountInString(l); n > 80 {
				t.Fatalf("%d columns: %s", n, l)
			}
		}
		for _, want := range []string{"VERDICT: ", "\ncost ", "\nmore "} {
			if !strings.Contains(said, want) {
				t.Fatalf("no %q in\n%s", want, said)
			}
		}
		if !aStep.MatchString(said) || strings.Contains(said, "undo automatic") {
			t.Fatalf("no next step, or one that undoes itself, in\n%s", said)
		}
		if len(r.Verdict.Root) > 0 && strings.Contains(said, "\nnext ") && !strings.Contains(said, "more rights") {
			t.Fatalf("no fix in\n%s", said)
		}
	})
}

// A fix of which a value is not known would do nothing here; what a person can do stands first then.
func TestBriefAdvisesWhatCanBeDone(t *testing.T) {
	unknown := model.Fix{Title: "one", Changes: []model.FixChange{{Kind: model.ChangePolicy, Name: "sh"}}}
	person := model.Fix{Title: "two", Changes: []model.FixChange{{Kind: model.ChangePerson, Name: "look"}}}
	known := model.Fix{Title: "three", Changes: []model.FixChange{{Kind: model.ChangeNice, Name: "sh", Value: "5"}}}
	same := model.Fix{Title: "same", Changes: []model.FixChange{{Kind: model.ChangeSysctl, Name: "net.ipv4.tcp_syncookies", Old: "1", Value: "1"}}}
	for want, list := range map[string][]model.Fix{"two": {unknown, same, person, known}, "three": {known, person}, "one": {unknown}} {
		if got := mostUseful(list); got.Title != want {
			t.Errorf("%s, want %s", got.Title, want)
		}
	}
}

// Whatever the answer is, one thing to do stands there, and what it costs; nothing of ours is cut.
func TestBriefSaysWhatToDoAndWhatItCosts(t *testing.T) {
	for _, s := range samples {
		said := string(text(t, s.make(), TextOptions{}))
		steps := len(aStep.FindAllString(said, -1))
		if steps != 1 || strings.Count(said, "\ncost ") != 1 {
			t.Errorf("%s: %d steps\n%s", s.name, steps, said)
		}
		if strings.Contains(said, "…") {
			t.Errorf("%s: cut:\n%s", s.name, said)
		}
	}
}

// What is set now stands beside what it becomes, with its unit; what is so already, and what only a file can say, does not.
func TestBriefSaysOldAndNew(t *testing.T) {
	for want, f := range map[string]model.Fix{
		"the CPU quota of /pod: 0.5 CPUs → 2 CPUs":      {Changes: []model.FixChange{{Kind: model.ChangeQuota, Name: "/pod", Old: "50000 100000", Value: "200000 100000"}}},
		"the CPUs of the program \"node\": 1 CPU → all": {Changes: []model.FixChange{{Kind: model.ChangeAffinity, Name: "node", Old: "1", Value: "all"}}},
		"net.core.somaxconn: 10 → 4096":                 {Changes: []model.FixChange{{Kind: model.ChangeSysctl, Name: "net.core.somaxconn", Old: "10", Value: "4096"}, {Kind: model.ChangeSysctl, Name: "kernel.pid_max", Old: "7", Value: "7"}}},
		"pm.max_children: 5 → 101; pm.start_servers: 101 (in the pool's file: `grep -rl max_children /etc` finds it; then `systemctl reload 'php*-fpm'`)": {Changes: []model.FixChange{
			{Kind: model.ChangePHPFPM, Name: "pm.max_children", Old: "5", Value: "101"}, {Kind: model.ChangePHPFPM, Name: "pm.start_servers", Value: "101"}}},
		"worker_connections: more than now (this run does not tell how much) (in nginx's configuration; then `nginx -t && nginx -s reload`)": {Changes: []model.FixChange{{Kind: model.ChangeNginx, Name: "worker_connections"}}},
	} {
		if got := changesOf(f); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// How a fix is taken back is said for who types it; only tune takes anything back by itself.
func TestTermsAreForWhoTypes(t *testing.T) {
	memory := 3.0 * (1 << 30)
	for want, f := range map[string]model.Fix{
		"low risk, no restart, lasts until the next boot (/etc/sysctl.d keeps it)": {Risk: "low", Restart: "none", Undo: automatic,
			Changes: []model.FixChange{{Kind: model.ChangeSysctl, Old: "1", Value: "2", Type: "sysctl -w x=2"}}},
		"low risk, reloads nginx (requests under way are finished)": {Risk: "low", Restart: "reload", Undo: automatic,
			Changes: []model.FixChange{{Kind: model.ChangeNginx, Name: "a", Old: "1"}, {Kind: model.ChangeNginx, Name: "b"}}},
		"medium risk, reloads nginx (requests under way are finished), up to 3 GiB more memory than now; care": {
			Risk: "medium", Restart: "reload", Undo: automatic, MemoryBytes: &memory, Costs: "care", Changes: []model.FixChange{{Kind: model.ChangeNginx, Value: "2"}}},
		"low risk, no restart, lasts until the process restarts (CPUAffinity= of its unit, or its container's cpuset, keeps it)": {
			Risk: "low", Undo: automatic, Changes: []model.FixChange{{Kind: model.ChangeAffinity, Name: "node", Old: "1", Value: "all", Type: "taskset"}}},
		"medium risk, no restart": {
			Risk: "medium", Undo: "manual", First: &model.FirstStep{Type: "nft list ruleset", Then: "a higher rate"}},
		"low risk, no restart": {Risk: "low", Undo: "manual", First: &model.FirstStep{Then: "-m 128"}},
		"low risk, no restart; space; looking: it runs the statement once": {
			Risk: "low", Undo: "manual", Costs: "space", First: &model.FirstStep{Type: "sudo -u postgres psql -c 'EXPLAIN (ANALYZE) SELECT 1'", Then: "an index"}},
		"low risk, no restart; looking: the process is a lot slower until ^C": {
			Risk: "low", Undo: "manual", First: &model.FirstStep{Type: "ip netns exec a strace -p 7", Then: "look"}},
		"requests a few percent slower meanwhile; a person's time": {
			Risk: "low", Undo: nothingChanged, Costs: "a person's time", First: &model.FirstStep{Type: "plimsoll trace offcpu -d 10s"}},
		"high risk, restarts the host (cuts all requests)": {Risk: "high", Restart: "host", Undo: "impossible"},
		"low risk, no restart but of what is changed": {Risk: "low", Restart: "none", Undo: "manual", Back: "of the program: its version before",
			First: &model.FirstStep{Type: "psql", Then: "end it"}},
		"medium risk, restarts apache2 (cuts its requests)": {Risk: "low", Restart: "service", Undo: "manual", First: &model.FirstStep{Then: "apachectl configtest && systemctl restart apache2"}},
		"medium risk, restarts that UNIT (cuts its requests)": {Risk: "medium", Restart: "service", Undo: "manual", Back: "then systemctl restart UNIT",
			First: &model.FirstStep{Type: "ps", Then: "restart the UNIT"}},
		"low risk, reloads haproxy (requests under way are finished)":            {Risk: "low", Restart: "reload", Undo: "manual", First: &model.FirstStep{Then: "systemctl reload haproxy"}},
		"low risk, reloads what is changed (most finish the requests under way)": {Risk: "low", Restart: "reload", Undo: "manual", First: &model.FirstStep{Then: "systemctl reload haproxy, or nginx -s reload"}},
		"medium risk, restarts the program (cuts its requests)": {Risk: "low", Restart: "none", Undo: automatic, Changes: []model.FixChange{ // a backlog that a person writes down
			{Kind: model.ChangeSysctl, Name: "s", Old: "128", Value: "4096"}, {Kind: model.ChangeBacklog, Name: "l", Old: "128", Value: "4096"}}},
	} {
		if got := terms(f, model.Plan{}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// How a fix is taken back is said with what is to be typed, and with the value before where that is known.
func TestTakeBackSaysHow(t *testing.T) {
	for want, f := range map[string]model.Fix{
		"|sysctl -w x=1":  {Undo: automatic, Changes: []model.FixChange{{Kind: model.ChangeSysctl, Name: "x", Old: "1", Value: "2", Type: "sysctl -w x=2", Back: "sysctl -w x=1"}}},
		backAsNoted + "|": {Undo: automatic, Changes: []model.FixChange{{Kind: model.ChangeSysctl, Name: "x", Value: "2", Type: "sysctl -w x=2"}}},
		"a back to 1, b back to 2, then `nginx -t && nginx -s reload`|":                               {Undo: automatic, Changes: []model.FixChange{{Kind: model.ChangeNginx, Name: "a", Old: "1"}, {Kind: model.ChangeNginx, Name: "b", Old: "2"}}},
		"a back to 1, the rest to what it was (note that first), then `nginx -t && nginx -s reload`|": {Undo: automatic, Changes: []model.FixChange{{Kind: model.ChangeNginx, Name: "a", Old: "1"}, {Kind: model.ChangeNginx, Name: "b"}}},
		notedBefore + ", then `systemctl reload 'php*-fpm'`|":                                         {Undo: automatic, Changes: []model.FixChange{{Kind: model.ChangePHPFPM, Name: "a"}}},
		notedBefore + "|":          {Undo: "manual", First: &model.FirstStep{Then: "-m 128"}},
		"|set 64":                  {Undo: "manual", First: &model.FirstStep{Type: "set 128", Old: "64", Back: "set 64"}},
		"drop the index|":          {Undo: "manual", Back: "drop the index"},
		"|":                        {Undo: nothingChanged},
		"it cannot be taken back|": {Undo: impossible},
		"the same line with the list that you noted (such as 0-3)|":                 {Undo: automatic, Changes: []model.FixChange{{Kind: model.ChangeAffinity, Name: "node", Old: "1", Value: "all", Type: "taskset"}}},
		"the queue of l back to 128, then a restart of the service|sysctl -w s=128": {Undo: automatic, Changes: []model.FixChange{{Kind: model.ChangeSysctl, Name: "s", Old: "128", Value: "4096", Back: "sysctl -w s=128"}, {Kind: model.ChangeBacklog, Name: "l", Old: "128", Value: "4096"}}},
	} {
		text, commands := takeBack(f)
		if got := text + "|" + commands; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What shows that a step helped is named in the numbers that stand above it, and what then.
func TestAgainSaysWhatShowsThatItHelped(t *testing.T) {
	v := 0.951
	f := model.Finding{Fix: []model.Fix{{Title: "a"}}, Clues: []model.Clue{{Role: model.Decides, Truth: model.True, Value: &v, Is: ">= 0.5", Say: "95.1 % of the requests waited"}}}
	r := model.Report{Plan: model.Plan{Load: &model.LoadPlan{Connections: 10}}, Load: &model.Load{GoodRPS: 244, GoodShare: 1}}
	if got, want := strings.Join(helpedIf(r, f).judged("undo it"), ". "), "why (now 95.1 %) below 50 % or gone: helped. 50 to 86.1 %: in part, keep it. Above: undo it. Users: now 244 good replies/s; above 293: helped"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r.Load.GoodShare = 0.2
	if got := helpedIf(r, f).users; got != "now 80 % fail; below 8 %: helped" {
		t.Error(got)
	}
	lost := 1144.0
	f.Clues[0] = model.Clue{Role: model.Decides, Truth: model.True, Value: &lost, Is: "> 0", Say: "the kernel refused 1,144 packets"}
	if got, want := strings.Join(helpedIf(model.Report{}, f).judged("see -v"), ". "), "why (now 1,144 packets) 0 or gone: helped. 1 to 915: in part, keep it. Above: see -v"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := strings.Join(helpedIf(r, f).judged("undo it"), ". "), "users (now 80 % fail) below 8 %: helped. 8 to 64 %: in part, keep it. Above: undo it"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	share := 1.0
	f.Clues[0] = model.Clue{Role: model.Decides, Truth: model.True, Value: &share, Is: "> 0", Say: "100 % of the requests waited"}
	if got, want := strings.Join(helpedIf(model.Report{}, f).judged("see -v"), ". "), "why gone or far weaker: helped. Weaker by a fifth or more: in part, keep it. Else: see -v"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := orElse(model.Verdict{}, f, model.Fix{Undo: "manual"}); got != "undo it, see -v" {
		t.Error(got)
	}
	if got := orElse(model.Verdict{}, f, model.Fix{Undo: nothingChanged}); strings.Contains(got, "undo") {
		t.Errorf("%q: a look is not undone", got)
	}
}

// The command that measures again is quoted, and a flag of it is set before a command of the user's own.
func TestAgainIsTheCommand(t *testing.T) {
	words := []string{"plimsoll", "watch", "--host", "a=netns:b", "--", "wrk", "-c", "2", "http://a/?b=1&c=2"}
	if got, want := typedWords(flagSet{"-c", "--connections", "4"}.in(words)), "plimsoll watch --host a=netns:b -c 4 -- wrk -c 2 'http://a/?b=1&c=2'"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := typedWords(flagSet{"-c", "--connections", "4"}.in([]string{"plimsoll", "run", "URL", "-c", "2"})), "plimsoll run URL -c 4"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := typedWords(CommandAgain(model.Plan{Mode: "watch"}, twoHosts)), "plimsoll watch --host client=netns:cli --host server=netns:srv -d 60s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := CommandAgain(model.Plan{Mode: "run", Load: &model.LoadPlan{}}, nil); got != nil {
		t.Errorf("%q of a run that does not tell", got)
	}
}

// What was assumed or could not be read is never counted as measured.
func TestHowSureCountsWhatWasMeasured(t *testing.T) {
	clue := func(role model.Role, truth model.Truth) model.Clue {
		return model.Clue{Role: role, Truth: truth, Say: "it", Missing: "a_total: was denied"}
	}
	taken := clue(model.Needs, model.True)
	taken.Assumed, taken.Say = true, "assumed, not measured, since no load of ours ran: users were waiting (100 %)"
	kernel := clue(model.Needs, model.True)
	kernel.By = []string{"nginx", "the kernel"}
	const sure, likely, alone = "confirmed (proven by measuring): sure: ", "suspected (likely, not proven): not sure: ", "; nothing else fits"
	for want, f := range map[string]model.Finding{
		sure + "Plimsoll measured both its signs" + alone:                                                        {Answer: model.Confirmed, Clues: []model.Clue{clue(model.Needs, model.True), clue(model.Decides, model.True), clue(model.Proves, model.False), clue(model.Supports, model.True)}},
		sure + "the kernel and nginx measured both its signs" + alone:                                            {Answer: model.Confirmed, Clues: []model.Clue{kernel, clue(model.Decides, model.True)}},
		"confirmed, one sign assumed: sure: Plimsoll measured 1 of 2 signs; assumed: users were waiting" + alone: {Answer: model.Confirmed, Clues: []model.Clue{taken, clue(model.Proves, model.True)}},
		sure + "Plimsoll measured 1 of 2 signs; not read:  (-v)" + alone:                                         {Answer: model.Confirmed, Clues: []model.Clue{clue(model.Proves, model.True), clue(model.Decides, model.Unknown)}},
		sure + "Plimsoll measured all 3 signs" + alone:                                                           {Answer: model.Confirmed, Clues: []model.Clue{clue(model.Needs, model.True), clue(model.Needs, model.True), clue(model.Decides, model.True), clue(model.Proves, model.Unknown)}},
		likely + "its one sign fits, but is no proof; it may also be: another":                                   {Answer: model.Suspected, Clues: []model.Clue{clue(model.Needs, model.True)}, Unlike: []model.Lookalike{{Rule: "out", Title: "ruled out"}, {Rule: "other", Title: "another"}}},
		likely + "what would prove it was not seen: it":                                                          {Answer: model.Suspected, Clues: []model.Clue{clue(model.Needs, model.True), clue(model.Proves, model.False)}},
	} {
		f.Kind = "cause"
		r := model.Report{Verdict: model.Verdict{Answer: model.AnswerCause, Root: []model.Finding{f}, RuledOut: []model.Finding{{Rule: "out", Kind: "cause"}}}}
		if got := HowSure(r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	half := model.Finding{Kind: "cause", Answer: model.Confirmed, Clues: []model.Clue{clue(model.Proves, model.True), clue(model.Decides, model.False)}}
	if got, want := signs(half), "Plimsoll measured 1 of 2 signs; not so: it"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	many := 4936.0
	r := model.Report{Plan: model.Plan{Mode: "watch"}, Windows: []model.Window{{Name: model.Hold, Start: 1000, End: 11_000}},
		Verdict: model.Verdict{Answer: model.AnswerHealthy, Grounds: []model.Finding{{Kind: "healthy", Answer: model.Confirmed, Clues: []model.Clue{{ID: "many", Truth: model.True, Value: &many}}}}}}
	if got, want := HowSure(r), "measured: holds for these 10 s, and for the 4,936 requests in them"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A text that is too long ends where a part of it ends.
func TestShortestEndsWhereAPartEnds(t *testing.T) {
	for text, want := range map[string]string{
		"one two three; four five six seven eight": "one two three",
		"one two three four five six seven eight":  "one two three fou…",
		"one, two": "one, two",
	} {
		if got := shortest(text, 19, 1); strings.TrimSpace(got) != want {
			t.Errorf("%q of %q, want %q", got, text, want)
		}
	}
}

// A command to look with is shown where it can be typed: whole, and with nothing left to fill in.
func TestBriefShowsWhatCanBeTyped(t *testing.T) {
	for command, want := range map[string]bool{"ss -ltn": true, "cat /proc/PID/stat": false, "": false, "x '" + strings.Repeat("long ", 20) + "'": false} {
		if got := fitToType(command, 80); got != want {
			t.Errorf("%q: %v, want %v", command, got, want)
		}
	}
}

func TestLooksToUsers(t *testing.T) {
	load := func(good float64, p50, p99, alone float64) model.Report {
		return model.Report{Load: &model.Load{GoodShare: good, Latency: model.Quantiles{Count: 9, P50: p50, P99: p99}, Calm: model.Quantiles{Count: 1, P50: alone}}}
	}
	dropped := model.Clue{ID: "through", Role: model.Needs, Truth: model.False, Say: "88 % of the connections were dropped"}
	judged := func(kind string, clues ...model.Clue) model.Report {
		return model.Report{Verdict: model.Verdict{RuledOut: []model.Finding{{Kind: kind, Clues: clues}}}}
	}
	for want, r := range map[string]model.Report{
		"not proven to be well: 88 %":           judged("healthy", model.Clue{Role: model.Supports, Truth: model.False, Say: "few came"}, dropped),
		"nothing was seen that looks bad to":    judged("healthy", model.Clue{ID: "applies", Role: model.Needs, Truth: model.False, Say: "there is none"}),
		"nothing was seen that looks bad to th": judged("cause", dropped),
		"that is what looks bad":                load(0.5, 1e3, 2e3, 1e3),
		"one in 100 waited longer than 1.15 s":  load(1, 293, 1.15e6, 25),
		"half waited longer than 10 ms":         load(1, 1e4, 2e4, 1e3),
		"nothing looks bad":                     load(1, 1e4, 2e4, 9e3),
		"nothing was seen that looks bad":       {},
	} {
		if got := looksToUsers(r); !strings.Contains(got, want) {
			t.Errorf("%q, want %q in it", got, want)
		}
	}
}

func TestSecondHasItsOwnFirstStep(t *testing.T) {
	bare, step := model.Finding{Title: "one"}, model.Finding{Title: "two", Fix: []model.Fix{{Title: "mend", First: &model.FirstStep{Type: "ss -tn", Then: "close it"}}}}
	for want, root := range map[string][]model.Finding{
		"ss -tn":           {bare, step},
		"as the evidence ": {step, bare},
	} {
		s := &sheet{o: TextOptions{Width: 80}}
		secondFix(s, model.Report{Verdict: model.Verdict{Root: root}})
		if s.steps[0].Label != "second" || !slices.ContainsFunc(s.steps, func(step Step) bool { return strings.Contains(step.Text, want) }) {
			t.Errorf("%v, want %q in it", s.steps, want)
		}
	}
}

func TestNearestToALimitHasItsNumbers(t *testing.T) {
	v := 0.8
	near := model.Finding{Kind: "cause", Title: "full", Subject: map[string]string{"host": "server"}, Answer: model.Near,
		Clues: []model.Clue{{Role: model.Decides, Truth: model.False, Value: &v, Is: ">= 0.95", Say: "the table was 80 % full"}}}
	got := nothingToMend(model.Verdict{Answer: model.AnswerHealthy, Findings: []model.Finding{near}})
	if want := "nearest to a limit: full (server): the table was 80 % full (threshold: 95 % or more)"; !strings.HasSuffix(got, want) {
		t.Errorf("%q, want it to end in %q", got, want)
	}
}

func TestWhatIsCloseBehindWasMeasured(t *testing.T) {
	zero := 0.0
	near := model.Finding{Rule: "r", Kind: "cause", Title: "packets are dropped", Answer: model.Near, Clues: []model.Clue{{Role: model.Decides, Truth: model.False}}}
	v := model.Verdict{Answer: model.AnswerCause, Findings: []model.Finding{near}}
	if got := closeBehind(v); got != "" {
		t.Errorf("%q, of which there was nothing", got)
	}
	v.Findings[0].Clues[0].Value = &zero
	if got := closeBehind(v); !strings.Contains(got, "not the cause: packets are dropped") {
		t.Error(got)
	}
}

// A service that answers with errors says why in its own log, and nowhere else.
func TestErrorRepliesAreTheServicesToExplain(t *testing.T) {
	r := model.Report{Verdict: model.Verdict{Answer: model.AnswerUnclear}, Plan: model.Plan{Load: &model.LoadPlan{Connections: 20}},
		Load: &model.Load{Outcomes: map[string]int64{"good": 40, "status:5xx": 60}}}
	if next := moreToSee(r).text; !strings.Contains(next, "own log") {
		t.Errorf("%q: want the service's own log", next)
	}
	r.Load.Outcomes["good"] = 60
	if next := moreToSee(r).text; strings.Contains(next, "own log") {
		t.Errorf("%q: want no log where most replies are good", next)
	}
}

// What a clue says of something else than requests, such as CPU time, is not told again as if it was theirs.
func TestWhatIsSaidAlready(t *testing.T) {
	share := 0.828
	var watch model.Report
	for say, want := range map[string]string{
		"processes of stress that ended used 82.8 % of all CPU time": "",
		"82.8 % of the requests waited for a worker":                 "82.8 % of the requests' time was lost to it",
	} {
		f := model.Finding{Kind: "cause", Impact: &share, Clues: []model.Clue{{Truth: model.True, Value: &share, Say: say}}}
		if got := SoWhat(f, watch); got != want {
			t.Errorf("beside %q it says %q, want %q", say, got, want)
		}
	}
}

// A cost is one number of one meaning: no more can have failed than did, and where a few slow requests hold the time, that is said.
func TestSoWhatHasOneMeaning(t *testing.T) {
	share := 0.6
	load := func(good, max, mean float64) model.Report {
		return model.Report{Plan: model.Plan{Load: &model.LoadPlan{}}, Breakdown: &model.Breakdown{MeanSeconds: mean},
			Load: &model.Load{GoodShare: good, Latency: model.Quantiles{Count: 9, P50: 300, P99: 2e3, Max: max}}}
	}
	for _, c := range []struct {
		of     string
		report model.Report
		want   string
	}{
		{model.ImpactFailed, load(0.4, 1e3, 3e-4), "60 % of the requests failed because of it"},
		{model.ImpactFailed, load(0.9, 1e3, 3e-4), "60 % of the requests failed or came late because of it"},
		{model.ImpactFailed, model.Report{}, "60 % of the requests failed because of it"},
		{model.ImpactDelayed, load(1, 1e3, 3e-4), "60 % of the requests were delayed by it"},
		{model.ImpactDelayed, load(0.9, 1e3, 3e-4), "60 % of the requests failed or came late because of it"},
		{model.ImpactPackets, model.Report{}, "60 % of the packets that arrived belong to it"},
		{model.ImpactMachineCPU, load(1, 1e3, 3e-4), "60 % of the machine's CPU time goes into it"},
		{model.ImpactProgramCPU, load(1, 1e3, 3e-4), "60 % of the program's CPU time goes into it"},
		{"", load(1, 1e3, 3e-4), "60 % of the requests' time was lost to it"},
		{"", load(1, 1e6, 9e-3), "60 % of the requests' time was lost to it; most requests were quick (half took at most 300 µs), a few slow ones hold that time (up to 1 s)"},
	} {
		if got := SoWhat(model.Finding{Kind: "cause", Impact: &share, ImpactOf: c.of}, c.report); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// What has to stay is shortened where nothing is left to leave out.
func TestFitShortensWhatStays(t *testing.T) {
	s := &sheet{o: TextOptions{Width: 80}}
	s.item(mustKeep, "then", 4, strings.Repeat("look at it. ", 20))
	s.item(background, "note", 2, "it is old")
	if got := fit(s.blocks, 2); strings.Count(got, "\n") != 2 || strings.Contains(got, "old") {
		t.Errorf("%q: want the first two lines of what has to stay", got)
	}
}

// Who asks of a program that computes all the time learns where, although nothing is wrong.
func TestWhereAProgramComputes(t *testing.T) {
	for _, c := range []struct {
		share float64
		names map[string]string
		want  string
	}{
		{0.5, map[string]string{"groupname": "java", "function": "Smooth.smooth (Smooth.java:24)"}, "in Smooth.smooth (Smooth.java:24)"},
		{0.49, map[string]string{"groupname": "java", "function": "Smooth.smooth (Smooth.java:24)"}, "nothing needs fixing"},
	} {
		clue := model.Clue{ID: "function", Role: model.Supports, Truth: model.True, Value: &c.share, Names: c.names}
		got := nothingToMend(model.Verdict{Answer: model.AnswerHealthy, Grounds: []model.Finding{{Clues: []model.Clue{clue}}}})
		if !strings.HasSuffix(got, c.want) {
			t.Errorf("%v: got %q, want it to end in %q", c.share, got, c.want)
		}
	}
}
