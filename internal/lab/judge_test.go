package lab

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
)

func finding(rule, host string, answer model.FindingAnswer) model.Finding {
	return model.Finding{Rule: rule, Kind: "cause", Subject: map[string]string{"host": host}, Answer: answer}
}

func TestJudge(t *testing.T) {
	cause := Truth{Answer: model.AnswerCause, Root: []string{"a.b", "c.d"}, Subject: map[string]string{"host": "server"},
		Quiet: []string{"q.r"}, Mended: []model.Answer{model.AnswerHealthy, model.AnswerCapacity}}
	c := &Case{ID: "x", Truth: cause, Mends: []Mend{{ID: "one", Rules: []string{"a.b"}}, {ID: "two", Rules: []string{"c.d"}}}}
	spared := &Case{ID: "v", Truth: Truth{Answer: model.AnswerCause, Root: []string{"a.b"}, Subject: cause.Subject, Avoidable: []string{"s"}, Mended: cause.Mended}}
	capacity := &Case{ID: "y", Truth: Truth{Answer: model.AnswerCapacity}}
	right := finding("a.b", "server", model.Confirmed)
	second := finding("c.d", "client", model.Confirmed)
	explained := finding("e.f", "client", model.Confirmed)
	explained.ExplainedBy = "a.b"
	next := Next{Root: []string{"c.d"}, Subject: map[string]string{"host": "client"}}
	both := Truth{Answer: model.AnswerCause, Root: []string{"a.b"}, Then: []Next{next}, Mended: cause.Mended}
	pair := &Case{ID: "p", Truth: both, Mends: c.Mends}
	next.Hidden = true
	both.Then = []Next{next}
	behind := &Case{ID: "b", Truth: both, Mends: c.Mends}
	telling := &Case{ID: "e", Truth: Truth{Answer: model.AnswerCause, Root: []string{"a.b"}, Explains: []string{"e.f"}}, Mends: c.Mends}
	for _, tc := range []struct {
		name    string
		c       *Case
		mends   []string
		verdict model.Verdict
		want    []string
	}{
		{"right", c, nil, model.Verdict{Answer: "cause", Root: []model.Finding{right}}, nil},
		{"one of the causes, for more than one subject", c, nil,
			model.Verdict{Answer: "cause", Root: []model.Finding{right, finding("c.d", "client", model.Confirmed)}}, nil},
		{"wrong answer", c, nil, model.Verdict{Answer: "unclear"},
			[]string{"none of a.b, c.d is at the root", `the answer is "unclear"; the truth is "cause"`}},
		{"wrong host", c, nil, model.Verdict{Answer: "cause", Root: []model.Finding{finding("a.b", "client", model.Confirmed)}},
			[]string{"a.b is named for {host=client}; the truth is {host=server}", "none of a.b, c.d is at the root"}},
		{"another cause beside the right one", c, nil,
			model.Verdict{Answer: "cause", Root: []model.Finding{right, finding("x.y", "server", model.Confirmed)}},
			[]string{"x.y (confirmed) is at the root, and is not the truth"}},
		{"a mere suspicion beside the right one", c, nil,
			model.Verdict{Answer: "cause", Root: []model.Finding{right, finding("x.y", "server", model.Suspected)}}, nil},
		{"a quiet rule is confirmed", c, nil,
			model.Verdict{Answer: "cause", Root: []model.Finding{right}, Findings: []model.Finding{finding("q.r", "server", model.Confirmed)}},
			[]string{"q.r is confirmed and must stay quiet"}},
		{"all mended", c, []string{"one", "two"}, model.Verdict{Answer: "capacity"}, nil},
		{"all mended and still a cause", c, []string{"one", "two"}, model.Verdict{Answer: "cause", Root: []model.Finding{right}},
			[]string{"a.b (confirmed) is at the root, and is not the truth", "a.b is confirmed and must stay quiet",
				`the answer is "cause"; the truth is "healthy"`}},
		{"half mended, the next limit on the other host", c, []string{"one"},
			model.Verdict{Answer: "cause", Root: []model.Finding{finding("c.d", "client", model.Confirmed)}}, nil},
		{"a capacity of which the truth can be spared", spared, nil, model.Verdict{Answer: "capacity", Bill: billOf("s")}, nil},
		{"another saving", spared, nil, model.Verdict{Answer: "capacity", Bill: billOf("r")}, []string{`the first that can be spared is "r"; the truth is s`}},
		{"false comfort", spared, nil, model.Verdict{Answer: "capacity"}, []string{`the first that can be spared is ""; the truth is s`}},
		{"its cause", spared, nil, model.Verdict{Answer: "cause", Root: []model.Finding{right}}, nil},
		{"capacity", capacity, nil, model.Verdict{Answer: "capacity",
			Root: []model.Finding{{Rule: "cpu.capacity", Kind: "capacity", Answer: model.Confirmed}}}, nil},
		{"a cause where there is none", capacity, nil, model.Verdict{Answer: "cause", Root: []model.Finding{right}},
			[]string{"a.b (confirmed) is at the root, and is not the truth", `the answer is "cause"; the truth is "capacity"`}},
		{"a pair, both named in order", pair, nil, model.Verdict{Answer: "cause", Root: []model.Finding{right, second}}, nil},
		{"a pair, the other way round", pair, nil, model.Verdict{Answer: "cause", Root: []model.Finding{second, right}},
			[]string{"c.d is named before a.b, which binds first"}},
		{"a pair, one of it named", pair, nil, model.Verdict{Answer: "cause", Root: []model.Finding{right}},
			[]string{"none of c.d is at the root"}},
		{"a pair, the first mended", pair, []string{"one"}, model.Verdict{Answer: "cause", Root: []model.Finding{second}}, nil},
		{"a pair, the first mended and named still", pair, []string{"one"}, model.Verdict{Answer: "cause", Root: []model.Finding{right, second}},
			[]string{"a.b (confirmed) is at the root, and is not the truth"}},
		{"a second fault that cannot show yet", behind, nil, model.Verdict{Answer: "cause", Root: []model.Finding{right}}, nil},
		{"a second fault that shows after all", behind, nil, model.Verdict{Answer: "cause", Root: []model.Finding{right, second}}, nil},
		{"a second fault that does not show once it could", behind, []string{"one"}, model.Verdict{Answer: "unclear"},
			[]string{"none of c.d is at the root", `the answer is "unclear"; the truth is "cause"`}},
		{"a consequence that nothing explains", telling, nil,
			model.Verdict{Answer: "cause", Root: []model.Finding{right}, Findings: []model.Finding{right, finding("e.f", "client", model.Suspected)}},
			[]string{"e.f stands by itself; the cause should explain it"}},
		{"a consequence that is explained", telling, nil,
			model.Verdict{Answer: "cause", Root: []model.Finding{right}, Findings: []model.Finding{right, explained}}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res := judge(tc.c, tc.mends, &model.Report{Verdict: tc.verdict})
			if diff := cmp.Diff(tc.want, res.Wrong); diff != "" {
				t.Errorf("wrong (-want +got):\n%s", diff)
			}
			if res.Pass != (tc.want == nil) {
				t.Errorf("pass is %v", res.Pass)
			}
		})
	}
}

// billOf is a bill of which one thing can be spared.
func billOf(saving string) *model.Bill {
	return &model.Bill{Entries: []model.BillEntry{{Avoidable: []model.Saving{{ID: saving}}}}}
}
