package postgres

import "plimsoll/internal/model"

const (
	source = "PostgreSQL, asked over its own Unix socket as its own user"
	shell  = "sudo -u postgres psql -c "
)

func gauge(name, unit, help, sql string, labels ...string) *model.Signal {
	return &model.Signal{Name: name, Kind: model.Gauge, Unit: unit, Help: help, Labels: append([]string{"port"}, labels...), Source: source, ByHand: shell + `"` + sql + `"`}
}

func counter(name, unit, help, sql string, labels ...string) *model.Signal {
	s := gauge(name, unit, help, sql, labels...)
	s.Kind = model.Counter
	return s
}

const (
	activitySQL  = "SELECT state, wait_event_type, wait_event, count(*) FROM pg_stat_activity group by 1, 2, 3"
	statementSQL = "SELECT query, state, wait_event_type, count(*) FROM pg_stat_activity WHERE state IN ('active', 'idle in transaction') group by 1, 2, 3"
	blockedSQL   = "SELECT pid, pg_blocking_pids(pid), wait_event FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
	databaseSQL  = "SELECT * FROM pg_stat_database"
	snapshotSQL  = "SELECT pid, state, usename, application_name, xact_start, age(backend_xmin) FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND datname = current_database() ORDER BY 6 DESC"
	deadSQL      = "SELECT relname, n_dead_tup, n_live_tup FROM pg_stat_user_tables ORDER BY 2 DESC"
	lookupsSQL   = "SELECT relname, idx_scan, idx_tup_fetch FROM pg_stat_user_tables ORDER BY 2 DESC"
	tablesSQL    = "SELECT relname, seq_scan, seq_tup_read FROM pg_stat_user_tables ORDER BY 3 DESC"
)

// Named as postgres_exporter (prometheus-community) names them, where it has them. The label port is that
// of the socket's name, which tells several servers of a host apart.
var (
	up = gauge("pg_up", "ratio", "1 when the server answered, 0 when it did not.", "SELECT 1")

	full = gauge("plimsoll_postgres_full", "ratio", "1 when the server refused even us, since all its connections were in use; 0 when it let us in.", "SELECT 1")

	maxConnections = gauge("pg_settings_max_connections", "connections", "The most connections that the server takes (max_connections).", "SHOW max_connections")
	reserved       = gauge("pg_settings_superuser_reserved_connections", "connections",
		"Of these, those that are kept for superusers and, since PostgreSQL 16, for whom reserved_connections keeps some.", "SHOW superuser_reserved_connections")
	commitDelay = gauge("plimsoll_postgres_commit_delay_seconds", "seconds",
		"How long whoever writes the log for a commit waits first, in case others come (commit_delay), as set for the server; not told where a role or a database has one of its own.", "SHOW commit_delay")
	commitSiblings = gauge("pg_settings_commit_siblings", "connections", "It waits so only while at least so many others are in a transaction (commit_siblings).", "SHOW commit_siblings")

	wroteTx = counter("plimsoll_postgres_transactions_wrote_total", "transactions",
		"Transactions that wrote something, and so got a number (xid), subtransactions among them; those that only read have none, and have nothing to flush.", "SELECT txid_snapshot_xmax(txid_current_snapshot())")
	writing = gauge("plimsoll_postgres_sessions_writing", "connections",
		"Connections in a transaction that has written something, and that do not wait for a lock: those that commit_siblings is about.", "SELECT count(*) FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND wait_event_type IS DISTINCT FROM 'Lock'")

	forceParallel = gauge("plimsoll_postgres_force_parallel", "ratio",
		"1 where each query gets a parallel worker, however small it is: debug_parallel_query (force_parallel_mode before PostgreSQL 16), which is for tests, is not off; else 0. As set for the server, like the two that follow; a role or a database may have its own.",
		"SHOW force_parallel_mode")
	parallelCost  = gauge("pg_settings_parallel_setup_cost", "cost units", "What the planner reckons for starting parallel workers (parallel_setup_cost), in units in which reading a page in a row costs 1 (seq_page_cost); 1000 if nobody changed it.", "SHOW parallel_setup_cost")
	parallelBytes = gauge("pg_settings_min_parallel_table_scan_size_bytes", "bytes", "How large a table is at least that is scanned by parallel workers (min_parallel_table_scan_size); 8 MiB if nobody changed it.", "SHOW min_parallel_table_scan_size")

	activity = gauge("pg_stat_activity_count", "connections",
		"Connections of clients by state: active, idle, idle in transaction and so on. Our own is left out.", activitySQL, "state")
	maxTx = gauge("pg_stat_activity_max_tx_duration", "seconds",
		"How long the oldest transaction of a client in this state has been open.", "SELECT state, max(now() - xact_start) FROM pg_stat_activity group by 1", "state")
	waiting = gauge("plimsoll_postgres_sessions_waiting", "connections",
		"Active connections by what they wait for, as PostgreSQL names it; without a name those that run, or wait where nobody looks.", activitySQL, "wait_event_type", "wait_event")
	statement = gauge("plimsoll_postgres_statement_sessions", "connections",
		"Connections by the statement that they are in, without the values in it, and the kind of what it waits for, none where it runs; those that are idle in a transaction by their last one. What is beyond the first 30 of a server is other.",
		statementSQL, "statement", "state", "wait_event_type")
	blocked = gauge("plimsoll_postgres_sessions_blocked", "connections",
		"Connections that wait for a lock, by who holds it at the end of the chain: its state, user and application_name.", blockedSQL, "state", "usename", "application_name")
	blockedFor = gauge("plimsoll_postgres_sessions_blocked_for_statement", "connections",
		"Connections that wait for a lock, by the statement (by its shape) that who holds it at the end of the chain is in, or was in last, and its state.", blockedSQL, "statement", "state")
	longestBlocked = gauge("plimsoll_postgres_longest_blocked_seconds", "seconds", "How long the query that has waited longest for a lock has run; 0 when none waits.", blockedSQL)
	blockerAge     = gauge("plimsoll_postgres_blocker_transaction_seconds", "seconds", "How long ago the oldest transaction began for which others wait; 0 when none waits.", blockedSQL)

	snapshotAge = gauge("plimsoll_postgres_oldest_snapshot_seconds", "seconds",
		"How long ago the transaction began that has the oldest snapshot, or has changed something longest ago; what was deleted since may not be removed. Of those in the database of which the tables are read; VACUUM, CREATE INDEX and those of less than a second are left out. 0 of one that is gone.",
		snapshotSQL, "pid", "state", "usename", "application_name")
	snapshotSince = gauge("plimsoll_postgres_oldest_snapshot_transactions", "transactions",
		"How many transactions that change something have begun since then.", snapshotSQL, "pid", "state", "usename", "application_name")

	commits   = counter("pg_stat_database_xact_commit", "transactions", "Transactions that were committed. Sessions tell this and the following once a second at most.", databaseSQL, "datname")
	rollbacks = counter("pg_stat_database_xact_rollback", "transactions", "Transactions that were rolled back.", databaseSQL, "datname")
	returned  = counter("pg_stat_database_tup_returned", "rows", "Rows that were read by scans of whole tables, and entries of indexes; of both, those that were thrown away, too.", databaseSQL, "datname")
	fetched   = counter("pg_stat_database_tup_fetched", "rows", "Rows that were fetched by way of an index.", databaseSQL, "datname")
	blocksIn  = counter("pg_stat_database_blks_read", "blocks", "Blocks that were not in shared_buffers.", databaseSQL, "datname")
	blocksHit = counter("pg_stat_database_blks_hit", "blocks", "Blocks that were.", databaseSQL, "datname")
	tempBytes = counter("pg_stat_database_temp_bytes", "bytes", "Bytes that queries wrote to temporary files.", databaseSQL, "datname")
	deadlocks = counter("pg_stat_database_deadlocks", "deadlocks", "Deadlocks that were found.", databaseSQL, "datname")

	seqScans = counter("pg_stat_user_tables_seq_scan", "scans", "Scans of a whole table; of the ten tables of which most rows were read so, in the database that was busiest when it was first asked.",
		tablesSQL, "datname", "schemaname", "relname")
	seqRows = counter("pg_stat_user_tables_seq_tup_read", "rows", "Rows that these read.", tablesSQL, "datname", "schemaname", "relname")

	lookups = counter("pg_stat_user_tables_idx_scan", "lookups", "Looks into an index; of the ten tables of which most were made, in that database.",
		lookupsSQL, "datname", "schemaname", "relname")
	lookedUp       = counter("pg_stat_user_tables_idx_tup_fetch", "rows", "Rows that these fetched.", lookupsSQL, "datname", "schemaname", "relname")
	policyFunction = gauge("plimsoll_postgres_policy_volatile_function", "functions",
		"1 for each function that a table's policy of row-level security calls and that is VOLATILE, as a function is of which nothing else was said: it is called for each row. The first 20 of that database; the server's own functions are not told.",
		"SELECT polname, polrelid::regclass FROM pg_policy", "datname", "schemaname", "relname", "function")

	plannerTold = gauge("plimsoll_postgres_planner_told", "ratio",
		"What the planner is told not to do, or to do always: plan_cache_mode that is not auto, an enable_… that is off though it is delivered as on, a random_page_cost of more than twice the delivered one; with whom it is told for, as ALTER takes it (SYSTEM is the configuration's files), and as what share of the clients' connections have it so. The first 20.",
		"SELECT name, setting, boot_val, source FROM pg_settings WHERE name ~ '^enable_|^plan_cache_mode|^random_page_cost'; SELECT * FROM pg_db_role_setting", "name", "value", "standard", "whom")

	deadRows = gauge("pg_stat_user_tables_n_dead_tup", "rows", "Dead rows, as PostgreSQL estimates them; of the ten tables that have most, in that database.", deadSQL, "datname", "schemaname", "relname")
	liveRows = gauge("pg_stat_user_tables_n_live_tup", "rows", "Rows of these that live.", deadSQL, "datname", "schemaname", "relname")

	timed     = counter("pg_stat_bgwriter_checkpoints_timed_total", "checkpoints", "Checkpoints that were due (checkpoint_timeout).", "SELECT * FROM pg_stat_bgwriter")
	requested = counter("pg_stat_bgwriter_checkpoints_req_total", "checkpoints", "Checkpoints that came early, since so much was written (max_wal_size) or somebody asked for one.", "SELECT * FROM pg_stat_bgwriter")

	logBytes = counter("plimsoll_postgres_wal_bytes_total", "bytes", "Bytes that were written to the write-ahead log (since PostgreSQL 14).", "SELECT wal_bytes, wal_fpi FROM pg_stat_wal")
	logPages = counter("plimsoll_postgres_wal_full_pages_total", "pages", "Whole pages among these, of 8 KiB mostly: the first change of a page after a checkpoint puts all of it into the log (full_page_writes).", "SELECT wal_bytes, wal_fpi FROM pg_stat_wal")
	maxLog   = gauge("pg_settings_max_wal_size_bytes", "bytes", "How much log there may be before a checkpoint comes early (max_wal_size); it comes after half of that or more. Told since PostgreSQL 14.", "SHOW max_wal_size")

	logSignals      = []*model.Signal{logBytes, logPages, maxLog}
	databaseSignals = []*model.Signal{commits, rollbacks, returned, fetched, blocksIn, blocksHit, tempBytes, deadlocks}
)

func signals() []*model.Signal {
	all := []*model.Signal{up, full, maxConnections, reserved, commitDelay, commitSiblings, wroteTx, writing, forceParallel, parallelCost, parallelBytes, activity, maxTx, waiting, statement, blocked, blockedFor, longestBlocked, blockerAge, snapshotAge, snapshotSince}
	all = append(all, databaseSignals...)
	return append(all, seqScans, seqRows, lookups, lookedUp, policyFunction, plannerTold, deadRows, liveRows, timed, requested, logBytes, logPages, maxLog)
}
