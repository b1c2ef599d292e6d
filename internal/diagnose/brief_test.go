package diagnose

import (
	"testing"

	"plimsoll/internal/model"
)

// In brief a rule that is ruled out is so by the same clue, and whatever is not ruled out is told whole.
func TestBriefGivesTheSameAnswer(t *testing.T) {
	set := goodSet(t)
	for _, text := range []string{
		"  series: ['limit_size{host=\"s\"} 100x9', 'used_size{host=\"s\"} 100x9']\n  read: [refused_total]\n",
		"  series: ['limit_size{host=\"s\"} 100x9', 'used_size{host=\"s\"} 1x9']\n  read: [refused_total]\n",
		"  series: ['limit_size{host=\"s\"} 100x9', 'used_size{host=\"s\"} 100x9', 'refused_total{host=\"s\",cpu=\"1\"} 0+2x9']\n",
	} {
		v := written(t, text)
		whole, brief := Diagnose(over(v), set, asItIs), Brief(over(v), set, asItIs)
		if whole.Answer != brief.Answer || whole.Sentence != brief.Sentence || len(whole.RuledOut) != len(brief.RuledOut) || len(whole.Findings) != len(brief.Findings) || len(whole.Unknown) != len(brief.Unknown) {
			t.Errorf("%q, in brief %q", whole.Sentence, brief.Sentence)
		}
		for i, f := range whole.RuledOut {
			if b := brief.RuledOut[i]; b.Rule != f.Rule || len(b.Clues) > len(f.Clues) || b.Clues[0].Truth != model.False {
				t.Errorf("%+v, in brief %+v", f, b)
			}
		}
	}
}
