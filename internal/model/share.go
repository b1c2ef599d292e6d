package model

// BillFunction is a function and its share (0…1) of all of the bill's CPU time.
type BillFunction struct {
	Function string  `json:"function"`
	Module   string  `json:"module,omitempty"` // the file of code, where it is a library's or a loadable module's
	File     string  `json:"file,omitempty"`   // in the source; left out where it is not known
	Line     int64   `json:"line,omitempty"`
	Share    float64 `json:"share"`
}

// LoadGroup is a process group's share of one half.
type LoadGroup struct {
	Name  string  `json:"groupname"`
	Share float64 `json:"share"`
}
