// Package redis asks Redis and Valkey servers for their own counts (INFO). They are found by their
// processes, and asked where these listen themselves. Nothing but INFO is sent, and no password.
package redis

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/asker"
)

// maxAnswer bounds an answer; a server that has known every command there is writes about 60 KiB.
const maxAnswer = 512 << 10

// All lists the package's probes.
func All() []probe.Probe {
	kind := &asker.Kind[answer]{
		Name:      "Redis",
		Processes: []string{"redis-server", "valkey-server"},
		Question:  "INFO all\r\n",
		Most:      maxAnswer,
		Read:      read,
		New:       newPut,
		Signals:   signals(),
		Up:        up,
		Full:      full,
	}
	return []probe.Probe{{
		Name:    "redis",
		Scope:   probe.PerHost,
		Signals: kind.Signals,
		Cost:    "one question a second: 0.04 to 0.12 ms of the server's one thread and 0.1 ms of ours (Redis 7.0, 20 commands)",
		Blind: []string{
			"it takes one of the server's connections for as long as it watches",
			"a server that wants a password (requirepass, ACL), has INFO renamed, or speaks TLS alone is not asked",
			"what stood in line for the server's thread is not counted; commands are counted by name, without their keys, and SLOWLOG, which shows arguments, is not read",
			"an answer that comes late, since the thread was busy, is put into the round in which it came; plimsoll_redis_clock_seconds_total is as old as the rest of it",
			"of each server the forty dearest commands are told, at most 128 in all, and 32 kinds of errors",
		},
		Open: kind.Open,
	}}
}

// read reads a reply to INFO: a bulk string, or an error.
func read(r *bufio.Reader) (a answer, err error) {
	line, err := r.ReadString('\n')
	if err != nil && line == "" {
		return a, fmt.Errorf("read the answer: %w", err)
	}
	line = strings.TrimRight(line, "\r\n")
	if said, ok := strings.CutPrefix(line, "-"); ok {
		return a, refusal(said)
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(line, "$"), 10, 32)
	if err != nil || line[0] != '$' || n > maxAnswer-64 {
		return a, fmt.Errorf("it answered %.60q, want a text of at most %d bytes", line, maxAnswer-64)
	}
	text := make([]byte, n+2)
	if _, err := io.ReadFull(r, text); err != nil {
		return a, fmt.Errorf("read %d bytes of the answer: %w", n, err)
	}
	return parse(string(text[:n]))
}

// refusal makes an error of what a server says instead of an answer. Codes are Redis' own.
func refusal(said string) error {
	code, _, _ := strings.Cut(said, " ")
	said = layout.Line(said[:min(len(said), 200)])
	switch {
	case strings.Contains(said, "max number of clients"):
		return fmt.Errorf("%w (it says: %s)", asker.ErrFull, said)
	case code == "NOAUTH" || code == "NOPERM" || code == "DENIED" || code == "WRONGPASS":
		return fmt.Errorf("it wants a password or a right even to be asked for INFO, and Plimsoll has none (it says: %s): %w", said, fs.ErrPermission)
	case strings.Contains(said, "unknown command"):
		return fmt.Errorf("its command INFO is renamed or taken away (it says: %s): %w", said, fs.ErrPermission)
	}
	return errors.New("it says: " + said)
}
