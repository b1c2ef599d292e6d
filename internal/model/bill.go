package model

// Bill is what a good reply costs in CPU time on the observed hosts, and what for.
// Shares are of the CPU time of the processes that serve (where nobody is served, of
// the programs), and come from samples, so that they are estimates.
type Bill struct {
	// Missing says why there is no bill; all else is empty then.
	Missing string `json:"missing,omitempty"`
	// CPUSeconds is the CPU time of these processes in the main window, by the kernel's account.
	CPUSeconds float64 `json:"cpu_seconds"`
	// MachineShare is that over what the CPUs of their machines could give (0…1).
	MachineShare float64 `json:"machine_share"`
	// Requests are the good replies in the window, by the word of RequestsFrom; nil
	// when nobody counted them.
	Requests     *float64 `json:"requests"`
	RequestsFrom string   `json:"requests_from,omitempty"`
	// SecondsPerRequest is CPUSeconds over Requests; nil without these.
	SecondsPerRequest *float64 `json:"seconds_per_request"`
	// Services are whose time it is, the largest first.
	Services []LoadGroup `json:"services"`
	// Samples is on how many samples the shares rest.
	Samples int64 `json:"samples"`
	// Entries add up to all of it. What is avoidable comes first, by what it would
	// save, then the rest by its share.
	Entries []BillEntry `json:"entries"`
	// Notes are sentences on what could not be told apart.
	Notes []string `json:"notes"`
}

// BillEntry is one mechanism that CPU time goes into.
type BillEntry struct {
	// Mechanism is one word for programs: "connections", "compression", "own"; Text is the same for people.
	Mechanism string `json:"mechanism"`
	Text      string `json:"text"`
	// Told is whether that says what the time is for; not so of what remains ("own", "kernel").
	Told bool `json:"told"`
	// Share (0…1) of the CPU time; the true one lies within PlusMinus of it in 95 of 100 runs.
	Share     float64 `json:"share"`
	PlusMinus float64 `json:"plus_minus"`
	// SecondsPerRequest is its part of a request's; nil where that is not known.
	SecondsPerRequest *float64 `json:"seconds_per_request"`
	Why               string   `json:"why"`     // why it is told apart
	ByHand            string   `json:"by_hand"` // the classic command that shows it
	// Caller is the innermost function of a script, or of a Go program's own, that four fifths of it or more were called for by, "" where there is none.
	Caller string `json:"caller,omitempty"`
	// Files are the files of code that it was in, as shares of it; the kernel is none.
	Files []LoadGroup `json:"files"`
	// Services are whose time it is; Functions are where, the most frequent first.
	Services  []LoadGroup    `json:"services"`
	Functions []BillFunction `json:"functions"`
	// Avoidable is what would save a tenth of the CPU time or more; empty where that is not known.
	Avoidable []Saving `json:"avoidable"`
}

// Saving is CPU time that could be spared, and how.
type Saving struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Evidence is what was measured besides the share; "" where the share says it all.
	Evidence string `json:"evidence,omitempty"`
	// Share (0…1) of all of the bill's CPU time that went into what the remedy is for. What
	// it leaves, and costs itself, is not known before it is tried.
	Share float64 `json:"share"`
	// AtMost is an upper bound of what it can save, up to the width of sampling: also what
	// other mechanisms did in its wake, if all of that would go with it.
	AtMost float64 `json:"at_most_share"`
	// Throughput is by which factor there would be more replies at the same CPU time, at most.
	Throughput float64 `json:"at_most_throughput"`
	Remedy     string  `json:"remedy"`
	// InCode says that it takes a change of the program, and not of a setting.
	InCode bool   `json:"in_code"`
	Costs  string `json:"costs"`
	// Check is a command that shows what to change and changes nothing, "" for none, and Then what to do with what it shows.
	Check string `json:"check,omitempty"`
	Then  string `json:"then,omitempty"`
	// Back is how it is taken back, in words with the exact command.
	Back string `json:"back"`
}

// MuchOfMachine says whether the services use so much of the CPUs that what these do matters, where something else is the answer.
func (b *Bill) MuchOfMachine() bool { return b.MachineShare >= 0.5 }
