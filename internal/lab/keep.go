package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"plimsoll/internal/model"
	"plimsoll/internal/record/writer"
)

const trialFile = "trial.json"

// keepTrial writes a trial beside its recordings.
func keepTrial(dir string, t *Trial) error {
	doc, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the trial of %s: %w", t.Case, err)
	}
	path := filepath.Join(dir, t.dir(), trialFile)
	if err := writer.File(path, append(doc, '\n')); err != nil {
		return fmt.Errorf("keep the trial of %s: %w", t.Case, err)
	}
	return nil
}

// Trials reads the trials that a test kept in dir, by case and number. One that
// was cut off before it ended left no judgement, and is not among them.
func Trials(dir string) ([]*Trial, error) {
	folders, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the kept trials: %w", err)
	}
	var trials []*Trial
	for _, f := range folders {
		path := filepath.Join(dir, f.Name(), trialFile)
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read a kept trial: %w", err)
		}
		t, err := parseTrial(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		trials = append(trials, t)
	}
	if len(trials) == 0 {
		return nil, fmt.Errorf("%s: no trials in it; plimsoll lab test -o DIR makes them", dir)
	}
	return trials, nil
}

// parseTrial reads one trial, and refuses recordings outside the test's folder.
func parseTrial(data []byte) (*Trial, error) {
	var t Trial
	if err := json.Unmarshal(data, &t); err != nil {
		return nil, fmt.Errorf("this is no trial that lab test kept: %w", err)
	}
	if !plainName(t.Case) {
		return nil, fmt.Errorf("a trial of case %q: expected the id of a case", t.Case)
	}
	if t.Mode != ModeOwn && !slices.Contains(Modes, t.Mode) {
		return nil, fmt.Errorf("the trial of %s was made in mode %q, which there is not", t.Case, t.Mode)
	}
	if slices.Contains(t.Then, nil) {
		return nil, fmt.Errorf("the trial of %s has an empty run", t.Case)
	}
	for _, s := range t.Shots() {
		if !filepath.IsLocal(s.Dir) {
			return nil, fmt.Errorf("the trial of %s names the run %q: expected one inside the test's folder", t.Case, s.Dir)
		}
	}
	return &t, nil
}

// Trial is one go at a case: the case as it is, and whatever else has to be
// run to judge it.
type Trial struct {
	Case   string `json:"case"`
	Number int    `json:"number"` // 1 is the first trial of the case in this mode
	Mode   Mode   `json:"mode,omitempty"`
	// Refused says why the case cannot be tried in this mode; nothing was run then.
	Refused string `json:"refused,omitempty"`
	// Faulty is the run of the case as it is.
	Faulty *Shot `json:"faulty,omitempty"`
	// Then are the runs for limits that cannot show before others are mended.
	Then []*Shot `json:"then,omitempty"`
	// Twin is the run with every mend, Moved what it had to be better in.
	Twin  *Shot  `json:"twin,omitempty"`
	Moved *Moved `json:"moved,omitempty"`
	// Seconds is the time that it took, bringing hosts up and down included.
	Seconds float64 `json:"seconds"`
	// Failure says why there is no judgement: something could not be brought up or run.
	Failure string `json:"failure,omitempty"`
}

// Shot is one recorded run with its judgement.
type Shot struct {
	Dir   string   `json:"dir"` // the run directory, relative to the test's folder
	Mends []string `json:"mends,omitempty"`
	Truth Truth    `json:"truth"`
	// Answer is the verdict's word; Named are the rules at its root: the first,
	// and of the others those that are confirmed.
	Answer model.Answer `json:"answer"`
	Named  []string     `json:"named"`
	// Wrong are the sentences in which the verdict differs from the truth, Outcome what that amounts to.
	Wrong   []string `json:"wrong,omitempty"`
	Outcome Outcome  `json:"outcome"`
	// Sentence is the verdict's own, which says why it is unclear.
	Sentence string `json:"sentence,omitempty"`
	// GoodRPS, GoodShare and P99 (µs, of all requests) are nil where Plimsoll drove no load.
	GoodRPS   *float64 `json:"good_rps,omitempty"`
	GoodShare *float64 `json:"good_share,omitempty"`
	P99       *float64 `json:"p99_us,omitempty"`
	// VerdictSeconds is from the last reading to the verdict, when the run was made.
	VerdictSeconds *float64 `json:"verdict_seconds,omitempty"`
}

// Moved says whether a fault moved the service: what was measured in the
// healthy twin and with the fault.
type Moved struct {
	Yes      bool      `json:"yes"`
	Measures []Measure `json:"measures"`
	// Why says why that cannot be told.
	Why string `json:"why,omitempty"`
}

// Measure is one thing that was measured in both.
type Measure struct {
	Name   string  `json:"name"`
	Twin   float64 `json:"twin"`
	Faulty float64 `json:"faulty"`
	// Worse: worse with the fault, beyond chance and by enough to count.
	Worse bool `json:"worse"`
}

// Shots are all runs of the trial, in the order in which they were made.
func (t *Trial) Shots() []*Shot {
	var list []*Shot
	if t.Faulty != nil {
		list = append(list, t.Faulty)
	}
	list = append(list, t.Then...)
	if t.Twin != nil {
		list = append(list, t.Twin)
	}
	return list
}

// Wrong are all the reasons for which the trial does not count as right.
func (t *Trial) Wrong() []string {
	var wrong []string
	if t.Failure != "" {
		wrong = append(wrong, t.Failure)
	}
	for _, s := range t.Shots() {
		prefix := ""
		switch {
		case s == t.Twin:
			prefix = "healthy twin: "
		case s != t.Faulty:
			prefix = "with the limits before it mended: "
		}
		for _, w := range s.Wrong {
			wrong = append(wrong, prefix+w)
		}
	}
	switch {
	case t.Moved == nil || t.Moved.Yes:
	case t.Moved.Why != "":
		wrong = append(wrong, "whether the fault moved the service cannot be told: "+t.Moved.Why)
	default:
		wrong = append(wrong, "the fault did not move the service: its healthy twin is no better")
	}
	return wrong
}

// dir is the trial's folder within the test's.
func (t *Trial) dir() string {
	if t.Mode == ModeOwn {
		return fmt.Sprintf("%s.%d", t.Case, t.Number)
	}
	return fmt.Sprintf("%s.%s.%d", t.Case, t.Mode, t.Number)
}
