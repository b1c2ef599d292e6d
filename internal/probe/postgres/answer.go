package postgres

import (
	"fmt"
	"strconv"
	"strings"

	"plimsoll/internal/probe/sqlshape"
)

// Names are qualified, and what they are looked up in is pg_catalog alone (see settings): what a
// user of the database made is never called.
const (
	// A commit_delay that a role or a database has of its own makes the server's one say nothing. Who has a number of its own (xid) has written;
	// one that waits for a lock is none of commit_siblings.
	settingsQuery = `SELECT pg_catalog.current_setting('max_connections'), pg_catalog.current_setting('superuser_reserved_connections'),
 coalesce(pg_catalog.current_setting('reserved_connections', true), '0'), CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_db_role_setting AS s CROSS JOIN LATERAL pg_catalog.unnest(s.setconfig) AS c (line) WHERE pg_catalog."left"(c.line, 13) = 'commit_delay=')
 THEN NULL ELSE pg_catalog.current_setting('commit_delay', true) END, pg_catalog.current_setting('commit_siblings', true),
 pg_catalog.txid_snapshot_xmax(pg_catalog.txid_current_snapshot()),
 (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity AS a WHERE a.backend_xid IS NOT NULL AND coalesce(a.wait_event_type, '') <> 'Lock' AND a.pid <> pg_catalog.pg_backend_pid()),
 coalesce(pg_catalog.current_setting('debug_parallel_query', true), pg_catalog.current_setting('force_parallel_mode', true), 'off'), pg_catalog.current_setting('parallel_setup_cost'),
 pg_catalog.pg_size_bytes(pg_catalog.current_setting('min_parallel_table_scan_size'))`

	activityQuery = `SELECT coalesce(a.state, ''), CASE WHEN a.state = 'active' THEN coalesce(a.wait_event_type, '') ELSE '' END, CASE WHEN a.state = 'active' THEN coalesce(a.wait_event, '') ELSE '' END,
 pg_catalog.count(*), pg_catalog.max(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - a.xact_start))
 FROM pg_catalog.pg_stat_activity AS a WHERE a.backend_type = 'client backend' AND a.pid <> pg_catalog.pg_backend_pid() GROUP BY 1, 2, 3 LIMIT 300`

	// Of a transaction that idles it is what it did last.
	statementsQuery = `SELECT pg_catalog."left"(a.query, 1500), a.state, CASE WHEN a.state = 'active' THEN coalesce(a.wait_event_type, '') ELSE '' END, pg_catalog.count(*)
 FROM pg_catalog.pg_stat_activity AS a WHERE a.state IN ('active', 'idle in transaction') AND a.backend_type = 'client backend' AND a.pid <> pg_catalog.pg_backend_pid()
 GROUP BY 1, 2, 3 ORDER BY 4 DESC LIMIT 100`

	// blockedBy is followed by the text of who holds the lock, once for each, or by none: in a storm of locks each waits for all before it.
	blockedBy = `SELECT w.pid, w.ran, b.pid, coalesce(b.state, ''), coalesce(b.usename, ''), b.application_name, pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - b.xact_start), `
	itsText   = `CASE WHEN b.wait_event_type = 'Lock' OR pg_catalog.row_number() OVER (PARTITION BY b.pid) > 1 THEN '' ELSE coalesce(pg_catalog."left"(b.query, 500), '') END`
	noText    = "''"
	ofBlocked = `
 FROM (SELECT a.pid, pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - a.query_start) AS ran, pg_catalog.pg_blocking_pids(a.pid) AS holders
 FROM pg_catalog.pg_stat_activity AS a WHERE a.wait_event_type = 'Lock' LIMIT 50) AS w
 CROSS JOIN LATERAL pg_catalog.unnest(w.holders) AS h (pid) JOIN pg_catalog.pg_stat_activity AS b ON b.pid = h.pid LIMIT 2500`

	// What was deleted in this database since the oldest of these began may be removed by nobody. A transaction in another database
	// holds back nothing here, nor does VACUUM. It and CREATE INDEX are at work on the tables, and nobody should end them.
	snapshotQuery = `SELECT a.pid, coalesce(a.state, ''), coalesce(a.usename, ''), a.application_name,
 pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - a.xact_start), greatest(pg_catalog.age(a.backend_xmin), pg_catalog.age(a.backend_xid)) AS since
 FROM pg_catalog.pg_stat_activity AS a WHERE a.pid <> pg_catalog.pg_backend_pid() AND a.xact_start < pg_catalog.clock_timestamp() - interval '1 s'
 AND coalesce(a.backend_xmin, a.backend_xid) IS NOT NULL AND a.datname = pg_catalog.current_database()
 AND NOT EXISTS (SELECT FROM pg_catalog.pg_stat_progress_vacuum AS v WHERE v.pid = a.pid)`
	notIndexing  = ` AND NOT EXISTS (SELECT FROM pg_catalog.pg_stat_progress_create_index AS i WHERE i.pid = a.pid)`
	oldestOfThem = ` ORDER BY since DESC, a.xact_start LIMIT 1`

	databaseQuery = `SELECT d.datname, d.xact_commit, d.xact_rollback, d.tup_returned, d.tup_fetched, d.blks_read, d.blks_hit, d.temp_bytes, d.deadlocks
 FROM pg_catalog.pg_stat_database AS d WHERE d.datname IS NOT NULL ORDER BY d.xact_commit DESC LIMIT 50`

	tablesQuery = `SELECT t.schemaname, t.relname, coalesce(t.seq_scan, 0), coalesce(t.seq_tup_read, 0)
 FROM pg_catalog.pg_stat_user_tables AS t ORDER BY 4 DESC LIMIT 10`

	deadQuery = `SELECT t.schemaname, t.relname, coalesce(t.n_dead_tup, 0), coalesce(t.n_live_tup, 0)
 FROM pg_catalog.pg_stat_user_tables AS t ORDER BY 3 DESC LIMIT 10`

	lookupsQuery = `SELECT t.schemaname, t.relname, coalesce(t.idx_scan, 0), coalesce(t.idx_tup_fetch, 0)
 FROM pg_catalog.pg_stat_user_tables AS t ORDER BY 3 DESC LIMIT 10`

	// A policy depends on the functions that it calls; on the server's own it does not, as far as this table tells.
	policiesQuery = `SELECT n.nspname, c.relname, f.oid::pg_catalog.regprocedure::pg_catalog.text FROM pg_catalog.pg_policy AS p
 JOIN pg_catalog.pg_class AS c ON c.oid = p.polrelid AND c.relrowsecurity JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
 JOIN pg_catalog.pg_depend AS d ON d.classid = 'pg_catalog.pg_policy'::pg_catalog.regclass AND d.objid = p.oid AND d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass
 JOIN pg_catalog.pg_proc AS f ON f.oid = d.refobjid AND f.provolatile = 'v' GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 LIMIT 20`

	// What was written to the log is told since PostgreSQL 14.
	checkpointsBefore14 = `SELECT w.checkpoints_timed, w.checkpoints_req, NULL, NULL, NULL FROM pg_catalog.pg_stat_bgwriter AS w`
	checkpointsBefore17 = `SELECT w.checkpoints_timed, w.checkpoints_req, ` + itsLog + ` FROM pg_catalog.pg_stat_bgwriter AS w, pg_catalog.pg_stat_wal AS l`
	checkpointsSince17  = `SELECT w.num_timed, w.num_requested, ` + itsLog + ` FROM pg_catalog.pg_stat_checkpointer AS w, pg_catalog.pg_stat_wal AS l`
	itsLog              = `l.wal_bytes, l.wal_fpi, pg_catalog.pg_size_bytes(pg_catalog.current_setting('max_wal_size'))`

	// What the planner is told not to do, or to do always: for the server, for which a session of ours stands as far as its own role and
	// database have nothing else, and for roles and databases, with the share of the clients that have it so. Whom it is for is said as ALTER takes it.
	plannerQuery = `SELECT t.name, t.value, t.standard, t.whom, t.share FROM (
 SELECT s.name, s.setting AS value, s.boot_val AS standard, CASE s.source WHEN 'configuration file' THEN 'SYSTEM' ELSE 'command line' END AS whom, 1 AS share
 FROM pg_catalog.pg_settings AS s WHERE s.source IN ('configuration file', 'command line', 'environment variable')
 UNION ALL SELECT s.name, pg_catalog.substr(c.line, pg_catalog.strpos(c.line, '=') + 1), s.boot_val,
 CASE WHEN r.setrole <> 0 THEN 'ROLE ' || pg_catalog.quote_ident(u.rolname) || CASE WHEN r.setdatabase <> 0 THEN ' IN ' ELSE '' END WHEN r.setdatabase = 0 THEN 'ROLE ALL' ELSE '' END
 || CASE WHEN r.setdatabase <> 0 THEN 'DATABASE ' || pg_catalog.quote_ident(d.datname) ELSE '' END,
 (SELECT pg_catalog.count(*) FILTER (WHERE r.setrole IN (0, a.usesysid) AND r.setdatabase IN (0, a.datid)) / greatest(pg_catalog.count(*), 1)::pg_catalog.float8
 FROM pg_catalog.pg_stat_activity AS a WHERE a.backend_type = 'client backend' AND a.pid <> pg_catalog.pg_backend_pid())
 FROM pg_catalog.pg_db_role_setting AS r CROSS JOIN LATERAL pg_catalog.unnest(r.setconfig) AS c (line) JOIN pg_catalog.pg_settings AS s ON s.name = pg_catalog.split_part(c.line, '=', 1)
 LEFT JOIN pg_catalog.pg_roles AS u ON u.oid = r.setrole LEFT JOIN pg_catalog.pg_database AS d ON d.oid = r.setdatabase
 ) AS t WHERE CASE WHEN t.name = 'plan_cache_mode' THEN t.value <> t.standard WHEN t.name = 'random_page_cost' THEN t.value::pg_catalog.float8 > 2 * t.standard::pg_catalog.float8
 WHEN pg_catalog."left"(t.name, 7) = 'enable_' THEN t.standard = 'on' AND pg_catalog.lower(t.value) IN ('off', 'false', 'no', '0') ELSE false END ORDER BY 5 DESC, 1, 4 LIMIT 20`

	busiestQuery = `SELECT d.datname FROM pg_catalog.pg_stat_database AS d JOIN pg_catalog.pg_database AS c ON c.oid = d.datid
 WHERE c.datallowconn AND NOT c.datistemplate ORDER BY d.numbackends DESC, d.xact_commit DESC LIMIT 1`
)

// question is what is asked in a round; whole adds what only counts up, which is dearer, and texts what statements sessions are in.
func question(version int, whole, texts bool) string {
	snapshots := snapshotQuery
	if version >= 120000 { // before, CREATE INDEX does not say that it is at work
		snapshots += notIndexing
	}
	text := noText
	if texts {
		text = itsText
	}
	list := []string{settingsQuery, activityQuery, blockedBy + text + ofBlocked, snapshots + oldestOfThem}
	if version >= 110000 { // what a planner was told not to do costs so much by its own reckoning that it would be compiled, for a third of a second
		list = append([]string{"SET jit = off"}, list...)
	}
	if texts {
		list = append(list, statementsQuery)
	}
	if whole {
		list = append(list, databaseQuery, tablesQuery, deadQuery, lookupsQuery, policiesQuery, plannerQuery, checkpointsOf(version))
	}
	return strings.Join(list, "; ")
}

func checkpointsOf(version int) string {
	switch {
	case version >= 170000:
		return checkpointsSince17
	case version >= 140000:
		return checkpointsBefore17
	}
	return checkpointsBefore14
}

// answer is what one question brought.
type answer struct {
	maxConnections, reserved float64
	delays                   bool    // the server has one commit_delay for all
	delay, siblings          float64 // commit_delay in seconds, commit_siblings
	wrote, writing           float64 // transactions that wrote, since ever, and sessions that are in one
	forced                   bool    // each query gets a parallel worker, however small
	setupCost, scanBytes     float64 // parallel_setup_cost, min_parallel_table_scan_size
	states                   map[string]float64
	oldest                   map[string]float64 // seconds, by state
	waits                    map[[2]string]float64
	blocked                  map[holder]float64
	holding                  map[holding]float64
	longest, holderAge       float64
	oldestSnapshot           snapshot
	statements               map[doing]float64
	// whole says that what follows was asked for, too.
	whole            bool
	databases        []counts
	tables           []counts
	dead             []counts // rows that are dead, and those that live
	lookups          []counts // looks into an index, and rows that these found
	policies         []counts // functions that a table's policy calls for each row
	planner          []counts // what the planner is told, and the share of the clients for which it is
	timed, requested float64
	log              *walLog // nil where the server does not tell
}

// walLog is what was written to the write-ahead log, and how large that may become between checkpoints.
type walLog struct{ bytes, pages, most float64 }

// keep takes over what only counts up.
func (a *answer) keep(from answer) {
	a.whole, a.databases, a.tables, a.dead = true, from.databases, from.tables, from.dead
	a.lookups, a.policies, a.planner = from.lookups, from.policies, from.planner
	a.timed, a.requested, a.log = from.timed, from.requested, from.log
}

// holder is who holds a lock that others wait for.
type holder struct{ state, user, application string }

// holding is the statement, by its shape, that such a session is in, or was in last; "" where that is not read.
type holding struct{ statement, state string }

// doing is a statement that a connection is in, by its shape, or was in last, and the kind of what it waits for.
type doing struct{ statement, state, waits string }

// snapshot is a transaction that needs rows which were deleted since it began; of nobody where there is none.
type snapshot struct {
	of                    owner
	seconds, transactions float64
}

// owner is whose transaction it is, and what that does.
type owner struct{ pid, state, user, application string }

// counts are counters and what they are of.
type counts struct {
	names  []string
	values []float64
}

// parse reads the answer to question.
func parse(sets []rows, whole, texts bool) (a answer, err error) {
	a.whole = whole
	want := 4
	if whole {
		want += 7
	}
	if texts {
		want++
	}
	if len(sets) != want || len(sets[0]) != 1 {
		return a, fmt.Errorf("PostgreSQL answered %d statements, want %d", len(sets), want)
	}
	if err := a.settings(sets[0][0]); err != nil {
		return a, err
	}
	for i, read := range []func(rows) error{a.sessions, a.locks, a.snapshots} {
		if err := read(sets[1+i]); err != nil {
			return a, err
		}
	}
	sets = sets[4:]
	if texts {
		if err := a.texts(sets[0]); err != nil {
			return a, err
		}
		sets = sets[1:]
	}
	if !whole {
		return a, nil
	}
	return a, a.counters(sets)
}

// settings reads how the server is set, and how many transactions wrote.
func (a *answer) settings(row []string) error {
	const numeric, mode = 7, 7 // so many numbers, and then the mode that forces workers
	if len(row) != mode+3 {
		return fmt.Errorf("PostgreSQL told of its settings in %d columns, want %d", len(row), mode+3)
	}
	v, err := numbers(row[:numeric], 0, numeric)
	if err != nil {
		return err
	}
	workers, err := numbers(row, mode+1, 2)
	if err != nil {
		return err
	}
	a.maxConnections, a.reserved = v[0], v[1]+v[2]
	a.delays = row[3] != "" && row[4] != ""
	a.delay, a.siblings, a.wrote, a.writing = v[3]*1e-6, v[4], v[5], v[6]
	a.forced, a.setupCost, a.scanBytes = row[mode] != "off", workers[0], workers[1]
	return nil
}

// counters reads what only counts up, in the order in which it is asked for.
func (a *answer) counters(sets []rows) (err error) {
	for i, of := range []struct {
		to            *[]counts
		names, values int
	}{{&a.databases, 1, 8}, {&a.tables, 2, 2}, {&a.dead, 2, 2}, {&a.lookups, 2, 2}, {&a.policies, 3, 0}, {&a.planner, 4, 1}} {
		if *of.to, err = table(sets[i], of.names, of.values); err != nil {
			return err
		}
	}
	return a.checkpoints(sets[6])
}

func (a *answer) checkpoints(list rows) error {
	if len(list) != 1 {
		return fmt.Errorf("PostgreSQL told of checkpoints in %d rows, want one", len(list))
	}
	last, err := numbers(list[0], 0, 5)
	if err != nil {
		return err
	}
	a.timed, a.requested = last[0], last[1]
	if list[0][4] != "" {
		a.log = &walLog{last[2], last[3], last[4]}
	}
	return nil
}

// sessions adds up connections by state, and the active ones by what they wait for.
func (a *answer) sessions(list rows) error {
	a.states, a.oldest, a.waits = map[string]float64{}, map[string]float64{}, map[[2]string]float64{}
	for _, row := range list {
		v, err := numbers(row, 3, 2)
		if err != nil {
			return err
		}
		a.states[row[0]] += v[0]
		a.oldest[row[0]] = max(a.oldest[row[0]], v[1])
		if row[0] == "active" {
			a.waits[[2]string{row[1], row[2]}] += v[0]
		}
	}
	return nil
}

// texts adds up connections by what they do.
func (a *answer) texts(list rows) error {
	a.statements = map[doing]float64{}
	for _, row := range list {
		v, err := numbers(row, 3, 1)
		if err != nil {
			return err
		}
		a.statements[doing{sqlshape.Of(row[0], sqlshape.Postgres), row[1], row[2]}] += v[0]
	}
	return nil
}

// locks finds for each connection that waits for a lock who holds it at the end of the
// chain: of those before it one that does not wait for a lock itself.
func (a *answer) locks(list rows) error {
	before, who, age, in := map[string][]string{}, map[string]holder{}, map[string]float64{}, map[string]string{}
	a.blocked, a.holding = map[holder]float64{}, map[holding]float64{}
	for _, row := range list {
		if len(row) != 8 {
			return fmt.Errorf("PostgreSQL said of a lock %d things, want 8", len(row))
		}
		ran, err := number(row[1])
		if err != nil {
			return err
		}
		if age[row[2]], err = number(row[6]); err != nil {
			return err
		}
		before[row[0]] = append(before[row[0]], row[2])
		who[row[2]] = holder{row[3], row[4], row[5]}
		if row[7] != "" {
			in[row[2]] = sqlshape.Of(row[7], sqlshape.Postgres)
		}
		a.longest = max(a.longest, ran)
	}
	for pid := range before {
		root := chainEnd(pid, before)
		a.blocked[who[root]]++
		if in[root] != "" {
			a.holding[holding{in[root], who[root].state}]++
		}
		a.holderAge = max(a.holderAge, age[root])
	}
	return nil
}

// snapshots reads which transaction has the oldest one.
func (a *answer) snapshots(list rows) error {
	for _, row := range list {
		v, err := numbers(row, 4, 2)
		if err != nil {
			return err
		}
		a.oldestSnapshot = snapshot{owner{row[0], row[1], row[2], row[3]}, v[0], v[1]}
	}
	return nil
}

// chainEnd follows who waits for whom to one who waits for nobody; in a circle, as far as it goes.
func chainEnd(pid string, before map[string][]string) string {
	seen := map[string]bool{}
	for len(before[pid]) > 0 && !seen[pid] {
		seen[pid] = true
		next := before[pid][0]
		for _, p := range before[pid] {
			if len(before[p]) == 0 {
				next = p
			}
		}
		pid = next
	}
	return pid
}

// table reads rows that are so many names, and then numbers.
func table(list rows, names, values int) (all []counts, err error) {
	for _, row := range list {
		v, err := numbers(row, names, values)
		if err != nil {
			return nil, err
		}
		all = append(all, counts{row[:names], v})
	}
	return all, nil
}

// numbers reads the columns of a row from one on; there must be exactly so many.
func numbers(row []string, from, n int) (list []float64, err error) {
	if len(row) != from+n {
		return nil, fmt.Errorf("PostgreSQL answered with %d columns, want %d", len(row), from+n)
	}
	for _, text := range row[from:] {
		v, err := number(text)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// number reads a number; NULL, which is that of no transaction, is 0.
func number(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v != v || v-v != 0 {
		return 0, fmt.Errorf("PostgreSQL answered %.40q, want a number", text)
	}
	return v, nil
}

func whole(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("PostgreSQL answered %.40q, want a whole number", text)
	}
	return n, nil
}
