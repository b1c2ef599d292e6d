package tune

import (
	"context"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/model"
)

func TestSweepRestores(t *testing.T) {
	s := service{values: map[string]int{"a": 3, "b": 7}}
	undo := func(ctx context.Context, ids []int) error {
		for _, id := range slices.Backward(ids) {
			if _, err := s.leaveOut(ctx, id); err != nil {
				return err
			}
		}
		return nil
	}
	settings := []Setting{{Kind: "sysctl", Name: "a", Values: []string{"3", "30"}}, {Kind: "sysctl", Name: "b", Values: []string{"8", "9"}}}
	got, err := Sweep(t.Context(), s.tools(), "s", settings, 3, 5, undo, nil)
	if err != nil || !got.Restored || len(got.Points) != 4 || s.runs != 12 || s.values["a"] != 3 || s.values["b"] != 7 {
		t.Errorf("%+v, %v; %d runs, values %v", got, err, s.runs, s.values)
	}
	for _, p := range got.Points {
		if len(p.Loads) != 3 || p.GoodRPS.Mean != 5000 || !p.GoodRPS.Known {
			t.Errorf("%+v", p)
		}
	}
	if f := got.Findings; len(f) != 2 || f[0].Measure != "good_rps" || f[0].Known || f[0].Beyond {
		t.Errorf("of runs that are all the same nothing is known: %+v", f)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s = service{values: map[string]int{"a": 3, "b": 7}, cancel: cancel, at: 2}
	if _, err := Sweep(ctx, s.tools(), "s", settings, 3, 5, undo, nil); err == nil || s.values["a"] != 3 || s.values["b"] != 7 {
		t.Errorf("interrupted: %v, values %v", err, s.values)
	}
}

func TestOrderIsRandomAndFair(t *testing.T) {
	a, b := order(3, 4, 1), order(3, 4, 2)
	if slices.Equal(a, b) || !slices.Equal(a, order(3, 4, 1)) {
		t.Errorf("%v and %v", a, b)
	}
	slices.Sort(a)
	if !slices.Equal(a, []int{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}) {
		t.Error(a)
	}
}

func TestParseSetting(t *testing.T) {
	got, err := ParseSetting("backlog:0.0.0.0:80=128, 4096")
	if err != nil || got.Kind != model.ChangeBacklog || got.Name != "0.0.0.0:80" || strings.Join(got.Values, " ") != "128 4096" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{"sysctl:net.core.somaxconn=1", "sysctl:net/core/somaxconn=1"} {
		if got, err := ParseSetting(text); err != nil || got.Name != "net.core.somaxconn" {
			t.Errorf("%s: %+v, %v; a setting has one name", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "sysctl:x", "sysctl:=1", "sysctl:x=1,1", "sysctl:x=1,", "colour:x=1"} {
		if got, err := ParseSetting(text); err == nil {
			t.Errorf("%q was taken for %+v", text, got)
		}
	}
}

func FuzzParseSetting(f *testing.F) {
	f.Add("sysctl:net.core.somaxconn=128,1024")
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := ParseSetting(text); (err == nil) == (len(s.Values) == 0) {
			t.Errorf("%q: %+v, %v", text, s, err)
		}
	})
}

func TestSweepable(t *testing.T) {
	somaxconn, backlog := Setting{Kind: "sysctl", Name: "net.core.somaxconn"}, Setting{Kind: "backlog", Name: "0.0.0.0:80"}
	if _, err := Sweepable([]Setting{somaxconn}); err == nil || !strings.Contains(err.Error(), "--set backlog:") {
		t.Errorf("%v; want what would show its effect", err)
	}
	twice := []Setting{{"nice", "a", []string{"1", "2"}}, backlog, {"nice", "a", []string{"2", "3"}}}
	if _, err := Sweepable(twice); err == nil || !strings.Contains(err.Error(), "name all its values in one: --set nice:a=1,2,3") {
		t.Errorf("%v; of a setting that is given twice the second would always win", err)
	}
	if got, err := Sweepable([]Setting{backlog, somaxconn}); err != nil || got[0].Kind != "sysctl" {
		t.Errorf("%+v, %v; want the limit before what it bounds", got, err)
	}
}
