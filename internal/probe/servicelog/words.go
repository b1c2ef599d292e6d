package servicelog

import "bytes"

// errorWords are the words by which a line is known, in small letters: the C
// library's text of an error number, which most languages take over, and what
// common servers and languages write about limits of their own. The first that fits counts.
var errorWords = []struct{ words, name string }{
	{"too many open files in system", "ENFILE"},
	{"inotify", "inotify"}, // with one of the two that it gives, see errorOf
	{"too many open files", "EMFILE"},
	{"no space left on device", "ENOSPC"},
	{"possibly out of free disk space", "ENOSPC"}, // PHP, of a short write
	{"disk quota exceeded", "EDQUOT"},
	{"read-only file system", "EROFS"},
	{"input/output error", "EIO"},
	{"file too large", "EFBIG"},
	{"cannot allocate memory", "ENOMEM"},
	{"no buffer space available", "ENOBUFS"},
	{"unable to create native thread", "fork"}, // Java
	{"resource temporarily unavailable", "EAGAIN"},
	{"allowed memory size of ", "php_memory_limit"},
	{"maximum execution time of ", "php_max_execution_time"},
	{"java.lang.outofmemoryerror", "java_heap"},
	{"max number of clients reached", "too_many_clients"}, // redis
	{"too many clients already", "too_many_clients"},      // PostgreSQL
	{"too many connections", "too_many_clients"},          // MySQL
	{"used memory > 'maxmemory'", "maxmemory"},            // redis
}

// errorOf names the resource that a line says has run out, "" for none. The
// line is changed to small letters.
func errorOf(line []byte) string {
	toLower(line)
	has := func(s string) bool { return bytes.Contains(line, []byte(s)) }
	for _, e := range errorWords {
		if !has(e.words) {
			continue
		}
		switch e.name {
		case "inotify":
			if !has("no space left on device") && !has("too many open files") {
				continue
			}
		case "EAGAIN":
			if has("fork") || has("thread") || has("spawn") {
				return "fork"
			}
			continue // many calls give it in the course of business
		}
		return e.name
	}
	return ""
}

// fullWords are the words by which a server says that it can start no further worker, in small letters, and what stands in the way.
var fullWords = []struct{ words, what string }{
	{"scoreboard is full, not at maxrequestworkers", "scoreboard"}, // Apache (event, worker): processes on their way out hold the places
}

// ofModule is within how many bytes of its beginning a line of Apache's error log names the module: "[Sun Nov 29 05:43:06.123456 2026] [mpm_event:error] [pid 7:tid 8] AH…".
const ofModule = 64

// fullOf names what a line says has no room for another worker, "" for none. The line is in small letters. A line that a client
// can have written, as of an access log, is none: it does not begin so.
func fullOf(line []byte) string {
	if !bytes.HasPrefix(line, []byte("[")) || !bytes.Contains(line[:min(len(line), ofModule)], []byte("[mpm_")) {
		return ""
	}
	for _, f := range fullWords {
		if bytes.Contains(line, []byte(f.words)) {
			return f.what
		}
	}
	return ""
}

// rabbitMQ is what its process is called, of which a line about an alarm counts: Erlang's machine.
const rabbitMQ = "beam.smp"

// everyAlarm stands for all alarms of a server.
const everyAlarm = "*"

// hasAlarms says whether a group may be a server that has alarms.
func hasAlarms(group string) bool { return group == rabbitMQ }

// alarmOf names the alarm that a line of RabbitMQ's log says is set, or is no longer (rabbit_alarm.erl); "" for none. A node logs those
// of all its cluster, so that one is over once it is cleared across the cluster, and all are by a start. The line is changed to small letters.
func alarmOf(line []byte) (name string, set bool) {
	toLower(line)
	if bytes.Contains(line, []byte("starting rabbitmq ")) {
		return everyAlarm, false
	}
	before, after, found := bytes.Cut(line, []byte(" resource limit alarm "))
	if !found {
		return "", false
	}
	for _, resource := range []string{"disk", "memory"} {
		if !bytes.HasSuffix(before, []byte(resource)) {
			continue
		}
		if set = bytes.HasPrefix(after, []byte("set on node ")); set || bytes.HasPrefix(after, []byte("cleared across the cluster")) {
			return "rabbitmq_" + resource, set
		}
	}
	return "", false
}

func toLower(b []byte) {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
}
