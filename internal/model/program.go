package model

// ProgramTime is where the time went of the one program that was asked about (Plan.Program), with all that it started, in
// the hold window. Its parts add up to the time that it was there.
type ProgramTime struct {
	// Host is where it ran; Names are its processes' names, the commonest first.
	Host  string   `json:"host"`
	Names []string `json:"names"`
	// Seconds is for how long it was there, WindowSeconds for how long it was looked for.
	Seconds       float64 `json:"seconds"`
	WindowSeconds float64 `json:"window_seconds"`
	// Parts are what it did, the largest first.
	Parts []ProgramPart `json:"parts"`
	// CPUs is how many it used on average while it was there, SystemShare how much of that in the kernel.
	CPUs        float64 `json:"cpus"`
	SystemShare float64 `json:"system_share"`
	// AtOnce is how many of its threads computed or wanted to, on average, while any did.
	AtOnce float64 `json:"at_once"`
	// Processes and Threads are how many it had on average.
	Processes float64 `json:"processes"`
	Threads   float64 `json:"threads"`
	// MinorFaults are the pages it touched that were not there and came without a disk, a second; MajorFaults those that came
	// from one.
	MinorFaults float64 `json:"minor_fault_rate"`
	MajorFaults float64 `json:"major_fault_rate"`
	// Looks is how often it was looked at.
	Looks int64 `json:"looks"`
	// Functions are where its CPU time went, the largest first; left out where no stacks of it were sampled.
	Functions []BillFunction `json:"functions,omitempty"`
	// Sentence says what it spent most of its time on.
	Sentence string `json:"sentence"`
	// About are the verdict's findings that are about it, by their rules; none where there are none.
	About []string `json:"about"`
	// Missing says why nothing is known, "" where something is.
	Missing string `json:"missing,omitempty"`
}

// ProgramPart is one thing that a program did.
type ProgramPart struct {
	// Doing is running, queued, throttled, or what it was blocked by, as in plimsoll_program_seconds_total.
	Doing string `json:"doing"`
	// Towards is whom or what for: an address, a file; "" where there is nobody, or it was not seen.
	Towards string `json:"towards,omitempty"`
	// Call is the system call in which it was, Thread the name of the threads that did it most.
	Call    string  `json:"call,omitempty"`
	Thread  string  `json:"thread,omitempty"`
	Seconds float64 `json:"seconds"`
	Share   float64 `json:"share"`
	// Text is all that in words.
	Text string `json:"text"`
}
