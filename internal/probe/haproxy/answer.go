package haproxy

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/model"
)

const maxRows = 2000

// value is one number of an answer.
type value struct {
	signal *model.Signal
	number float64
	labels []string
}

// parse reads what HAProxy answers to "show stat" (chapter 9.1 of its management guide).
func parse(text []byte) (list []value, err error) {
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(string(text), "# ")))
	r.FieldsPerRecord = -1
	r.LazyQuotes = true
	head, err := r.Read()
	if err != nil || len(head) == 0 || head[0] != "pxname" {
		return nil, fmt.Errorf("HAProxy answered %.60q, want the table that begins with # pxname", text)
	}
	for n := 0; ; n++ {
		row, err := r.Read()
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read HAProxy's table: %w", err)
		}
		if n == maxRows {
			return nil, fmt.Errorf("HAProxy answered with more than %d rows", maxRows)
		}
		of, err := valuesOf(head, row)
		if err != nil {
			return nil, err
		}
		list = append(list, of...)
	}
}

// valuesOf reads a row: a frontend, a backend or a server. Those of other kinds are passed over.
func valuesOf(head, row []string) (list []value, err error) {
	at := map[string]string{}
	for i, name := range head {
		if i < len(row) {
			at[name] = row[i]
		}
	}
	labels := []string{at["pxname"]}
	if at["type"] == "2" {
		labels = append(labels, at["svname"])
		list = append(list, value{serverUp, serving(at["status"]), labels})
		if w, err := strconv.ParseUint(at["weight"], 10, 32); err == nil && at["bck"] != "1" {
			list = append(list, value{serverWeight, float64(w), []string{at["pxname"], at["svname"], cmp.Or(at["addr"], "unknown")}})
		}
		if state := checkState(at["check_status"]); state != "" {
			list = append(list, value{serverCheck, 1, []string{at["pxname"], at["svname"], state}})
		}
	}
	for _, c := range columns[at["type"]] {
		text := at[c.name]
		if text == "" {
			continue // it has none, or this version does not tell
		}
		v, err := strconv.ParseUint(text, 10, 53)
		if err != nil {
			return nil, fmt.Errorf("HAProxy's table has %s=%.40q for %.40q, want a number", c.name, text, at["pxname"])
		}
		if v == 0 && c.signal == frontRateLimit {
			continue // so it says that there is none
		}
		of := labels
		if c.name == "hrsp_5xx" {
			of = append(slices.Clone(labels), "5xx")
		}
		list = append(list, value{c.signal, float64(v) * c.scale, of})
	}
	return list, nil
}

// checkState is how the last check ended ("* " says that the next one is on its way); "" where there is none, or no such word.
func checkState(text string) string {
	state := strings.TrimPrefix(text, "* ")
	for _, r := range state {
		if !(r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') || len(state) > 8 {
			return ""
		}
	}
	return state
}

// serving says whether a server in this state gets requests; "UP 1/3" goes down and is up yet.
func serving(status string) float64 {
	if strings.HasPrefix(status, "UP") || status == "no check" || strings.HasPrefix(status, "NOLB") {
		return 1
	}
	return 0
}

// sockets are the paths of the stats sockets that a configuration names.
func sockets(conf []byte) (paths []string) {
	for line := range strings.Lines(string(conf)) {
		f := words(line)
		if len(f) < 3 || f[0] != "stats" || f[1] != "socket" {
			continue
		}
		path := strings.TrimPrefix(f[2], "unix@")
		if strings.HasPrefix(path, "/") {
			paths = append(paths, path)
		}
	}
	return paths
}

// words are those of a line up to its comment, as HAProxy takes them: within quotes, or behind a backslash, a blank and a # are
// letters as others are.
func words(line string) (list []string) {
	var word []byte
	var quote byte // that is open
	begun := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, begun = c, true
		case c == '\\' && quote != '\'' && i+1 < len(line):
			i++
			word, begun = append(word, line[i]), true
		case quote == 0 && c == '#':
			i = len(line)
		case quote == 0 && (c == ' ' || c == '\t' || c == '\r' || c == '\n'):
			if begun {
				list = append(list, string(word))
			}
			word, begun = nil, false
		default:
			word, begun = append(word, c), true
		}
	}
	if begun {
		list = append(list, string(word))
	}
	return list
}

// files are the configuration files that a command line names: those after -f, and after --.
func files(args []string) (list []string) {
	for i := 1; i < len(args); i++ {
		switch {
		case args[i] == "--":
			return append(list, args[i+1:]...)
		case args[i] == "-f" && i+1 < len(args):
			i++
			list = append(list, args[i])
		}
	}
	return list
}
