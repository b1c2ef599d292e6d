// Package baseline judges recorded runs in two simple ways, to see what the
// rules are worth beside them: by the signal that moved most, and by the alerts
// that many fleets have.
package baseline

import (
	"bytes"
	_ "embed" // for alerts.yaml
	"fmt"
	"path"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Opinion is what one simple way says of a run.
type Opinion struct {
	// Says is what it goes by: a signal with its score, the alerts that fire; "" for nothing.
	Says string `json:"says"`
	// Rules are those whose mechanism that would lead a person to.
	Rules []string `json:"rules"`
}

//go:embed alerts.yaml
var alertsFile []byte

// alert is one entry of alerts.yaml.
type alert struct {
	Alert string   `yaml:"alert"`
	Expr  string   `yaml:"expr"`
	Rules []string `yaml:"rules"` // patterns of path.Match
}

func readAlerts() ([]alert, error) {
	dec := yaml.NewDecoder(bytes.NewReader(alertsFile))
	dec.KnownFields(true)
	var list []alert
	if err := dec.Decode(&list); err != nil {
		return nil, fmt.Errorf("alerts.yaml: %w", err)
	}
	return list, nil
}

// Alerts says which alerts of the node_exporter mixin fire at the end of a run's
// hold window. holds evaluates an expression and tells whether it has a result;
// rules are the ids of all rules that can be named.
func Alerts(holds func(promql string) (bool, error), rules []string) (Opinion, error) {
	list, err := readAlerts()
	if err != nil {
		return Opinion{}, err
	}
	o := Opinion{Rules: []string{}}
	for _, a := range list {
		fires, err := holds(a.Expr)
		if err != nil {
			return Opinion{}, fmt.Errorf("alert %s: %w", a.Alert, err)
		}
		if !fires {
			continue
		}
		if o.Says != "" {
			o.Says += ", "
		}
		o.Says += a.Alert
		for _, r := range rules {
			if slices.ContainsFunc(a.Rules, func(p string) bool { ok, _ := path.Match(p, r); return ok }) {
				o.Rules = append(o.Rules, r)
			}
		}
	}
	slices.Sort(o.Rules)
	o.Rules = slices.Compact(o.Rules)
	return o, nil
}
