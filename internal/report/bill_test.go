package report

import (
	"strings"
	"testing"
	"unicode/utf8"

	"plimsoll/internal/model"
)

func billedReport() model.Report {
	r := capacityReport()
	entry := func(mechanism, text string, share float64, functions ...model.BillFunction) model.BillEntry {
		return model.BillEntry{Mechanism: mechanism, Text: text, Share: share, PlusMinus: 0.04, SecondsPerRequest: num(share * 0.00728),
			Services: []model.LoadGroup{}, Functions: functions, Avoidable: []model.Saving{}}
	}
	first := entry("compiling_php", "PHP compiles its scripts", 0.54)
	first.Avoidable = []model.Saving{{ID: "opcache", Title: "Switch opcache on", Share: 0.54, Throughput: 2.17,
		Remedy: "php.ini: opcache.enable=1, opcache.memory_consumption=128, opcache.max_accelerated_files above the number of scripts; then reload PHP-FPM"}}
	r.Verdict.Bill = &model.Bill{CPUSeconds: 11.5, MachineShare: 0.96, Requests: num(1580), SecondsPerRequest: num(0.00728), Samples: 217,
		Services: []model.LoadGroup{{Name: "php-fpm8.2", Share: 0.94}, {Name: "nginx", Share: 0.06}},
		Entries: []model.BillEntry{first,
			entry("own", "the application's own code", 0.39, model.BillFunction{Function: "php:{main} /srv/www/index.php:2", Share: 0.36}),
			entry("copying", "copying", 0.03), entry("connections", "opening and closing connections", 0.021), entry("sending", "sending over the network", 0.02),
		}}
	return r
}

func TestTheBillIsShort(t *testing.T) {
	_, after, found := strings.Cut(string(text(t, billedReport(), TextOptions{Width: 80, Detail: Evidence})), "WHAT A REQUEST COSTS\n")
	if !found {
		t.Fatal("there is no bill")
	}
	bill, _, _ := strings.Cut(after, "\n\n")
	lines := strings.Split(bill, "\n")
	if len(lines) > 7 {
		t.Errorf("%d lines beneath the heading, want 7 at most:\n%s", len(lines), bill)
	}
	for _, l := range lines {
		if utf8.RuneCountInString(l) > 80 {
			t.Errorf("%d columns: %s", utf8.RuneCountInString(l), l)
		}
	}
	for _, want := range []string{"7.28 ms of CPU time each (php-fpm8.2 94 %, nginx 6.0 %), by 217 samples", "54 %", "up to 2.17 × the replies by: php.ini: opcache.enable=1", "index.php:2 36 %"} {
		if !strings.Contains(bill, want) {
			t.Errorf("it does not say %q:\n%s", want, bill)
		}
	}
}

func TestAScreenSaysWhatTheTimeGoesInto(t *testing.T) {
	r := billedReport()
	const label = "goes into"
	if got := string(text(t, r, TextOptions{Width: 80})); strings.Contains(got, label) {
		t.Errorf("what can be spared is the fix, and the rest stands beside it:\n%s", got)
	}
	r.Verdict.Bill.Entries[0].Avoidable = nil
	r.Verdict.Bill.Entries[0].Caller = "render index.php:2"
	got := strings.Join(strings.Fields(string(text(t, r, TextOptions{Width: 80}))), " ")
	if want := label + " the 7.28 ms of CPU time a request takes: 54 % PHP compiles its scripts, for render index.php:2; 39 % the application's own code: php:{main} index.php:2 36 % next"; !strings.Contains(got, want) {
		t.Errorf("it does not say %q:\n%s", want, got)
	}
	r.Verdict.Answer = model.AnswerCause
	if got := string(text(t, r, TextOptions{Width: 80})); strings.Contains(got, label) {
		t.Errorf("of a cause there is no bill:\n%s", got)
	}
}

func TestTheBillIsNotForAll(t *testing.T) {
	for name, change := range map[string]func(v *model.Verdict){
		"healthy, and idle CPUs":        func(v *model.Verdict) { v.Answer = model.AnswerHealthy; v.Bill.MachineShare = 0.3 },
		"healthy, nothing to be spared": func(v *model.Verdict) { v.Answer = model.AnswerHealthy; v.Bill.Entries[0].Avoidable = nil },
		"a cause, nothing to be spared": func(v *model.Verdict) { v.Answer = model.AnswerCause; v.Bill.Entries[0].Avoidable = nil },
		"a cause, and idle CPUs":        func(v *model.Verdict) { v.Answer = model.AnswerCause; v.Bill.MachineShare = 0.3 },
		"none":                          func(v *model.Verdict) { v.Bill = nil },
		"no samples":                    func(v *model.Verdict) { v.Bill = &model.Bill{Missing: "3 samples are too few"} },
	} {
		r := billedReport()
		r.Verdict.Root = r.Verdict.Grounds
		change(&r.Verdict)
		if strings.Contains(string(text(t, r, TextOptions{Width: 80, Detail: Evidence})), "WHAT A REQUEST COSTS") {
			t.Errorf("%s: there is a bill", name)
		}
	}
}

func TestOwnFirst(t *testing.T) {
	for in, want := range map[string]string{
		"search (re/__init__.py:173) in robot.<locals>.<genexpr> (case/robots.py:15) 95 %": "robot.<locals>.<genexpr> at case/robots.py:15, there in search (re/__init__.py:173) 95 %",
		"V8::StubFrame in sum (cart.js:7) 67 %":                                            "sum at cart.js:7, there in V8::StubFrame 67 %",
		"orders (case/orders.py:32) 61 %":                                                  "orders (case/orders.py:32) 61 %",
		"std::copy in place 7 %":                                                           "std::copy in place 7 %",
	} {
		if got := ownFirst(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
