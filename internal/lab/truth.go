package lab

import (
	"errors"
	"fmt"

	"plimsoll/internal/model"
)

// Truth is what a right verdict says.
type Truth struct {
	Answer model.Answer `yaml:"answer" json:"answer"`
	// Cause is the truth in words. Only a case that has it may have no Root: no rule
	// names what was done there, and whatever is named is wrong.
	Cause string `yaml:"cause" json:"cause,omitempty"`
	// Root are the rules one of which must be named, and no other.
	Root []string `yaml:"root" json:"root,omitempty"`
	// Vague are rules that are true of the case, too, and say less than its root.
	Vague []string `yaml:"vague" json:"vague,omitempty"`
	// Avoidable are savings on the bill. A capacity is as right as a cause where the first that
	// its bill names is one of these: nothing is broken, but much of the CPU time can be spared.
	Avoidable []string `yaml:"avoidable" json:"avoidable,omitempty"`
	// Subject are labels that the named finding must have.
	Subject map[string]string `yaml:"subject" json:"subject,omitempty"`
	// Then is what binds after the root, in the order in which it binds: the
	// second fault of a pair.
	Then []Next `yaml:"then" json:"then,omitempty"`
	// Explains are rules that belong beneath the root: where one of them holds,
	// the verdict must say that something else explains it.
	Explains []string `yaml:"explains" json:"explains,omitempty"`
	// Quiet are rules that must not be confirmed anywhere in the verdict.
	Quiet []string `yaml:"quiet" json:"quiet,omitempty"`
	// Mended are the answers that are right once every mend is applied.
	Mended []model.Answer `yaml:"mended" json:"mended,omitempty"`
	// Person are rules that tune may leave to a person: of the truth, though they have
	// a fix, which mends other cases or not the whole of this; or what may hold the lab's
	// machine back once all is lifted. All else that has a fix tune has to lift.
	Person []string `yaml:"person" json:"person,omitempty"`
}

// Next is a limit behind the first one.
type Next struct {
	Root    []string          `yaml:"root" json:"root"`
	Subject map[string]string `yaml:"subject" json:"subject,omitempty"`
	// Hidden: nothing shows of it before the limits ahead of it are mended, so
	// that only a run with those mends can name it.
	Hidden bool `yaml:"hidden" json:"hidden,omitempty"`
}

// Twin says how a case is told from its healthy twin, which is the same case
// with every mend applied.
type Twin struct {
	// Measure is PromQL over the recording, one number.
	Measure      string `yaml:"measure" json:"measure"`
	LessIsBetter bool   `yaml:"less_is_better" json:"less_is_better,omitempty"`
}

func (t Truth) check() error {
	switch t.Answer {
	case model.AnswerCause:
		if len(t.Root) == 0 && t.Cause == "" || len(t.Mended) == 0 {
			return errors.New("truth: a cause needs root (rule ids; in words, as cause, where no rule names it) and mended (answers)")
		}
	case model.AnswerHealthy, model.AnswerCapacity:
		if len(t.Root) > 0 || len(t.Then) > 0 || len(t.Explains) > 0 {
			return fmt.Errorf("truth: answer %q has no root, then or explains", t.Answer)
		}
	default:
		return fmt.Errorf("truth: answer %q: expected cause, healthy or capacity", t.Answer)
	}
	for i, n := range t.Then {
		if len(n.Root) == 0 {
			return fmt.Errorf("truth: then %d: needs root (rule ids)", i+1)
		}
	}
	return nil
}

// roots are all rules that may be named, whatever binds first.
func (t Truth) roots() []string {
	all := append([]string{}, t.Root...)
	for _, n := range t.Then {
		all = append(all, n.Root...)
	}
	return all
}
