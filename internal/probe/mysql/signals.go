package mysql

import "plimsoll/internal/model"

func signal(kind model.Kind, name, unit, help, sql string, labels ...string) *model.Signal {
	return &model.Signal{Name: name, Kind: kind, Unit: unit, Help: help, Labels: append([]string{"listen"}, labels...),
		Source: "MariaDB or MySQL, asked over its own Unix socket without a password", ByHand: `sudo mariadb -e "` + sql + `"`}
}

func gauge(name, unit, help, sql string, labels ...string) *model.Signal {
	return signal(model.Gauge, name, unit, help, sql, labels...)
}

const (
	sessionsSQL     = "SELECT COMMAND, STATE, COUNT(*) FROM information_schema.PROCESSLIST group by 1, 2"
	locksSQL        = "SELECT ID, STATE, TIME FROM information_schema.PROCESSLIST WHERE STATE LIKE '%lock%'"
	statementsSQL   = "SELECT INFO, STATE, COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND IN ('Query', 'Execute') group by 1, 2"
	transactionsSQL = "SELECT trx_state, trx_started, trx_mysql_thread_id FROM information_schema.INNODB_TRX"
)

// Named as mysqld_exporter (prometheus) names them, where it has them. The label listen is the server's first
// address of TCP, else its Unix socket; it is asked at the latter.
var (
	up   = gauge("mysql_up", "ratio", "1 when the server answered, 0 when it did not.", "SELECT 1")
	full = gauge("plimsoll_mysql_full", "ratio", "1 when the server refused even us, since all its connections were in use; 0 when it let us in.", "SELECT 1")

	maxConnections = gauge("mysql_global_variables_max_connections", "connections",
		"The most connections that the server takes (max_connections); one more is kept for an administrator.", "SELECT @@GLOBAL.max_connections")
	tempInMemory = gauge("plimsoll_mysql_temporary_table_max_bytes", "bytes",
		"How large a temporary table of a query may become in memory: tmp_table_size or max_heap_table_size, whichever is smaller.", "SELECT @@GLOBAL.tmp_table_size, @@GLOBAL.max_heap_table_size")
	waitTimeout = gauge("mysql_global_variables_wait_timeout", "seconds",
		"How long a connection may be idle before the server closes it (wait_timeout), as it is for those that are made now and ask for no other.", "SELECT @@GLOBAL.wait_timeout")
	tableCache = gauge("mysql_global_variables_table_open_cache", "tables",
		"How many tables the server keeps open for those that ask for them next (table_open_cache), one for each session that is in it.", "SELECT @@GLOBAL.table_open_cache")
	slowAfter = gauge("mysql_global_variables_long_query_time", "seconds",
		"How long a statement takes at least that counts as slow (long_query_time); with 0 each one does.", "SELECT @@GLOBAL.long_query_time")
	logOn = gauge("plimsoll_mysql_log_on", "ratio",
		"1 where a log of statements is written to a table, or to a file: the general log, which has each statement, and the slow log (log_output says which of the two, for both logs); else 0.",
		"SELECT @@GLOBAL.general_log, @@GLOBAL.slow_query_log, @@GLOBAL.log_output", "log", "to")
	processes = gauge("mysql_info_schema_processlist_threads", "connections",
		"Sessions by command and state, as the server names them, in small letters. Our own is left out.", sessionsSQL, "command", "state")
	waiting = gauge("plimsoll_mysql_sessions_waiting", "connections",
		"Sessions that wait for a lock, by its kind: metadata (of a table that somebody changes or has open), table, row (of InnoDB), global (all tables: backup, FLUSH TABLES WITH READ LOCK), user (GET_LOCK).", locksSQL, "lock")
	statement = gauge("plimsoll_mysql_statement_sessions", "connections",
		"Sessions by the statement that they are in, without the values in it, and the kind of lock of a table that they wait for, if any. What is beyond the first 30 of a server is other.", statementsSQL, "statement", "lock")
	longestWait = gauge("plimsoll_mysql_longest_wait_seconds", "seconds",
		"How long the query that has waited longest for a lock has run; of a row, how long it waited. 0 when none waits. In whole seconds for rows, and all by a MySQL.", locksSQL)
	longestQuery = gauge("plimsoll_mysql_longest_query_seconds", "seconds",
		"How long the query that has run longest of those that wait for no lock of a table has run; 0 when there is none. In whole seconds by a MySQL.", sessionsSQL)
	oldest = gauge("plimsoll_mysql_oldest_transaction_seconds", "seconds",
		"How long ago the oldest transaction of InnoDB began that is open and waits for no lock, by whether it is idle in transaction or active, and whose it is; 0 when there is none any more. In whole seconds.", transactionsSQL, "state", "user")
)

// count is a signal that is one variable of SHOW GLOBAL STATUS.
type count struct {
	variable string
	labels   []string
	signal   *model.Signal
}

var (
	handlers = status(model.Counter, "handlers_total", "calls",
		"Calls of a storage engine: read_rnd_next is a row that was read in a scan of a whole table, read_key one that was looked up, read_next the next one in an index.", "Handler_read%", "handler")
	refused   = status(model.Counter, "connection_errors_total", "connections", "Connections that failed, by why; max_connections is those that it refused before they said who they are, since it had one more than it takes; others of them it refuses later, see aborted_connects.", "Connection_errors%", "error")
	poolPages = status(model.Gauge, "buffer_pool_pages", "pages", "Pages of InnoDB's buffer pool, by what is in them; total is all of it.", "Innodb_buffer_pool_pages%", "state")

	counts = []count{
		{"threads_connected", nil, status(model.Gauge, "threads_connected", "connections", "Sessions that are connected, ours among them.", "Threads_connected")},
		{"threads_running", nil, status(model.Gauge, "threads_running", "connections", "Sessions that are not idle, ours among them.", "Threads_running")},
		{"threads_created", nil, status(model.Counter, "threads_created", "threads", "Threads that were made for connections.", "Threads_created")},
		{"max_used_connections", nil, status(model.Gauge, "max_used_connections", "connections", "The most sessions that were ever connected at once.", "Max_used_connections")},
		{"connections", nil, status(model.Counter, "connections", "connections", "Connections that were tried, those that were not let in among them.", "Connections")},
		{"aborted_connects", nil, status(model.Counter, "aborted_connects", "connections", "Connections that were not let in, for whatever reason: no place, a wrong password.", "Aborted_connects")},
		{"aborted_clients", nil, status(model.Counter, "aborted_clients", "connections", "Connections that ended without a farewell: the server closed them (idle for wait_timeout, killed, a packet that was too large), or the client was gone.", "Aborted_clients")},
		{"connection_errors_max_connections", []string{"max_connections"}, refused},
		{"connection_errors_internal", []string{"internal"}, refused},
		{"queries", nil, status(model.Counter, "queries", "queries", "Statements that were done, those within procedures among them; five or so a second are ours.", "Queries")},
		{"questions", nil, status(model.Counter, "questions", "queries", "Statements that clients sent; five or so a second are ours.", "Questions")},
		{"slow_queries", nil, status(model.Counter, "slow_queries", "queries", "Those that took longer than long_query_time.", "Slow_queries")},
		{"created_tmp_tables", nil, status(model.Counter, "created_tmp_tables", "tables", "Temporary tables that were made for queries, in memory or on the disk; some a second are ours.", "Created_tmp%tables")},
		{"created_tmp_disk_tables", nil, status(model.Counter, "created_tmp_disk_tables", "tables", "Of these, those that were made on the disk, or went on there.", "Created_tmp%tables")},
		{"select_scan", nil, status(model.Counter, "select_scan", "queries", "Joins whose first table was read as a whole; our own questions are some of them.", "Select_scan")},
		{"sort_scan", nil, status(model.Counter, "sort_scan", "sorts", "Sorts of what was read in a scan of a whole table; some of our own questions may be among them.", "Sort%")},
		{"sort_range", nil, status(model.Counter, "sort_range", "sorts", "Sorts of what was read by way of an index.", "Sort%")},
		{"sort_rows", nil, status(model.Counter, "sort_rows", "rows", "Rows that sorts gave back; of a statement with a LIMIT no more than that, however many were sorted.", "Sort%")},
		{"sort_merge_passes", nil, status(model.Counter, "sort_merge_passes", "passes", "How often parts of a sort that had no room in sort_buffer_size were merged from files.", "Sort%")},
		{"handler_read_rnd_next", []string{"read_rnd_next"}, handlers},
		{"handler_read_next", []string{"read_next"}, handlers},
		{"handler_read_prev", []string{"read_prev"}, handlers},
		{"handler_read_key", []string{"read_key"}, handlers},
		{"handler_read_first", []string{"read_first"}, handlers},
		{"handler_read_rnd", []string{"read_rnd"}, handlers},
		{"innodb_row_lock_waits", nil, status(model.Counter, "innodb_row_lock_waits", "waits", "How often a transaction had to wait for the lock of a row.", "Innodb_row_lock%")},
		{"innodb_row_lock_time", nil, status(model.Counter, "innodb_row_lock_time", "milliseconds", "How long they waited for it, together.", "Innodb_row_lock%")},
		{"innodb_row_lock_current_waits", nil, status(model.Gauge, "innodb_row_lock_current_waits", "connections", "Transactions that wait for the lock of a row now.", "Innodb_row_lock%")},
		{"innodb_deadlocks", nil, status(model.Counter, "innodb_deadlocks", "deadlocks", "Deadlocks that were found (MariaDB).", "Innodb_deadlocks")},
		{"open_tables", nil, status(model.Gauge, "open_tables", "tables", "Tables that are kept open, each as often as sessions had it open at once.", "Open_tables")},
		{"opened_tables", nil, status(model.Counter, "opened_tables", "tables", "Tables that were opened, since none that was open and free was kept.", "Opened_tables")},
		{"table_open_cache_overflows", nil, status(model.Counter, "table_open_cache_overflows", "tables", "Tables that were closed to keep another one open, since table_open_cache are all that are kept.", "Table_open_cache_overflows")},
		{"table_locks_waited", nil, status(model.Counter, "table_locks_waited", "waits", "How often the lock of a whole table had to be waited for.", "Table_locks%")},
		{"innodb_buffer_pool_read_requests", nil, status(model.Counter, "innodb_buffer_pool_read_requests", "pages", "Pages that were asked for.", "Innodb_buffer_pool_read%")},
		{"innodb_buffer_pool_reads", nil, status(model.Counter, "innodb_buffer_pool_reads", "pages", "Of these, those that had to be read from the disk.", "Innodb_buffer_pool_read%")},
		{"innodb_buffer_pool_pages_total", []string{"total"}, poolPages},
		{"innodb_buffer_pool_pages_data", []string{"data"}, poolPages},
		{"innodb_buffer_pool_pages_free", []string{"free"}, poolPages},
		{"innodb_page_size", nil, status(model.Gauge, "innodb_page_size", "bytes", "Bytes of a page.", "Innodb_page_size")},
	}
)

func status(kind model.Kind, name, unit, help, like string, labels ...string) *model.Signal {
	return signal(kind, "mysql_global_status_"+name, unit, help, "SHOW GLOBAL STATUS LIKE '"+like+"'", labels...)
}

// wanted are the variables that are asked for.
func wanted() (list []string) {
	for _, c := range counts {
		list = append(list, c.variable)
	}
	return list
}

func signals() []*model.Signal {
	all := []*model.Signal{up, full, maxConnections, tempInMemory, waitTimeout, tableCache, slowAfter, logOn, processes, waiting, statement, longestWait, longestQuery, oldest}
	for _, c := range counts {
		if all[len(all)-1] != c.signal {
			all = append(all, c.signal)
		}
	}
	return all
}
