// Package rules is the rule set as data: one folder a rule, with the rule
// itself (rule.yaml) and its test vectors (tests.yaml), the terms that
// several rules share (records.yaml), and what no vector can test
// (equivalent.yaml). README.md describes the format; package diagnose reads it.
package rules

import "embed"

// FS holds records.yaml, equivalent.yaml and every rule.yaml and tests.yaml, by layer and rule.
//
//go:embed records.yaml equivalent.yaml */*/*.yaml
var FS embed.FS
