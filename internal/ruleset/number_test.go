package ruleset

import "testing"

func TestWhatIsCountedAgreesWithOne(t *testing.T) {
	for text, want := range map[string]string{
		"{{count .Value}} requests were lost":                 "1 request was lost",
		"{{count .Value}} processes of a":                     "1 process of a",
		"for {{number .Value}} idle queries":                  "for 1 idle query",
		"it was asked {{count .Value}} times":                 "it was asked 1 time",
		"{{count .Value}} has {{count .Value}} addresses":     "1 has 1 address",
		"{{count .Value}} of 4 workers":                       "1 of 4 workers",
		"CPU {{.Labels.cpu}} takes {{percent .Value}}":        "CPU 1 takes 100 %",
		"{{seconds .Value}} on average, {{bytes .Value}} was": "1 s on average, 1 B was",
		"{{count .Value}} process was seen":                   "1 process was seen",
		"{{count .Value}} caches were full":                   "1 cache was full",
		"{{count .Value}} across all":                         "1 across all",
		"{{count .Value}} new bus is":                         "1 new bus is",
		"{{count .Value}} basis":                              "1 basis",
		"{{count .Value}} searches":                           "1 search",
		"at {{count .Value}}":                                 "at 1",
	} {
		parsed, err := ParseText(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parsed.Fill(Facts{Value: Number(1), Labels: map[string]string{"cpu": "1"}}); got != want || err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	parsed, err := ParseText("-c {{count .Value}}")
	if err != nil {
		t.Fatal(err)
	}
	if got := parsed.Command(Facts{Value: Number(1)}); got != "-c 1" {
		t.Errorf("%q: the mark is left in a command", got)
	}
}
