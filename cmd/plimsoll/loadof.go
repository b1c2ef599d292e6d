package main

import (
	"time"

	"plimsoll/internal/load"
	"plimsoll/internal/model"
)

// loadOf sums up the hold phase of the last record of a load.
func loadOf(plan model.LoadPlan, last load.Record) model.Load {
	l := model.Load{Outcomes: map[string]int64{}}
	for _, p := range last.Phases {
		switch p.Phase {
		case model.Hold:
			l.Outcomes, l.Statuses, l.Attempts = p.Outcomes, p.Statuses, p.Attempts
			l.ReceivedBytes, l.SentBytes = p.Received, p.Sent
			l.Latency, l.Service, l.Connect, l.Waited, l.Lag = p.Response, p.Service, p.Connect, p.Waited, p.Lag
			l.FirstByte, l.Transfer = p.FirstByte, p.Transfer
			l.Seconds = time.Duration((p.End - p.Start) * int64(time.Millisecond)).Seconds()
		case model.Calm:
			l.Calm = p.Response
			fallthrough
		default:
			if l.OtherPhases == nil {
				l.OtherPhases = map[string]int64{}
			}
			l.OtherPhases[p.Phase] = p.Requests
		}
	}
	l.AddUp(plan.Rate > 0)
	if t := last.TLS; t != nil {
		l.TLS = &model.TLSLoad{Handshakes: t.Handshakes, Full: t.Full, Resumed: t.Resumed}
		if t.Crypto.Count > 0 {
			l.TLS.CryptoSeconds = t.Crypto.Seconds / float64(t.Crypto.Count)
		}
	}
	for _, t := range last.Targets {
		of := model.TargetLoad{Name: t.Name, Outcomes: t.Outcomes, Latency: t.Response}
		for _, n := range t.Outcomes {
			of.Requests += n
		}
		l.Targets = append(l.Targets, of)
	}
	stages := map[int]model.StageLoad{}
	for _, s := range last.Stages {
		stages[s.Stage] = model.StageLoad{Outcomes: s.Outcomes, Latency: s.Response, Lag: s.Lag}
	}
	l.AddStages(&plan, stages)
	for _, w := range last.Workers {
		l.Workers = append(l.Workers, w.Worker)
	}
	l.Causes, l.DNSSeconds = last.Causes, last.DNS
	l.Stood = last.Connections.Stood
	if last.Totals != nil {
		l.StoodStill = last.Totals.StoodStill
	}
	l.Missing = &model.MissingConnections{Failed: last.Connections.Failed, Untried: last.Connections.Untried}
	return l
}
