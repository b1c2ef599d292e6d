package model

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Answer is the verdict in one word.
type Answer string

const (
	// AnswerCause: at least one cause is confirmed (or the only one left suspected).
	AnswerCause Answer = "cause"
	// AnswerHealthy: the offered load was served; nothing held it back.
	AnswerHealthy Answer = "healthy"
	// AnswerCapacity: nothing is broken, and the machine has no more to give. What
	// of its work could be spared is on the bill.
	AnswerCapacity Answer = "capacity"
	// AnswerUnclear: something held it back and no rule could name it.
	AnswerUnclear Answer = "unclear"
)

// Truth is the third-valued answer of a clue.
type Truth string

// A clue is Unknown when a series that it names was not read; that is never False.
const (
	True    Truth = "true"
	False   Truth = "false"
	Unknown Truth = "unknown"
)

// Role says what a clue may decide; see ARCHITECTURE.md, "The answer of a rule".
type Role string

const (
	// Needs: false rules the finding out.
	Needs Role = "needs"
	// Decides: exact; true proves, false clears.
	Decides Role = "decides"
	// Proves: true proves, false says nothing.
	Proves Role = "proves"
	// Supports: adds a sentence, never an answer.
	Supports Role = "supports"
)

// FindingAnswer is a rule's answer for one subject.
type FindingAnswer string

// The answers in order of how much they claim; ARCHITECTURE.md says how clues make them.
const (
	Confirmed    FindingAnswer = "confirmed"
	Suspected    FindingAnswer = "suspected"
	Near         FindingAnswer = "near"
	RuledOut     FindingAnswer = "ruled out"
	UnknownState FindingAnswer = "unknown"
)

// Clue is one measured value held against one threshold.
type Clue struct {
	ID    string `json:"id"`
	Role  Role   `json:"role"`
	Truth Truth  `json:"truth"`
	// Value is nil when nothing was measured (never zero instead).
	Value *float64 `json:"value"`
	Is    string   `json:"is"`            // the threshold, as the rule states it
	Why   string   `json:"why,omitempty"` // why that threshold
	Say   string   `json:"say"`           // the sentence, filled in
	// Assumed says that nobody measured it: it was taken to be so, and is never counted as seen.
	Assumed bool `json:"assumed,omitempty"`
	// Stays says that it is the same when the cause is mended, or what the fix itself sets, so that it is no sign that a fix helped.
	Stays bool `json:"stays,omitempty"`
	// Names are the labels' values in the sentence that the finding's subject has not: a function, who holds the lock; nil for none.
	Names map[string]string `json:"names,omitempty"`
	// ByHand is the classic command with this run's values filled in.
	ByHand string `json:"by_hand,omitempty"`
	// By is who counted it where it holds: the kernel, a service, its log; nil where no finding rests on it.
	By []string `json:"by,omitempty"`
	// Missing names the signal that made the clue unknown, and why it is missing.
	Missing string `json:"missing,omitempty"`
}

// Finding is a rule's answer for one subject in one run.
type Finding struct {
	Rule    string            `json:"rule"`
	Kind    string            `json:"kind"` // cause | capacity | symptom
	Title   string            `json:"title"`
	Subject map[string]string `json:"subject"`
	Answer  FindingAnswer     `json:"answer"`
	// Impact is the share (0…1) that it cost, of what ImpactOf says; nil when it cannot be told.
	Impact *float64 `json:"impact"`
	// ImpactOf is what Impact is a share of: one of ImpactKinds, "" for the time that requests took.
	ImpactOf string      `json:"impact_of,omitempty"`
	Story    string      `json:"story,omitempty"`
	Clues    []Clue      `json:"clues"`
	Explains []Explained `json:"explains"`
	// Unlike are of a suspected finding the causes that look the same at first, which its rule names.
	Unlike []Lookalike `json:"unlike,omitempty"`
	// ExplainedBy is the rule that this finding is a consequence of.
	ExplainedBy string `json:"explained_by,omitempty"`
	// Unexplained are rules that hold and would explain this finding under a condition
	// that is not met, or of which nobody knows.
	Unexplained []Unexplained `json:"unexplained,omitempty"`
	// Aside says why this, however true, is not what users wait for: nobody of them is at the listener that it is about. "" where they may be.
	Aside string   `json:"aside,omitempty"`
	Fix   []Fix    `json:"fix"`
	Blind []string `json:"blind,omitempty"`
}

// What an impact is a share of, where it is not the time that requests took.
const (
	ImpactFailed     = "failed"      // requests: they got no good reply
	ImpactDelayed    = "delayed"     // requests: they went a longer way, or came late; some may have failed
	ImpactPackets    = "packets"     // packets that arrived at the host
	ImpactMachineCPU = "machine_cpu" // the CPU time of the machine
	ImpactProgramCPU = "program_cpu" // the CPU time of the program that the finding is about
)

// ImpactKinds are all of these.
var ImpactKinds = []string{ImpactFailed, ImpactDelayed, ImpactPackets, ImpactMachineCPU, ImpactProgramCPU}

// Lookalike is a cause that looks like another one at first.
type Lookalike struct {
	Rule  string `json:"rule"`
	Title string `json:"title"`
}

// Explained is a finding shown beneath its cause.
type Explained struct {
	Rule    string            `json:"rule"`
	Subject map[string]string `json:"subject"`
	How     string            `json:"how"`
}

// Unexplained is an explanation whose condition does not hold.
type Unexplained struct {
	Rule string `json:"rule"`
	// When is the condition as it was found, false or unknown.
	When Clue `json:"when"`
}

// Fix is what would mend a finding.
type Fix struct {
	Title string `json:"title"`
	// Index is its place among its rule's fixes, from 0, of which some are for other subjects and not listed.
	// It is for whoever has the same rules at hand, and is not written.
	Index int `json:"-"`
	// Command is what a person would type or write, filled in for this run.
	Command string `json:"command,omitempty"`
	// First is the one step to begin with, where Command has several; nil where Command is it.
	First *FirstStep `json:"first,omitempty"`
	Risk  string     `json:"risk"`
	Costs string     `json:"costs,omitempty"`
	// Before is what has to be looked at before anything is changed, and Save what has to be noted or saved then, which the way back needs.
	Before string `json:"before,omitempty"`
	Save   string `json:"save,omitempty"`
	Undo   string `json:"undo"`
	// Back is how a person takes it back, in words with the exact command; "" where no rule says, or where the changes (or the
	// first step) have the commands themselves.
	Back    string `json:"back,omitempty"`
	Restart string `json:"restart"`
	Accept  string `json:"accept,omitempty"`
	// MemoryBytes is how much memory it is likely to take, nil where the run does not tell.
	MemoryBytes *float64 `json:"memory_bytes,omitempty"`
	// Changes are the same as typed data, to be made together.
	Changes []FixChange `json:"changes"`
}

// FirstStep is what to do first of a fix that is a person's.
type FirstStep struct {
	// Type is a command to be typed as it stands, "" for none.
	Type string `json:"type,omitempty"`
	// Then is what to do, or what to do with what the command shows.
	Then string `json:"then,omitempty"`
	// Old is what the command sets now, "" where it sets nothing, or the run did not tell; Back is the command that sets it again.
	Old  string `json:"old,omitempty"`
	Back string `json:"back,omitempty"`
}

// The kinds of change; rules/README.md says what each does.
const (
	ChangeSysctl   = "sysctl"
	ChangeNginx    = "nginx"
	ChangePHPFPM   = "phpfpm"
	ChangeBacklog  = "backlog"
	ChangeLimit    = "limit"
	ChangeNice     = "nice"
	ChangePolicy   = "policy"
	ChangeAffinity = "affinity"
	ChangeQuota    = "quota"
	ChangeRPS      = "rps"
	ChangeTxQueue  = "txqueue"
	ChangePerson   = "person" // no program can do it
)

// FixChange is one setting that a fix changes.
type FixChange struct {
	Kind string `json:"kind"`
	// Name is the setting's (net.core.somaxconn); of a person's it is what to do.
	Name string `json:"name"`
	// Value is the new one, "" where the run did not tell.
	Value string `json:"value"`
	// Old is what is set now, "" where the run did not tell.
	Old string `json:"old,omitempty"`
	// Type is the command that sets it, "" where none does: what stands in a service's configuration.
	Type string `json:"type,omitempty"`
	// Back is the command that sets what was set before, "" where that is not known, or no command does.
	Back string `json:"back,omitempty"`
	Host string `json:"host"`
	// ListensAt is an address at which the service listens whose setting it is,
	// where the run told: of several on the host it is that one.
	ListensAt string `json:"listens_at,omitempty"`
	// Subject is the finding's: which listener, pool or process it is about.
	Subject map[string]string `json:"subject"`
}

// Verdict is all findings, ordered by cause.
type Verdict struct {
	Answer   Answer `json:"answer"`
	Sentence string `json:"sentence"`
	// Root are the causes that nothing else explains; empty unless Answer is cause.
	Root []Finding `json:"root"`
	// Grounds are what an answer without a cause rests on: the capacity that
	// is used up, or how it is known that the load was served.
	Grounds []Finding `json:"grounds"`
	// Findings are all that hold or nearly hold: roots, what they explain, the near ones.
	Findings []Finding `json:"findings"`
	RuledOut []Finding `json:"ruled_out"`
	Unknown  []Finding `json:"unknown"`
	// Nearest are the causes that come closest to being it, at most three; empty
	// unless Answer is unclear.
	Nearest []Candidate `json:"nearest"`
	// LoadAverage says what the load average of each machine was made of; empty
	// where nothing of it was read.
	LoadAverage []LoadAverage `json:"load_average"`
	// Bill is what a request costs in CPU time and what for; left out where no stacks were sampled.
	Bill *Bill `json:"bill,omitempty"`
}

// Candidate is a cause that may be it, and what would settle whether it is.
type Candidate struct {
	Rule    string            `json:"rule"`
	Title   string            `json:"title"`
	Subject map[string]string `json:"subject"`
	Answer  FindingAnswer     `json:"answer"`
	// For are the sentences of the clues that speak for it.
	For    []string `json:"for"`
	Settle string   `json:"settle"`
	// ByHand is the command that shows it, as it is to be typed; "" if there is none.
	ByHand string `json:"by_hand,omitempty"`
}

// LoadAverage is what a machine's load average was made of in the main window:
// threads that ran or waited for a CPU, and threads in uninterruptible sleep.
type LoadAverage struct {
	Hosts []string `json:"hosts"` // those that share the machine, sorted
	// Load1 is the kernel's number at the window's end, damped over a minute; nil when not read.
	Load1           *float64 `json:"load1"`
	Runnable        LoadPart `json:"runnable"`
	Uninterruptible LoadPart `json:"uninterruptible"`
}

// LoadPart is one half of a load average.
type LoadPart struct {
	// Threads is how many there were on average; nil when not read.
	Threads *float64 `json:"threads"`
	// Groups are whose they were, the largest first; without those under a twentieth.
	Groups []LoadGroup `json:"groups"`
}

// Report is the one JSON document that run, watch and diagnose print.
type Report struct {
	Verdict Verdict `json:"verdict"`
	// Load is nil (null) when Plimsoll drove no load itself.
	Load *Load `json:"load"`
	// RequestRate is how many requests a second users began while they were watched; left out where that was not seen, or the load was ours.
	RequestRate *float64 `json:"request_rate,omitempty"`
	// Breakdown is where the mean request's time went; nil (null) without our load.
	Breakdown *Breakdown `json:"breakdown"`
	// Program is where the time went of the one program that was asked about; left out where none was.
	Program *ProgramTime `json:"program,omitempty"`
	// ToolSummaries are what load tools in the watched command printed of their runs, oldest
	// first: their word, which no answer rests on. Left out where there are none.
	ToolSummaries []ToolSummary `json:"tool_summaries,omitempty"`
	Plan          Plan          `json:"plan"`
	Cost          Cost          `json:"cost"`
	// Collectors are those that observed the hosts.
	Collectors []Collector `json:"collectors,omitempty"`
	Hosts      []Host      `json:"hosts"`
	Windows    []Window    `json:"windows"`
	Notes      []string    `json:"notes"`
	// Tracing is nil (null) in a run that was not traced.
	Tracing *Tracing `json:"tracing"`
	// RulesHash is the SHA-256 of the rule set that gave this verdict.
	RulesHash string `json:"rules_hash"`
	// Site is what a site changed about the rules that gave this verdict; left
	// out when it was nothing.
	Site    *Site  `json:"site,omitempty"`
	Version string `json:"version"`
	Dir     string `json:"dir"`
	// Closed is false when the run was cut off: it is judged up to its last second.
	Closed bool `json:"closed"`
}

// Fleet is the verdict on each host that a server of series knows.
type Fleet struct {
	Remote RemotePlan  `json:"remote"`
	Hosts  []FleetHost `json:"hosts"` // those whose users lose most come first
	// Counts are how many hosts have each answer; "" is of those that could not be judged.
	Counts map[Answer]int `json:"counts"`
	Notes  []string       `json:"notes"`
	// Queries is how often the server was asked, and Readings is what it gave.
	Queries   int64  `json:"queries"`
	Readings  int64  `json:"readings"`
	RulesHash string `json:"rules_hash"`
	Site      *Site  `json:"site,omitempty"`
	Version   string `json:"version"`
}

// FleetHost is the verdict on one host, in a line.
type FleetHost struct {
	Host string `json:"host"`
	// Answer and Sentence are the verdict's; "" when it could not be judged, and Fault says why.
	Answer   Answer   `json:"answer"`
	Sentence string   `json:"sentence"`
	Rules    []string `json:"rules"` // what the answer rests on
	// Impact is the largest share (0…1) of requests that something confirmed loses or delays; nil when it cannot be told.
	Impact *float64 `json:"impact"`
	// Unknown is how many rules could not be judged.
	Unknown int      `json:"unknown"`
	Notes   []string `json:"notes"`
	Fault   string   `json:"fault,omitempty"`
}

// spokenLabels are words for labels that say little by their names.
var spokenLabels = map[string]string{
	"groupname": "program", "command": "program", "cmd": "command", "listen": "listening at", "dst": "to", "towards": "to",
	"reason": "blocked in", "err": "error", "errno": "error",
}

// SpokenSubject writes a subject for people, the host first.
func SpokenSubject(subject map[string]string) string {
	var parts []string
	if host, ok := subject["host"]; ok {
		parts = append(parts, host)
	}
	for _, name := range slices.Sorted(maps.Keys(subject)) {
		if name != "host" && subject[name] != "-" { // a dash is nobody
			value := subject[name]
			if spokenLabels[name] == "program" { // which may be called like a word (node, pages)
				value = strconv.Quote(value)
			}
			parts = append(parts, cmp.Or(spokenLabels[name], name)+" "+value)
		}
	}
	return strings.Join(parts, ", ")
}
