package model

// Site is what a site changed about the rules that judge its runs. It stands in
// run.json, so that the same run gets the same verdict elsewhere.
type Site struct {
	// Added are the ids of rules of the site's own; Replaced those that stand in
	// for a built-in rule of the same id. Both sorted.
	Added    []string `json:"added,omitempty"`
	Replaced []string `json:"replaced,omitempty"`
	// RulesHash is the SHA-256, in hex, of the rule set with both in it, "" without any.
	RulesHash string `json:"rules_hash,omitempty"`
	// Thresholds are sorted by rule and clue.
	Thresholds []Threshold `json:"thresholds,omitempty"`
}

// Threshold is a site's own threshold of a clue.
type Threshold struct {
	Rule string `json:"rule"`
	Clue string `json:"clue"`
	Is   string `json:"is"`  // the comparison, such as ">= 0.9"
	Was  string `json:"was"` // the rule's own
	Why  string `json:"why,omitempty"`
}

// Empty tells whether nothing was changed.
func (s Site) Empty() bool {
	return len(s.Added)+len(s.Replaced)+len(s.Thresholds) == 0
}
