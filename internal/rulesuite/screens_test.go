package rulesuite

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/diagnose"
	"plimsoll/internal/layout"
	"plimsoll/internal/lazy"
	"plimsoll/internal/model"
	"plimsoll/internal/report"
	"plimsoll/internal/ruleset"
	"plimsoll/rules"
)

// Of every recorded fault the screen says how sure it is, the one thing to type first, what to do then and where that shows nothing, all of what it costs
// and how it is taken back, and how to measure again, and fits; where its load was ours also with what came of that, as the screen of a run has it.
// PLIMSOLL_SCREENS=DIR writes them there, to be read.
func TestScreensOfRecordedFaults(t *testing.T) {
	set, err := ruleset.LoadTried(rules.FS)
	if err != nil {
		t.Fatal(err)
	}
	left, dir := int64(1<<30), os.Getenv("PLIMSOLL_SCREENS")
	for _, rule := range set.List {
		list, err := readSlices(rule, &left)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			if len(s.Holds) == 0 {
				continue
			}
			r := s.report(set, rule)
			name, shown := rule.ID+"."+s.name, dir
			if r.Plan.Load != nil { // as nobody sees it but where the run was cut off
				shown = ""
			}
			checkScreen(t, shown, name, r)
			if r.Plan.Load != nil {
				r.Load = s.load(set)
				checkScreen(t, dir, name, r)
			}
		}
	}
}

// load is what came of a slice's load: its outcomes where the slice has them, else some.
func (s *slice) load(set ruleset.Rules) *model.Load {
	q, l := s.run(), someLoad
	list, err := q.Samples(`sum by (outcome) (last_over_time(plimsoll_load_outcomes_total{phase="hold"}[$run])) > 0`, set.Known())
	if err != nil || len(list) == 0 {
		return &l
	}
	good, all := 0.0, 0.0
	l.Outcomes = map[string]int64{}
	for _, o := range list {
		l.Outcomes[o.Labels["outcome"]] = int64(o.Value)
		all += o.Value
		if strings.HasSuffix(o.Labels["outcome"], "xx") && o.Labels["outcome"] < "4" || strings.HasPrefix(o.Labels["outcome"], "expected:") {
			good += o.Value
		}
	}
	l.Requests, l.GoodShare, l.GoodRPS = int64(all), good/all, good/l.Seconds
	return &l
}

// someLoad is what came of a load, as far as a screen tells.
var someLoad = model.Load{Requests: 11_640, Seconds: 6, GoodRPS: 238, GoodShare: 0.885, Outcomes: map[string]int64{"2xx": 10_301, "5xx": 1_001, "timeout": 338},
	Latency: model.Quantiles{Count: 11_302, P50: 95_000, P99: 1_210_000, Max: 4_020_000}, Calm: model.Quantiles{Count: 90, P50: 11_300}}

// checkScreen checks the screen of a report, and writes it where that is wanted.
func checkScreen(t *testing.T, dir, name string, r model.Report) {
	t.Helper()
	var b bytes.Buffer
	if err := report.Text(&b, r, report.TextOptions{Run: "4f1c"}); err != nil {
		t.Fatal(err)
	}
	if dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".txt"), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, lacks := range lackOf(b.String(), r) {
		t.Errorf("%s: %s\n%s", name, lacks, b.String())
	}
}

// report is what is told of a slice, as far as its rule tells.
func (s *slice) report(set ruleset.Rules, rule *ruleset.Rule) model.Report {
	q := s.run()
	meta := q.Meta()
	if l := meta.Plan.Load; l != nil {
		meta.Plan.CommandLine = []string{"plimsoll", "run", l.URL, "-c", fmt.Sprint(l.Connections), "-d", fmt.Sprintf("%ds", l.DurationMS/1000), "--host", "server=netns:plimsoll-lab-server"}
	}
	rate := diagnose.RequestRate(q, set)
	set.List = []*ruleset.Rule{rule}
	r := model.Report{Plan: meta.Plan, Hosts: meta.Hosts, Windows: meta.Windows, Tracing: meta.Tracing, Closed: true, Dir: "RUN", RequestRate: rate}
	r.Verdict = diagnose.Diagnose(q, set, report.ByHand{Plan: meta.Plan, Hosts: meta.Hosts}.Command)
	return r
}

// lackOf says what a screen does not tell that it should.
func lackOf(screen string, r model.Report) (list []string) {
	const most = 23 // lines
	if n := strings.Count(screen, "\n"); n > most {
		list = append(list, fmt.Sprintf("%d lines", n))
	}
	for _, row := range []string{"cost", "undo"} {
		if !strings.Contains(screen, "\n"+row+" ") {
			list = append(list, "no "+row)
		}
	}
	list = append(list, brokenIn(screen, r)...)
	all := oneLine(screen)
	for _, step := range report.FirstSteps(r) {
		if slices.Contains([]string{"cost", "undo", "save", "then"}, step.Label) && !strings.Contains(all, oneLine(strings.ReplaceAll(step.Text, "the same command again with -", "plimsoll again 4f1c -"))) {
			list = append(list, fmt.Sprintf("not all of %s: %s", step.Label, step.Text))
		}
	}
	if !strings.Contains(screen, " plimsoll show 4f1c -v\n") {
		list = append(list, "not how the evidence is seen")
	}
	_, steps, _ := strings.Cut(all, " then ")
	before, cost, _ := strings.Cut(steps, " cost ")
	cost, undo, _ := strings.Cut(cost, " undo ")
	if strings.Contains(cost, "risk, restarts ") && !goesDown().MatchString(before+undo) {
		list = append(list, "a restart that is none of its steps")
	}
	if restartless().MatchString(screen) && restarted().MatchString(all) {
		list = append(list, "what restarts where nothing does")
	}
	if r.Verdict.Answer == model.AnswerCause {
		list = append(list, lackOfCause(screen, r)...)
	}
	return list
}

// restartless is a price without a restart, restarted are the words of a step that has something restart.
var (
	restartless = lazy.Regexp(`, no restart(,|;|\n)`)
	goesDown    = lazy.Regexp(`[Rr]estart|new version|version before|stop (it|the|that)|start it`)
	restarted   = lazy.Regexp(`systemctl restart|(then|and a) restart|restart it\b|version before`)
)

// judged is what to make of the next measurement: from which number on it helped, then which is a part of the way, where there is one between,
// then what is none.
var (
	judged = lazy.Regexp(`^((when it is as busy as now( \([\d,.]+ requests/s\))?|after the change|twice: the second run counts)[,;] )*` +
		`((why|so what|users) .*: helped\. ((\S.* to \S.*|Weaker by a fifth or more|Smaller by a fifth or more): in part, keep it\. )?|users: now .*: helped\. )(Above|Below|Else): `)
)

// brokenIn are the commands of a report's steps that its screen breaks without saying so to a shell, or has a mark behind that is none of theirs.
func brokenIn(screen string, r model.Report) (list []string) {
	var marked []string
	for _, f := range r.Verdict.Root {
		for _, x := range f.Fix {
			marked = append(marked, layout.Marked(x.Back+" "+x.Save)...)
			if x.First != nil {
				marked = append(marked, layout.Marked(x.First.Then)...)
			}
		}
	}
	marked = append(marked, "plimsoll again 4f1c -d 60s", "plimsoll compare 4f1c last", "plimsoll show 4f1c -v")
	lines := oneLine(screen)
	for _, command := range marked {
		words := strings.Fields(command)
		for i, w := range words {
			words[i] = regexp.QuoteMeta(w)
		}
		any := regexp.MustCompile(strings.Join(words, `\s+`))
		whole := regexp.MustCompile(strings.Join(words, `( | \\\n +)`))
		if len(any.FindAllString(screen, -1)) > len(whole.FindAllString(screen, -1)) {
			list = append(list, "broken without a backslash: "+command)
		}
		if strings.Contains(lines, command+",") || strings.Contains(lines, command+";") {
			list = append(list, "a mark behind a command: "+command)
		}
	}
	return list
}

// lackOfCause says what a screen that names a cause does not tell besides.
func lackOfCause(screen string, r model.Report) (list []string) {
	list = append(list, lackOfCertainty(screen)...)
	list = append(list, lackOfOrder(screen)...)
	list = append(list, holesIn(screen)...)
	if r.Verdict.Root[0].Rule == "load.wrong_requests" { // the same command would ask the same
		if !strings.Contains(screen, "\nagain      the test is at fault, not the service:") {
			list = append(list, "not what is at fault")
		}
		return list
	}
	_, again, found := strings.Cut(screen, "\nagain      plimsoll again 4f1c: ")
	again = oneLine(again)
	if !found {
		list = append(list, "no whole command that measures again")
	}
	if !judged().MatchString(again) {
		list = append(list, "not from which number on it helped, helped in part or did not")
	}
	if lower := strings.ToLower(again); r.Load != nil && !strings.Contains(lower, "users: now ") && !strings.Contains(lower, "users (now ") {
		list = append(list, "not what users get now, and when they gained")
	}
	return list
}

// lackOfCertainty says what a screen does not tell of how sure it is.
func lackOfCertainty(screen string) (list []string) {
	all := oneLine(screen)
	_, sure, found := strings.Cut(screen, "\nhow sure ")
	sure, _, _ = strings.Cut(sure, "\nwhy ")
	sure = oneLine(sure)
	switch {
	case !found:
		list = append(list, "not how sure that is")
	case strings.Contains(sure, "wrong if"):
		list = append(list, "that it is wrong where the fix is in vain is no reason")
	case strings.Contains(all, "proven by measuring") && strings.Contains(sure, "assumed"):
		list = append(list, "proven by measuring, and assumed")
	case someSigns().MatchString(sure) && !strings.Contains(sure, "; not ") && !strings.Contains(sure, "; assumed: "):
		list = append(list, "not which sign was not measured")
	case strings.Contains(sure, "not sure") && strings.Contains(sure, " measured "):
		list = append(list, "not sure, for no reason")
	}
	return list
}

// lackOfOrder says what of a screen's steps is not in its place: what to look at, what to save, what to change, and only what was saved to take back.
func lackOfOrder(screen string) (list []string) {
	at := -1
	for _, label := range []string{"look", "save", "change", "cost", "undo", "again"} {
		n := strings.Count(screen, "\n"+label+" ")
		if n > 1 {
			list = append(list, fmt.Sprintf("%d times %s", n, label))
		}
		if i := strings.Index(screen, "\n"+label+" "); i >= 0 && i < at {
			list = append(list, label+" comes too late")
		} else if i >= 0 {
			at = i
		}
	}
	if !strings.Contains(screen, "\nlook ") && !strings.Contains(screen, "\nchange ") {
		list = append(list, "no first step")
	}
	_, undo, _ := strings.Cut(screen, "\nundo ")
	undo, _, _ = strings.Cut(undo, "\nagain ")
	if is := oneLine(undo); notedTooLate().MatchString(is) {
		list = append(list, "what has to be saved before stands behind the change: "+is)
	}
	return list
}

// holesIn are the places of a screen where something is missing, or is said that does not hold.
func holesIn(screen string) (list []string) {
	all := oneLine(screen)
	if found := holes().FindString(all); found != "" {
		list = append(list, "a hole: "+found)
	}
	if strings.Contains(screen, "\nif empty ") {
		_, first, _ := strings.Cut(screen, "\nlook ")
		first, _, _ = strings.Cut(first, "\nif empty ")
		_, tool, _ := strings.Cut(screen, "\nif empty   (")
		tool = strings.TrimPrefix(regexp.MustCompile(`^[\w ]+`).FindString(tool), "the ")
		if tool == "" || !strings.Contains(first, tool) {
			list = append(list, "what may be empty is not said: "+tool)
		}
		if strings.Contains(all, "none: add it") || strings.Contains(all, "is missing: ") {
			list = append(list, "where nothing is shown that is what was found")
		}
	}
	if strings.Contains(all, "ip netns exec ") {
		for _, at := range ofNetwork().FindAllStringIndex(all, -1) {
			if before := all[:at[0]]; !strings.HasSuffix(before, "ip netns exec plimsoll-lab-server ") && !strings.HasSuffix(before, "ip netns exec plimsoll-lab-client ") {
				list = append(list, "not in the host's network: "+all[at[0]:min(at[1]+30, len(all))])
			}
		}
	}
	return list
}

// notedTooLate are the words by which a way back wants something that had to be done before, holes is where a price or a command has nothing,
// ofNetwork are commands that show or set what is a network's own.
var (
	someSigns    = lazy.Regexp(`measured \d+ of \d+ signs`)
	notedTooLate = lazy.Regexp(`\bnote (it|them|that|the)\b|\(note|saved before|iptables-save|copy (it|both) |\.before. first|disk first|before \(note`)
	holes        = lazy.Regexp(`(cost|;) nothing(;| again)|looking: nothing|FAMILY|\bTABLE CHAIN|ACCESS_LOG|handle N\b|STATEMENT|\bSERVICE\b`)
	ofNetwork    = lazy.Regexp(`\b(nft (-a|list|replace|insert|delete|-f)|iptables-(save|restore)|sysctl (-w )?net\.(ipv4\.(ip|tcp)_|unix|core\.som)|ss -[a-z]+|ip (route|neigh|rule) )`)
)

// oneLine is a text as it is before it is laid out.
func oneLine(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(text, " \\\n", "\n")), " ")
}
