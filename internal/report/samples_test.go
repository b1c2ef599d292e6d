package report

import "plimsoll/internal/model"

func num(v float64) *float64 { return &v }

var twoHosts = []model.Host{
	{Name: "client", Spec: "netns:cli", Machine: "b1", Kernel: "6.18.0", NetNS: 4026532201, CPUs: 2},
	{Name: "server", Spec: "netns:srv", Machine: "b1", Kernel: "6.18.0", NetNS: 4026532259, CPUs: 2},
}

// base is what all sample reports share.
func base() model.Report {
	return model.Report{
		Plan: model.Plan{
			Mode: "run", Generator: "client", Interval: 1000, CommandLine: []string{"plimsoll", "run", "http://10.77.0.2/index.php", "-c", "1000", "--no-keepalive", "--host", "server=netns:srv"},
			Load: &model.LoadPlan{
				URL: "http://10.77.0.2/index.php", Method: "GET", Connections: 1000, Threads: 1,
				DurationMS: 10000, KeepAlive: false, TimeoutMS: 2000, CalmMS: 2000, RampMS: 1000,
			},
		},
		Hosts: twoHosts,
		Windows: []model.Window{
			{Name: model.Baseline, Start: 1_760_000_000_000, End: 1_760_000_002_000},
			{Name: model.Calm, Start: 1_760_000_002_000, End: 1_760_000_004_000},
			{Name: model.Ramp, Start: 1_760_000_004_000, End: 1_760_000_005_000},
			{Name: model.Hold, Start: 1_760_000_005_000, End: 1_760_000_015_000},
			{Name: model.Cool, Start: 1_760_000_015_000, End: 1_760_000_016_000},
		},
		Cost:      model.Cost{CPUSeconds: 0.14, WallSeconds: 16, CPUShare: 0.0088, MaxRSS: 41 << 20, LoadCPUSeconds: 5.81},
		RulesHash: "9f2c", Version: "0.1.0", Closed: true,
		Dir: "plimsoll-runs/20251009T084000Z-4f1c",
	}
}

// seconds makes a course: `good` and `failed` per second of hold after two
// seconds of calm and one of ramp.
func seconds(good, failed int64) []model.Second {
	var list []model.Second
	at := int64(1_760_000_002_000)
	add := func(phase string, g, f int64) {
		at += 1000
		list = append(list, model.Second{
			Time: at, Phase: phase,
			Replies: g + f/2, Good: g, Failed: f - f/2,
		})
	}
	add(model.Calm, 310, 0)
	add(model.Calm, 322, 0)
	add(model.Ramp, good/2, failed/8)
	for i := range int64(10) {
		add(model.Hold, good+good*(i%3-1)/20, failed+failed*(i%4-1)/10)
	}
	add(model.Cool, good/30, failed/8) // what ended after the last was sent
	return list
}

func conntrackRoot() model.Finding {
	return model.Finding{
		Rule: "net.conntrack.table_full", Kind: "cause", Answer: model.Confirmed,
		Title:   "The connection-tracking table is full; the kernel refuses new connections",
		Subject: map[string]string{"host": "server"}, Impact: num(0.81), ImpactOf: model.ImpactFailed,
		Story: "The kernel's packet filter remembers every connection in a table. When the table is full, the first packet " +
			"of a new connection is thrown away without a word, and its sender waits a second before it tries again.",
		Clues: []model.Clue{
			{ID: "full", Role: model.Needs, Truth: model.True, Value: num(1), Is: ">= 0.95",
				Why: "above 95 % the kernel's own collector starts to evict",
				Say: "the table peaked at 100 % of its limit (200 of 200 entries)", ByHand: "sysctl net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max"},
			{ID: "refused", Role: model.Decides, Truth: model.True, Value: num(4000), Is: "> 0",
				Say: "the kernel refused 4,000 packets", ByHand: "conntrack -S"},
			{ID: "logged", Role: model.Supports, Truth: model.Unknown, Is: "> 0",
				Missing: "plimsoll_kernel_log_messages_total was denied on server: /dev/kmsg can be read by root alone"},
		},
		Explains: []model.Explained{
			{Rule: "load.connect_timeouts", Subject: map[string]string{"host": "client"},
				How: "a refused SYN is sent again after 1 s and 3 s, until the client gives up"},
			{Rule: "net.tcp.syn_retransmits", Subject: map[string]string{"host": "client"},
				How: "each refused SYN is sent again"},
		},
		Fix: []model.Fix{
			{Title: "Raise the limit", Command: "sysctl -w net.netfilter.nf_conntrack_max=262144",
				Risk: "low", Costs: "320 bytes of kernel memory for each further entry", Undo: "automatic", Restart: "none",
				Accept: "no packet is refused", Changes: []model.FixChange{{Kind: model.ChangeSysctl, Name: "net.netfilter.nf_conntrack_max", Old: "200", Value: "262144", Host: "server", Subject: map[string]string{"host": "server"}, Type: "sysctl -w net.netfilter.nf_conntrack_max=262144", Back: "sysctl -w net.netfilter.nf_conntrack_max=200"}}},
			{Title: "Do not track the connections of this service at all",
				Command: "nft add table ip raw\nnft add chain ip raw prerouting '{ type filter hook prerouting priority raw; }'\nnft add rule ip raw prerouting tcp dport 80 counter notrack comment \"plimsoll: no tracking for the service\"",
				Risk:    "medium", Costs: "stateful firewall rules no longer see these connections", Undo: "manual", Restart: "none", Back: "nft delete table ip raw"},
		},
	}
}

func near(rule, kind string, a model.FindingAnswer, t model.Truth, say string, subject map[string]string) model.Finding {
	return model.Finding{Rule: rule, Kind: kind, Title: rule, Subject: subject, Answer: a,
		Clues: []model.Clue{
			{ID: "a", Role: model.Needs, Truth: t, Is: ">= 0.9", Say: say, Value: num(0.5)},
		}}
}

func ruledOutSamples() []model.Finding {
	srv, cli := map[string]string{"host": "server"}, map[string]string{"host": "client"}
	return []model.Finding{
		near("net.listen.queue_full", "cause", model.RuledOut, model.False, "the queue of 0.0.0.0:80 (nginx) held at most 3 of 511 connections",
			map[string]string{"host": "server", "listen": "0.0.0.0:80", "owner": "nginx"}),
		near("net.listen.queue_full", "cause", model.RuledOut, model.False, "the queue of unix:/run/php/www.sock (php-fpm) held at most 12 of 511 connections",
			map[string]string{"host": "server", "listen": "unix:/run/php/www.sock", "owner": "php-fpm"}),
		near("net.listen.queue_full", "cause", model.RuledOut, model.False, "the queue of 0.0.0.0:22 (sshd) held at most 0 of 128 connections",
			map[string]string{"host": "server", "listen": "0.0.0.0:22", "owner": "sshd"}),
		near("net.ports.exhausted", "cause", model.RuledOut, model.False, "towards 10.77.0.2:80 at most 4,012 of 28,232 ports were in use",
			map[string]string{"host": "client", "dst": "10.77.0.2:80"}),
		near("cpu.saturated", "cause", model.RuledOut, model.False, "the CPUs were at most 41 % busy", srv),
		near("load.connect_refused", "symptom", model.RuledOut, model.False, "no connection was refused", cli),
		near("load.error_replies", "symptom", model.RuledOut, model.False, "no reply was an error", cli),
		near("load.generator_saturated", "cause", model.RuledOut, model.False, "the generator used 18 % of its thread", cli),
	}
}

func unknownSamples() []model.Finding {
	u := func(rule, missing string) model.Finding {
		return model.Finding{Rule: rule, Kind: "cause", Title: rule, Subject: map[string]string{"host": "server"},
			Answer: model.UnknownState, Clues: []model.Clue{{ID: "x", Role: model.Needs, Truth: model.Unknown, Is: "> 0", Missing: missing}}}
	}
	fpm := "phpfpm_listen_queue is absent on server: the pool www has no pm.status_path; set it and reload PHP-FPM"
	return []model.Finding{
		u("phpfpm.workers_exhausted", fpm),
		u("app.slow_upstream", fpm),
		u("proc.descriptors_exhausted", "namedprocess_worst_fd_ratio was denied on server: /proc/PID/fd of other users needs root"),
	}
}

func causeReport() model.Report {
	r := base()
	root := conntrackRoot()
	timeouts := near("load.connect_timeouts", "symptom", model.Confirmed, model.True, "3,412 connections never got in", map[string]string{"host": "client"})
	timeouts.ExplainedBy = root.Rule
	r.Verdict = model.Verdict{
		Answer:   model.AnswerCause,
		Sentence: "The connection-tracking table of server is full: the kernel threw away 4,000 packets, and 81 % of the requests failed because of it.",
		Root:     []model.Finding{root},
		Findings: []model.Finding{root, timeouts,
			near("phpfpm.workers_exhausted", "cause", model.Near, model.True, "46 of 50 workers were busy at once", map[string]string{"host": "server", "pool": "www"})},
		RuledOut: ruledOutSamples(), Unknown: unknownSamples()[2:],
	}
	r.Load = &model.Load{
		Requests: 4241, RPS: 49.1, GoodRPS: 48.7, GoodShare: 487.0 / 4241,
		Outcomes: map[string]int64{"2xx": 487, "5xx": 4, "connect:timeout": 3412, "read:ECONNRESET": 338},
		Latency:  model.Quantiles{Count: 491, Mean: 9e5, P50: 1_012_000, P90: 1_050_000, P99: 1_998_000, P999: 2e6, Max: 2_000_100},
		Waited:   model.Quantiles{Count: 4241, Mean: 1.9e6, P50: 2_000_000, P90: 2_001_000, P99: 2_003_000, P999: 2_003_500, Max: 2_004_000},
		Calm:     model.Quantiles{Count: 632, Mean: 3100, P50: 3_010, P90: 3_500, P99: 5_100, P999: 6_000, Max: 6_100},
		Seconds:  10, Course: seconds(49, 375),
	}
	return r
}

func healthyReport() model.Report {
	r := base()
	r.Plan.Load.Rate, r.Plan.Load.KeepAlive, r.Plan.Load.Connections = 500, true, 64
	r.Verdict = model.Verdict{
		Answer: model.AnswerHealthy, Sentence: "Nothing held it back: all 500 requests/s that were offered were served.",
		Grounds: []model.Finding{{Rule: "load.served", Kind: "healthy", Title: "The offered load was served", Subject: map[string]string{"host": "client"},
			Answer: model.Confirmed, Clues: []model.Clue{{ID: "served", Role: model.Decides, Truth: model.True, Value: num(1), Is: ">= 0.999",
				Say: "100 % of what was offered was answered well", ByHand: "wrk2 -R 500 -c 64 -d 10 http://10.77.0.2/index.php"}}}},
		RuledOut: append(ruledOutSamples(), near("net.conntrack.table_full", "cause", model.RuledOut, model.False,
			"the table peaked at 0.1 % of its limit", map[string]string{"host": "server"})),
	}
	r.Load = &model.Load{
		Requests: 5000, RPS: 500, GoodRPS: 500, GoodShare: 1, Outcomes: map[string]int64{"2xx": 5000},
		Latency: model.Quantiles{Count: 5000, Mean: 2100, P50: 1_950, P90: 2_700, P99: 4_420, P999: 8_000, Max: 11_800},
		Calm:    model.Quantiles{Count: 900, P50: 1_700}, Seconds: 10, Course: seconds(500, 0),
	}
	return r
}

func capacityReport() model.Report {
	r := base()
	r.Hosts = []model.Host{{Name: "local", Spec: "local", Machine: "b1", Kernel: "6.1.0", NetNS: 1, CPUs: 2}}
	r.Plan.Load.KeepAlive = true
	root := model.Finding{
		Rule: "cpu.capacity", Kind: "capacity", Title: "The CPUs are busy with useful work; this is what the machine gives",
		Subject: map[string]string{"host": "local"}, Answer: model.Confirmed,
		Clues: []model.Clue{
			{ID: "busy", Role: model.Decides, Truth: model.True, Value: num(0.998), Is: ">= 0.95", Say: "both CPUs were 99.8 % busy", ByHand: "mpstat -P ALL 1"},
			{ID: "who", Role: model.Supports, Truth: model.True, Value: num(0.71), Is: "> 0", Say: "php-fpm used 71 % of it, in user mode", ByHand: "pidstat -u 1"},
		},
		Explains: []model.Explained{{Rule: "net.listen.queue_waiting", Subject: map[string]string{"host": "local", "listen": "127.0.0.1:9000"},
			How: "what cannot be worked on waits in the queue of the workers"}},
	}
	r.Verdict = model.Verdict{Answer: model.AnswerCapacity,
		Sentence: "The CPUs of local are the limit, doing useful work: 4,677 replies/s is what this machine gives.",
		Grounds:  []model.Finding{root}, Findings: []model.Finding{root}, RuledOut: ruledOutSamples()[:2]}
	r.Load = &model.Load{
		Requests: 46_770, RPS: 4677, GoodRPS: 4677, GoodShare: 1, Outcomes: map[string]int64{"2xx": 46_770},
		Latency: model.Quantiles{Count: 46_770, P50: 212_000, P99: 402_000, Max: 611_000},
		Calm:    model.Quantiles{Count: 2000, P50: 820}, Seconds: 10, Course: seconds(4677, 0),
	}
	return r
}

func unclearReport() model.Report {
	r := base()
	r.Plan.Load.Requests, r.Plan.Load.DurationMS = 100_000, 0
	r.Verdict = model.Verdict{Answer: model.AnswerUnclear,
		Sentence: "Something held it back, and none of the rules can name it: 62 % of the requests got no reply.",
		Findings: []model.Finding{
			near("load.connect_timeouts", "symptom", model.Confirmed, model.True, "62,004 connections never got in", map[string]string{"host": "client"})},
		RuledOut: ruledOutSamples()[3:], Unknown: unknownSamples(),
		Nearest: []model.Candidate{
			{Rule: "process.blocked", Title: "The service's threads wait, for what the brackets name", Answer: model.Suspected,
				Subject: map[string]string{"host": "server", "groupname": "php-fpm8.2", "reason": "socket_read", "towards": "10.0.0.5:5432"},
				For:     []string{"for 52 % of the requests under way a thread of php-fpm8.2 was blocked in socket_read 10.0.0.5:5432"},
				Settle:  "plimsoll trace offcpu, or plimsoll run --trace full, shows the stacks, and who ends the wait"},
			{Rule: "net.conntrack.table_full", Title: "The connection-tracking table is full; the kernel refuses new connections", Answer: model.Near,
				Subject: map[string]string{"host": "server"}, For: []string{},
				Settle: "the table peaked at 91 % of its limit; it would be it if that were >= 0.95 (by hand: sysctl net.netfilter.nf_conntrack_count)"},
		},
		LoadAverage: []model.LoadAverage{{Hosts: []string{"client", "server"}, Load1: num(3.21),
			Runnable:        model.LoadPart{Threads: num(2.4), Groups: []model.LoadGroup{{Name: "php-fpm8.2", Share: 0.81}, {Name: "nginx", Share: 0.12}}},
			Uninterruptible: model.LoadPart{Threads: num(0), Groups: []model.LoadGroup{}}}},
	}
	r.Load = &model.Load{
		Requests: 100_000, RPS: 1266, GoodRPS: 1266, GoodShare: 0.37996,
		Outcomes: map[string]int64{"2xx": 37_996, "connect:timeout": 62_004},
		Latency:  model.Quantiles{Count: 37_996, P50: 900, P99: 84_300, Max: 1_204_000}, Seconds: 30, Course: seconds(1266, 2066),
	}
	r.Notes = []string{"the 11,840 sockets of server were listed every 5 s and not every second, to keep the cost of watching down"}
	return r
}

func watchReport() model.Report {
	r := base()
	r.Plan = model.Plan{Mode: "watch", Generator: "client", Interval: 1000,
		Command: []string{"ab", "-n", "100000", "-c", "1000", "http://10.77.0.2/"}}
	r.Cost.LoadCPUSeconds = 0
	r.Tracing = &model.Tracing{Level: "full", Duty: map[string]float64{"syscalls": 0.17, "offcpu": 0.16}, Profiles: []string{"cpu", "offcpu"}}
	root := conntrackRoot()
	root.Impact, root.ImpactOf, root.Explains, root.Answer = nil, "", nil, model.Suspected
	root.Clues[1] = model.Clue{ID: "refused", Role: model.Decides, Truth: model.Unknown, Is: "> 0",
		Missing: "node_nf_conntrack_stat_drop was denied on server: the statistics need CAP_NET_ADMIN"}
	r.Verdict = model.Verdict{Answer: model.AnswerCause,
		Sentence: "Most likely the connection-tracking table of server is full; what would prove it could not be read.",
		Root:     []model.Finding{root}, Findings: []model.Finding{root}, Unknown: unknownSamples()[:1]}
	return r
}

// watchAloneReport is of a watch that found nothing, on a host that it was not told of.
func watchAloneReport() model.Report {
	r := base()
	r.Plan = model.Plan{Mode: "watch", Interval: 1000}
	r.Cost.LoadCPUSeconds = 0
	missing := func(rule string, what ...string) model.Finding {
		f := model.Finding{Rule: rule, Kind: "cause", Subject: map[string]string{}, Answer: model.UnknownState}
		for _, m := range what {
			f.Clues = append(f.Clues, model.Clue{ID: "x", Role: model.Needs, Truth: model.Unknown, Missing: m})
		}
		return f
	}
	r.Verdict = model.Verdict{Answer: model.AnswerUnclear,
		Sentence: "No cause was found; how long users waited was not seen, so this does not prove that all is well.",
		RuledOut: ruledOutSamples()[:2],
		Unknown: []model.Finding{
			missing("process.blocked", "this run has no baseline window"),
			missing("app.queue_inside", "this run has no calm window", "plimsoll_load_connections: was not looked for"),
			missing("net.neighbours_full", "plimsoll_other: was not looked for"),
		}}
	return r
}

func cutOffReport() model.Report {
	r := causeReport()
	r.Closed = false
	r.Load.Course = r.Load.Course[:6]
	r.Load.Latency = model.Quantiles{}
	r.Load.Outcomes = map[string]int64{"connect:timeout": 977}
	r.Load.Requests, r.Load.GoodRPS, r.Load.GoodShare = 977, 0, 0
	r.Notes = []string{"the last 3 s are missing in series/: the recorder was ended by a signal"}
	return r
}
