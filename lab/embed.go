// Package cases holds the lab's cases as data: one folder each, with its
// case.yaml and what belongs to it alone, and templates that they share.
// README.md describes the format.
package cases

import "embed"

// FS holds <case>/case.yaml, the cases' own files and templates/.
//
//go:embed */*
var FS embed.FS
