// Package rules is the rule set as data: one folder a rule, with the rule
// itself (rule.yaml), its test vectors (tests.yaml) and its slices of recorded
// runs (captured/), the terms that several rules share (records.yaml), and what
// no vector can test (equivalent.yaml). README.md describes the format; package diagnose reads it.
package rules

import "embed"

// FS holds records.yaml, equivalent.yaml and every rule.yaml, tests.yaml and slice, by layer and rule.
//
//go:embed records.yaml equivalent.yaml */*/*.yaml */*/captured/*.json.gz
var FS embed.FS
