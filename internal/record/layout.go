package record

// Format is the layout that this program writes, and the newest it reads.
const Format = 1

// The files of a run.
const (
	ManifestFile = "run.json"
	SeriesDir    = "series"
	WALDir       = "wal" // in SeriesDir, while recording
	LatencyFile  = "latency.hlog"
	EventsFile   = "events.jsonl"
	VerdictFile  = "verdict.json"
	ProfileEnd   = ".pb.gz" // after the name of what was sampled: cpu, offcpu
)
