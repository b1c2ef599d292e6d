package mysql

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"plimsoll/internal/lazy"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/sqlshape"
)

// maxKinds bounds how many states of sessions and how many kinds of open transactions are told of a server.
// maxStatements is how many kinds of statements are.
const (
	maxKinds      = 100
	maxStatements = 30
)

// questions are what is asked, one after the other.
func questions(maria bool) []string {
	age := "TIME"
	if maria {
		age = "TIME_MS / 1000"
	}
	return []string{
		"SELECT @@GLOBAL.max_connections, @@GLOBAL.tmp_table_size, @@GLOBAL.max_heap_table_size, @@GLOBAL.wait_timeout, @@GLOBAL.table_open_cache, @@GLOBAL.general_log, @@GLOBAL.slow_query_log, @@GLOBAL.long_query_time, @@GLOBAL.log_output",
		"SHOW GLOBAL STATUS WHERE Variable_name IN ('" + strings.Join(wanted(), "', '") + "')",
		"SELECT COMMAND, STATE, COUNT(*), MAX(" + age + ") FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() GROUP BY COMMAND, STATE LIMIT 500",
		`SELECT t.trx_state, p.COMMAND, p.USER, COUNT(*), MAX(UNIX_TIMESTAMP() - UNIX_TIMESTAMP(t.trx_started)),
 MAX(UNIX_TIMESTAMP() - UNIX_TIMESTAMP(t.trx_wait_started)) FROM information_schema.INNODB_TRX AS t
 LEFT JOIN information_schema.PROCESSLIST AS p ON p.ID = t.trx_mysql_thread_id
 WHERE t.trx_mysql_thread_id <> CONNECTION_ID() GROUP BY t.trx_state, p.COMMAND, p.USER LIMIT 500`,
	}
}

// statementsQuestion asks what the sessions are in.
const statementsQuestion = "SELECT LEFT(INFO, 1500), STATE, COUNT(*) FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND COMMAND IN ('Query', 'Execute') AND INFO IS NOT NULL GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 100"

// answer is what the questions brought.
type answer struct {
	maxConnections float64
	tempInMemory   float64            // bytes
	waitTimeout    float64            // seconds
	tableCache     float64            // tables
	slowAfter      float64            // seconds
	logs           map[logTo]bool     // of statements, whether they are written
	status         map[string]float64 // by the variable's name
	threads        map[thread]float64
	waits          map[string]float64 // sessions, by the kind of lock that they wait for
	longestWait    float64            // seconds
	longestQuery   float64            // seconds, of those that wait for no lock
	oldest         map[open]float64   // seconds, of transactions that wait for no lock
	statements     map[doing]float64  // sessions
	noTexts        error              // why these were not read
}

// logTo is a log of statements, general or slow, and what it is written to, table or file.
type logTo struct{ log, to string }

// thread is what a session does, open what a transaction that is open does, and whose it is.
type (
	thread struct{ command, state string }
	open   struct{ state, user string }
)

// doing is a statement that a session is in, by its shape, and the kind of lock that it waits for.
type doing struct{ statement, lock string }

// locks are the kinds of locks, by what the states of who waits for them have in them; the first that fits it is.
var locks = []struct{ words, kind string }{
	{"global read lock", "global"},
	{"backup lock", "global"},
	{"commit lock", "global"},
	{"waiting for table flush", "global"},
	{"waiting for release of readlock", "global"},
	{"metadata lock", "metadata"},
	{"schema lock", "metadata"},
	{"waiting for table level lock", "table"},
	{"waiting for table lock", "table"},
	{"table lock", "table"},
	{"user lock", "user"},
}

// kinds are all kinds of locks, which are told also when nobody waits for one.
var kinds = []string{"metadata", "table", "row", "global", "user"}

// lockOf is the kind of lock that who is in a state waits for, "" for none.
func lockOf(state string) string {
	for _, l := range locks {
		if strings.Contains(state, l.words) {
			return l.kind
		}
	}
	return ""
}

// parse reads the answers to questions.
func parse(sets []rows) (a answer, err error) {
	if len(sets) != 4 || len(sets[0]) != 1 {
		return a, fmt.Errorf("the server answered %d questions, want 4, the first with one row", len(sets))
	}
	a.waits = map[string]float64{}
	for _, read := range []func() error{
		func() error { return a.readLimits(sets[0][0]) },
		func() error { return a.readStatus(sets[1]) },
		func() error { return a.readSessions(sets[2]) },
		func() error { return a.readTransactions(sets[3]) },
	} {
		if err := read(); err != nil {
			return a, err
		}
	}
	return a, nil
}

// readLimits reads what the server allows. A temporary table in memory is bound by the smaller of its two limits.
func (a *answer) readLimits(row []string) error {
	var v [8]float64
	if len(row) != len(v)+1 {
		return fmt.Errorf("the server told of its limits in %d columns, want %d", len(row), len(v)+1)
	}
	for i, text := range row[:len(v)] {
		var err error
		if v[i], err = value(text); err != nil {
			return err
		}
	}
	a.maxConnections, a.tempInMemory, a.waitTimeout, a.tableCache = v[0], min(v[1], v[2]), v[3], v[4]
	a.slowAfter, a.logs = v[7], map[logTo]bool{}
	for _, to := range []string{"table", "file"} { // log_output may name both
		a.logs[logTo{"general", to}] = v[5] != 0 && strings.Contains(strings.ToLower(row[8]), to)
		a.logs[logTo{"slow", to}] = v[6] != 0 && strings.Contains(strings.ToLower(row[8]), to)
	}
	return nil
}

// readStatus reads names and values.
func (a *answer) readStatus(list rows) error {
	a.status = map[string]float64{}
	for _, row := range list {
		if len(row) != 2 {
			return fmt.Errorf("the server told of a variable in %d columns, want 2", len(row))
		}
		v, err := value(row[1])
		if err != nil {
			return err
		}
		a.status[strings.ToLower(row[0])] = v
	}
	if _, ok := a.status["threads_connected"]; !ok {
		return errors.New("the server has no variable Threads_connected")
	}
	return nil
}

// atWork is who is asked something; others are the server's own threads, replicas, or have nothing to do.
var atWork = map[string]bool{"query": true, "execute": true, "prepare": true, "fetch": true, "init db": true, "field list": true}

// readSessions reads how many there are of each command and state, and how long the longest has been in it.
func (a *answer) readSessions(list rows) error {
	a.threads = map[thread]float64{}
	for _, row := range list {
		if len(row) != 4 {
			return fmt.Errorf("the server told of sessions in %d columns, want 4", len(row))
		}
		n, err := value(row[2])
		if err != nil {
			return err
		}
		age, err := value(row[3])
		if err != nil {
			return err
		}
		t := thread{clean(row[0]), clean(row[1])}
		a.threads[t] += n
		if !atWork[t.command] {
			continue
		}
		if kind := lockOf(t.state); kind != "" {
			a.waits[kind] += n
			a.longestWait = max(a.longestWait, age)
		} else {
			a.longestQuery = max(a.longestQuery, age)
		}
	}
	return nil
}

// readTransactions reads what transactions of InnoDB are open.
func (a *answer) readTransactions(list rows) error {
	a.oldest = map[open]float64{}
	for _, row := range list {
		if len(row) != 6 {
			return fmt.Errorf("the server told of transactions in %d columns, want 6", len(row))
		}
		var v [3]float64
		for i := range v {
			var err error
			if v[i], err = value(row[3+i]); err != nil {
				return err
			}
		}
		if strings.EqualFold(row[0], "LOCK WAIT") {
			a.waits["row"] += v[0]
			a.longestWait = max(a.longestWait, v[2])
			continue
		}
		o := open{"active", cmp.Or(clean(row[2]), "unknown")} // it may have left between the one table and the other
		if clean(row[1]) == "sleep" {
			o.state = "idle in transaction"
		}
		a.oldest[o] = max(a.oldest[o], v[1])
	}
	return nil
}

// readStatements reads what the sessions are asked.
func (a *answer) readStatements(list rows) error {
	a.statements = map[doing]float64{}
	for _, row := range list {
		if len(row) != 3 {
			return fmt.Errorf("the server told of statements in %d columns, want 3", len(row))
		}
		n, err := value(row[2])
		if err != nil {
			return err
		}
		a.statements[doing{sqlshape.Of(row[0], sqlshape.MySQL), lockOf(clean(row[1]))}] += n
	}
	return nil
}

var odd = lazy.Regexp(`[^a-z0-9 ._/()-]+`)

// clean makes a label of a word of the server's: small letters, and not too long.
func clean(word string) string {
	word = odd().ReplaceAllString(strings.ToLower(word), "_")
	return word[:min(len(word), 64)]
}

// value reads a number; NULL is 0, as of the wait of who does not wait.
func value(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v != v || v-v != 0 {
		return 0, fmt.Errorf("the server answered %.40q, want a number", text)
	}
	return max(v, 0), nil // clocks are set
}

// ratio is 1 for what is so.
func ratio(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// newPut makes what puts the answers of one server. What was told of once is told of as 0 when there is none of it any more.
func newPut() func(*probe.Out, string, answer) {
	threads, transactions := probe.Told[thread]{Most: maxKinds}, probe.Told[open]{Most: maxKinds}
	statements := probe.Told[doing]{Most: maxStatements, Rest: func(d doing) doing { return doing{"other", d.lock} }}
	return func(out *probe.Out, listen string, a answer) {
		out.Put(maxConnections, a.maxConnections, listen)
		out.Put(tempInMemory, a.tempInMemory, listen)
		out.Put(waitTimeout, a.waitTimeout, listen)
		out.Put(tableCache, a.tableCache, listen)
		out.Put(slowAfter, a.slowAfter, listen)
		for l, on := range a.logs {
			out.Put(logOn, ratio(on), listen, l.log, l.to)
		}
		for _, c := range counts {
			if v, ok := a.status[c.variable]; ok {
				out.Put(c.signal, v, append([]string{listen}, c.labels...)...)
			}
		}
		for _, kind := range kinds {
			out.Put(waiting, a.waits[kind], listen, kind)
		}
		out.Put(longestWait, a.longestWait, listen)
		out.Put(longestQuery, a.longestQuery, listen)
		threads.Each(a.threads, func(t thread, n float64) { out.Put(processes, n, listen, t.command, t.state) })
		transactions.Each(a.oldest, func(o open, age float64) { out.Put(oldest, age, listen, o.state, o.user) })
		if a.noTexts != nil {
			out.Mark(statement, a.noTexts)
			return
		}
		statements.Each(a.statements, func(d doing, n float64) { out.Put(statement, n, listen, d.statement, d.lock) })
	}
}
