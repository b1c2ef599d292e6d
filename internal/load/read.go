package load

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/model"
)

// maxRecord is the longest record that is read; histograms make them some tens of kilobytes.
const maxRecord = 16 << 20

// ReadRecords calls take with each record of a stream of JSON lines, until it ends.
// An error says which line is none, or what in it cannot be; what came before it was taken.
// It matches io.ErrUnexpectedEOF if the last line is cut off.
func ReadRecords(from io.Reader, take func(Record)) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxRecord)
	lines.Split(wholeLines)
	n := 1
	for ; lines.Scan(); n++ {
		r, err := parseRecord(lines.Bytes())
		if err != nil {
			return fmt.Errorf("record %d: %w", n, err)
		}
		take(r)
	}
	switch err := lines.Err(); {
	case err == nil:
		return nil
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("record %d: it is longer than %d MiB", n, maxRecord>>20)
	default:
		return fmt.Errorf("record %d: %w", n, err)
	}
}

// wholeLines splits as bufio.ScanLines does, but takes a last line without its end
// for what it is.
func wholeLines(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if atEOF && len(data) > 0 && bytes.IndexByte(data, '\n') < 0 {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return bufio.ScanLines(data, atEOF)
}

func parseRecord(line []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(line, &r); err != nil {
		return Record{}, err
	}
	if err := r.Check(); err != nil {
		return Record{}, err
	}
	return r, nil
}

// maxShares is how many histograms a record may have.
const maxShares = counted*durations + maxTargetNames + 2*(maxStages+1)

// phaseNames are in the order in which phases follow each other.
var phaseNames = []string{model.Calm, model.Ramp, model.Hold, Drain}

// Check says what no load can have counted: it would become samples, or windows.
func (r *Record) Check() error {
	if !slices.Contains(phaseNames, r.Phase) {
		return fmt.Errorf("phase %q: want one of %v", r.Phase, phaseNames)
	}
	for _, p := range []string{r.PhaseStarted, r.PhaseEnded} {
		if p != "" && !slices.Contains(phaseNames, p) {
			return fmt.Errorf("a change of phase, %q: want one of %v", p, phaseNames)
		}
	}
	order := phaseNames[:counted]
	for i := range r.Phases {
		p := &r.Phases[i]
		at := slices.Index(order, p.Phase)
		if at < 0 {
			return fmt.Errorf("counts of phase %q: want one of %v, each once and in this order", p.Phase, phaseNames[:counted])
		}
		order = order[at+1:]
		if err := p.check(); err != nil {
			return fmt.Errorf("counts of phase %s: %w", p.Phase, err)
		}
	}
	for _, i := range r.Intervals {
		if err := i.check(); err != nil {
			return fmt.Errorf("latencies of phase %q: %w", i.Phase, err)
		}
	}
	for i := range r.Shares {
		if err := r.Shares[i].check(); err != nil {
			return err
		}
	}
	if len(r.Shares) > maxShares || r.LateMicros != nil && *r.LateMicros < 0 {
		return fmt.Errorf("%d shares: want at most %d, and none that began before its moment", len(r.Shares), maxShares)
	}
	least := min(r.Connections.Connecting, r.Connections.Open, r.Connections.Idle, r.Connections.Closed, r.Connections.Failed, r.Connections.Untried, r.Connections.Stood)
	seconds := 0.0
	for _, t := range r.Threads {
		seconds = min(seconds, t.User, t.System)
	}
	if r.Totals != nil {
		seconds = min(seconds, r.Totals.Seconds, r.Totals.CPUSeconds, r.Totals.StoodStill)
		least = min(least, r.Totals.Requests)
	}
	if r.TLS != nil {
		seconds = min(seconds, r.TLS.least())
	}
	if r.DNS != nil {
		seconds = min(seconds, *r.DNS)
	}
	if len(r.Targets) > maxTargetNames {
		return fmt.Errorf("%d targets: want at most %d", len(r.Targets), maxTargetNames)
	}
	for _, t := range r.Targets {
		seconds = min(seconds, leastOf(t.Outcomes, &t.Response))
	}
	for _, s := range r.Stages {
		if s.Stage < 0 || s.Stage > maxStages {
			return fmt.Errorf("stage %d: want 0 to %d", s.Stage, maxStages)
		}
		seconds = min(seconds, leastOf(s.Outcomes, &s.Response), leastOf(nil, &s.Lag))
	}
	if least < 0 || seconds < 0 {
		return errors.New("a number of connections, requests or seconds is negative")
	}
	return nil
}

func (p *PhaseRecord) check() error {
	left := p.Requests
	for name, n := range p.Outcomes {
		if n < 0 || n > left {
			return fmt.Errorf("%d requests ended as %q: more than the %d that began", n, name, p.Requests)
		}
		left -= n
	}
	replies := p.Requests
	for status, n := range p.Statuses {
		number, err := strconv.Atoi(status) // of three signs: 500 names at most, which become labels
		if replies -= n; n < 0 || replies < 0 || err != nil || len(status) != 3 || number < 100 || number > 599 {
			return fmt.Errorf("%d replies with status %q: want one from 100 to 599, and no more than the %d requests that began", n, status, p.Requests)
		}
	}
	least := min(p.ConnectCalls.Seconds, p.ReplyUnread.Seconds)
	for _, by := range []map[string]float64{p.Waits, p.Parts} {
		for _, seconds := range by {
			least = min(least, seconds)
		}
	}
	for _, q := range []*model.Quantiles{&p.Response, &p.Service, &p.Connect, &p.FirstByte, &p.Transfer, &p.Waited, &p.SendDelay, &p.Lag, &p.Unread} {
		least = min(least, float64(q.Count), q.Mean, q.P50, q.P90, q.P95, q.P99, q.P999, q.Max)
	}
	if left < 0 || least < 0 || min(p.Attempts, p.Received, p.Sent, p.ConnectCalls.Count, p.ReplyUnread.Count) < 0 {
		return errors.New("a count or a time is negative")
	}
	return nil
}

// leastOf is the smallest number of a target or a stage, none of which may be negative.
func leastOf(outcomes map[string]int64, q *model.Quantiles) float64 {
	n := min(float64(q.Count), q.Mean, q.P50, q.P90, q.P95, q.P99, q.P999, q.Max)
	for _, count := range outcomes {
		n = min(n, float64(count))
	}
	return n
}

// least is the smallest number in r, none of which may be negative.
func (r *TLSRecord) least() float64 {
	n := min(float64(r.Crypto.Count), r.Crypto.Seconds)
	for _, h := range r.Handshakes {
		n = min(n, float64(h.Count))
	}
	for _, q := range []*model.Quantiles{&r.Full, &r.Resumed} {
		n = min(n, float64(q.Count), q.Mean, q.P50, q.P90, q.P95, q.P99, q.P999, q.Max)
	}
	return n
}

// check holds that it can stand in a line of a latency log.
func (i *Interval) check() error {
	if !slices.Contains(phaseNames[:counted], i.Phase) || i.Kind != "response" && i.Kind != "service" {
		return fmt.Errorf("kind %q: want response or service of one of %v", i.Kind, phaseNames[:counted])
	}
	if i.End < i.Start {
		return errors.New("they end before they begin")
	}
	_, err := base64.StdEncoding.DecodeString(i.Histogram)
	if err != nil || strings.ContainsAny(i.Histogram, "\r\n") { // which the decoder passes over
		return errors.New("the histogram is no base64 in one line")
	}
	return nil
}

// check holds that it is of something that a load measures.
func (s *Share) check() error {
	if !slices.Contains(shareKinds[:], s.Kind) || s.Of != ofTarget && s.Of != ofStage && !slices.Contains(phaseNames[:counted], s.Of) {
		return fmt.Errorf("a share %q of %q: there is none of that name", s.Kind, s.Of)
	}
	return nil
}
