package page

// Tested is what came of trials whose truth is known: tables, each with what stands in its
// columns first.
type Tested struct {
	Sentence string
	Notes    []string
	Tables   []Table
}

// Table is rows of words. Of those that Alarms names by their place, counted from zero, something is wrong.
type Table struct {
	Title  string
	Head   []string
	Rows   [][]string
	Alarms map[int]bool
}
