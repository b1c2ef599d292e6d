package rulesuite

import (
	"io/fs"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"plimsoll/internal/diagnose"
	"plimsoll/internal/model"
	"plimsoll/rules"
)

// shares are the parts of a whole in a sentence; those that are compared with something
// else ("as many") may be more than all.
var shares = regexp.MustCompile(`(-?[0-9][0-9.,]*|NaN|\+Inf|-Inf) %( as | of the range a second| of the pages at which)?`)

// impossible says what in a finding cannot be.
func impossible(f model.Finding) string {
	if f.Impact != nil && !(*f.Impact >= 0 && *f.Impact <= 1) {
		return "its impact is " + strconv.FormatFloat(*f.Impact, 'g', -1, 64)
	}
	for _, c := range f.Clues {
		for _, m := range shares.FindAllStringSubmatch(c.Say, -1) {
			v, err := strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64)
			if err != nil || v < 0 || v > 100 && m[2] == "" {
				return c.ID + " says " + c.Say
			}
		}
	}
	return ""
}

// mutated is the slice with other numbers: some series are a multiple of what they were.
func (s *slice) mutated(r *rand.Rand) *slice {
	times := []float64{0, 0.3, 1, 1, 1.05, 7, 1000}
	out := *s
	out.Series = slices.Clone(s.Series)
	for i := range out.Series {
		factor := times[r.IntN(len(times))]
		out.Series[i].Points = slices.Clone(out.Series[i].Points)
		for j := range out.Series[i].Points {
			out.Series[i].Points[j][1] *= factor
		}
	}
	return &out
}

// What may be more than all has to say what it is compared with.
func TestRatiosSayOfWhat(t *testing.T) {
	ratio := regexp.MustCompile(`\{\{ratio [^}]*\}\}`)
	checked := 0
	err := fs.WalkDir(rules.FS, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "rule.yaml" {
			return err
		}
		text, err := fs.ReadFile(rules.FS, path)
		for _, line := range strings.Split(string(text), "\n") {
			if !ratio.MatchString(line) {
				continue
			}
			checked++
			if m := shares.FindStringSubmatch(ratio.ReplaceAllString(line, "120 %")); m == nil || m[2] == "" {
				t.Errorf("%s: %s: a share of more than all could be said; want {{percent}}, or what it is compared with", path, strings.TrimSpace(line))
			}
		}
		return err
	})
	if err != nil || checked == 0 {
		t.Errorf("%d ratios, %v", checked, err)
	}
}

// No recorded run, and none whose readings do not fit together, makes a share of more than
// all or less than nothing.
func TestNothingImpossibleIsSaid(t *testing.T) {
	set, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	said := 0
	for _, of := range set.tests {
		for i, s := range of.slices {
			if i >= 2 { // of each rule one fault and one look-alike, mostly
				break
			}
			for _, one := range []*slice{s, s.mutated(r), s.mutated(r)} {
				findings, err := diagnose.Findings(one.run(), of.rule)
				if err != nil && one == s {
					t.Errorf("%s: %s: %v", of.rule.ID, s.name, err)
				}
				for _, f := range findings {
					said += len(f.Clues)
					if what := impossible(f); what != "" {
						t.Errorf("%s: %s: %v: %s", of.rule.ID, s.name, f.Subject, what)
					}
				}
			}
		}
	}
	if said == 0 {
		t.Error("nothing was said")
	}
}

func TestImpossible(t *testing.T) {
	for say, want := range map[string]bool{
		"it used 100 % of its limit": false, "it used 110 % of its limit": true, "-0.2 % of the time": true,
		"250 % as many were lost": false, "1,200 % of all": true, "0 % of it, and 300 % as often": false,
	} {
		if got := impossible(model.Finding{Clues: []model.Clue{{Say: say}}}); (got != "") != want {
			t.Errorf("%s: %q", say, got)
		}
	}
	if impossible(model.Finding{Impact: new(1.5)}) == "" {
		t.Error("an impact of 1.5 is possible")
	}
}
