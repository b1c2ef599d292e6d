package model

// Tuning is what tune did, step by step: measure, find, change one thing,
// measure again, keep what helped.
type Tuning struct {
	// Applied is false when the first change was only shown.
	Applied bool       `json:"applied"`
	Steps   []TuneStep `json:"steps"`
	// Trials are the runs in which a change that had not paid was left out.
	Trials []TuneTrial `json:"trials"`
	// End is the newest run of what is set now.
	End TuneEnd `json:"end"`
	// Stopped says why it went no further.
	Stopped string `json:"stopped"`
	// Goals say of each goal of --slo whether the last run met it.
	Goals []TuneGoal `json:"goals"`
	// Last are the lines that make what was kept outlast a restart.
	Last []TuneLine `json:"to_make_this_last"`
	// Person are what no program may decide, or was not allowed to.
	Person []string `json:"for_a_person"`
	// Journal is where the changes are noted, so that they can be taken back.
	Journal string `json:"journal"`
}

// TuneEnd is where a walk ended.
type TuneEnd struct {
	Dir      string `json:"dir"`
	Answer   Answer `json:"answer"`
	Sentence string `json:"sentence"`
	TuneLoad
}

// TuneStep is one run, and what was changed after it.
type TuneStep struct {
	Number   int    `json:"step"`
	Dir      string `json:"dir"`
	Answer   Answer `json:"answer"`
	Sentence string `json:"sentence"`
	// Root is what held the load back, nil where nothing was named.
	Root *Finding `json:"root"`
	TuneLoad
	// CommandExit is how the user's own load tool ended, nil without one.
	CommandExit *int `json:"command_exit"`
	// Fix is nil where nothing was changed after this run.
	Fix *TuneFix `json:"fix"`
	// Skipped says why other fixes were not taken.
	Skipped []string `json:"skipped"`
}

// TuneLoad is what the load saw. All is nil where the load was not ours: then
// nobody knows how its requests fared.
type TuneLoad struct {
	// RPS counts replies of any status, GoodRPS those below 400, per second.
	RPS     *float64 `json:"rps"`
	GoodRPS *float64 `json:"good_rps"`
	// GoodShare is good replies over requests (ratio).
	GoodShare *float64 `json:"good_share"`
	// P50 and P99 are of what the user waited, failed requests included, in microseconds.
	P50 *float64 `json:"p50_us"`
	P99 *float64 `json:"p99_us"`
}

// TuneLoadOf takes from a load what the table of steps shows; nil is none.
func TuneLoadOf(ld *Load) TuneLoad {
	if ld == nil {
		return TuneLoad{}
	}
	return TuneLoad{RPS: &ld.RPS, GoodRPS: &ld.GoodRPS, GoodShare: &ld.GoodShare, P50: &ld.Waited.P50, P99: &ld.Waited.P99}
}

// Failed says whether it was ours, and not one of its requests had a good reply.
func (l TuneLoad) Failed() bool { return l.GoodRPS != nil && *l.GoodRPS == 0 }

// TuneOutcome is what became of a change.
type TuneOutcome string

// The outcomes.
const (
	Proposed TuneOutcome = "proposed" // shown, not made
	Kept     TuneOutcome = "kept"     // it did what it should, and it pays
	OnTrial  TuneOutcome = "on trial" // it did what it should, and does not pay yet
	Undone   TuneOutcome = "undone"   // it was taken back
	Stands   TuneOutcome = "stands"   // it could not be taken back
	Refused  TuneOutcome = "refused"  // it could not be made; nothing changed
)

// TuneFix is a fix that was shown, or made and judged.
type TuneFix struct {
	Rule string `json:"rule"`
	// Index is the fix's place among its rule's, from 0.
	Index int    `json:"index"`
	Title string `json:"title"`
	Risk  string `json:"risk"`
	Costs string `json:"costs,omitempty"`
	// MemoryBytes is how much more memory it is likely to take, nil where the run does not tell.
	MemoryBytes *float64     `json:"memory_bytes,omitempty"`
	Changes     []TuneChange `json:"changes"`
	Outcome     TuneOutcome  `json:"outcome"`
	// Accept is whether the next run showed what the rule asks of it.
	Accept Truth `json:"accept,omitempty"`
	// Paid is whether that run was better, and Effect the measures by which.
	Paid   ComparisonAnswer `json:"paid,omitempty"`
	Effect []Difference     `json:"effect"`
	// Sentence says what came of it.
	Sentence string `json:"sentence"`
}

// TuneChange is one setting that was, or would be, changed.
type TuneChange struct {
	// ID is its number in the journal, 0 if it was not made.
	ID   int    `json:"id"`
	Kind string `json:"kind"`
	// What names the setting, and what it is of: "net.core.somaxconn on server".
	What string `json:"what"`
	Host string `json:"host"`
	Old  string `json:"old"`
	New  string `json:"new"`
	// Scope is how far it reaches: process, service, namespace, cgroup, machine.
	Scope string `json:"scope"`
	// Restart is none or reload.
	Restart string   `json:"restart"`
	Files   []string `json:"files,omitempty"`
	Undo    string   `json:"undo"`
	Notes   []string `json:"notes,omitempty"`
}

// TuneTrial is a change left out at the end, to see whether it is needed.
type TuneTrial struct {
	Step int    `json:"step"` // whose change was left out
	Dir  string `json:"dir"`
	TuneLoad
	// CommandExit is how the user's own load tool ended, nil without one.
	CommandExit *int `json:"command_exit"`
	// Effect is of leaving it out: B is the run without the change.
	Effect   []Difference `json:"effect"`
	Kept     bool         `json:"kept"`
	Sentence string       `json:"sentence"`
}

// TuneGoal is one goal of --slo.
type TuneGoal struct {
	Goal  string  `json:"goal"`
	Value float64 `json:"value"` // in the goal's own unit; latencies in microseconds
	Met   bool    `json:"met"`
}

// TuneLine is one line of a file that makes a change last.
type TuneLine struct {
	File string `json:"file"`
	Line string `json:"line"`
}

// Sweep is what came of trying values of settings, in random order.
type Sweep struct {
	// Seed gives the same order again.
	Seed   uint64       `json:"seed"`
	Repeat int          `json:"repeat"`
	Points []SweepPoint `json:"points"`
	// Findings say of each measure whether the values made a difference.
	Findings []SweepFinding `json:"findings"`
	// Restored is whether what was set before is set again.
	Restored bool `json:"restored"`
}

// SweepFinding is what a sweep says of one measure: good_rps or p99_us.
type SweepFinding struct {
	Measure string `json:"measure"`
	// Chance is how often values that make no difference would lie as far apart as
	// these; not known with one run of each. Beyond is whether that is rarer than 5 in 100.
	Known  bool    `json:"chance_known"`
	Chance float64 `json:"chance"`
	Beyond bool    `json:"beyond_chance"`
	// Best and Worst are the settings of the points with the best and the worst mean.
	Best  []string `json:"best"`
	Worst []string `json:"worst"`
}

// SweepPoint is one combination of values, with its runs.
type SweepPoint struct {
	// Settings are the values, in the order of the command line: "net.core.somaxconn=128".
	Settings []string   `json:"settings"`
	Dirs     []string   `json:"dirs"`
	Loads    []TuneLoad `json:"loads"`
	GoodRPS  Interval   `json:"good_rps"`
	P99      Interval   `json:"p99_us"`
}

// Interval is a mean of repeated runs. Low and High are its 95 % interval, and
// the mean itself where there is one run alone (Known is false).
type Interval struct {
	Mean  float64 `json:"mean"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Known bool    `json:"interval_known"`
}
