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
)

const trialFile = "trial.json"

// keepTrial writes a trial beside its recordings.
func keepTrial(dir string, t *Trial) error {
	doc, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the trial of %s: %w", t.Case, err)
	}
	path := filepath.Join(dir, t.dir(), trialFile)
	if err := os.WriteFile(path, append(doc, '\n'), 0o644); err != nil {
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
