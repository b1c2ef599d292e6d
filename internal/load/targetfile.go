package load

import (
	"bytes"
	"encoding/json"

	"plimsoll/internal/model"
)

// ReadTargetFile reads targets as somebody wrote them (see ReadTargets), an access log, or a HAR export; its looks tell which it is.
func ReadTargetFile(text []byte, plan model.LoadPlan) (TargetFile, error) {
	u, err := parseURL(plan.URL)
	if err != nil {
		return TargetFile{}, err
	}
	var r *recording
	switch text = bytes.TrimPrefix(text, []byte("\ufeff")); {
	case isHAR(text):
		r, err = readHAR(text, u)
	case isAccessLog(text):
		r, err = readAccessLog(text, u)
	default:
		list, err := ReadTargets(text, plan)
		return TargetFile{Targets: list}, err
	}
	if err != nil {
		return TargetFile{}, err
	}
	return r.file(plan, u)
}

// isHAR says whether a text begins as a HAR export does: {"log": …
func isHAR(text []byte) bool {
	dec := json.NewDecoder(bytes.NewReader(text))
	if begin, err := dec.Token(); err != nil || begin != json.Delim('{') {
		return false
	}
	key, err := dec.Token()
	return err == nil && key == "log"
}

// isAccessLog says whether one of the first lines is one of an access log.
func isAccessLog(text []byte) bool {
	n := 0
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] == '{' {
			return false
		}
		if _, ok := parseLogLine(string(line)); ok {
			return true
		}
		if n++; n == 20 {
			break
		}
	}
	return false
}
