package mysql

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/host/asuser"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/asker"
	"plimsoll/internal/probe/livetest"
)

// recorded is a connection to a server whose words were recorded; what it is asked is kept.
type recorded struct {
	net.Conn
	words io.Reader
	asked bytes.Buffer
}

func (r *recorded) Read(b []byte) (int, error)  { return r.words.Read(b) }
func (r *recorded) Write(b []byte) (int, error) { return r.asked.Write(b) }
func (r *recorded) SetDeadline(time.Time) error { return nil }
func (r *recorded) Close() error                { return nil }
func said(words []byte) *recorded               { return &recorded{words: bytes.NewReader(words)} }
func asking(words []byte, maria bool) *session  { return &session{Conn: said(words), maria: maria} }
func packet(seq byte, text string) string       { return string([]byte{byte(len(text)), 0, 0, seq}) + text }
func file(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// TestAnswer reads what a MariaDB 10.11 said while a transaction idled that had read one table and changed a row of
// another: an ALTER TABLE and a SELECT waited for the one, two UPDATEs for the other, and an UPDATE for a table of MyISAM.
// What it says of tables that are kept open, and of its logs, was put in later, as such a server says it.
func TestAnswer(t *testing.T) {
	a, err := ask(asking(file(t, "answer-10.11.bin"), true))
	if err != nil {
		t.Fatal(err)
	}
	rec := livetest.NewRecord()
	newPut()(probe.NewOut(rec, "web", time.Unix(1, 0), time.Second), "unix:/db", a)
	want := map[string]float64{
		"mysql_global_variables_max_connections{unix:/db}":                                              10,
		"plimsoll_mysql_temporary_table_max_bytes{unix:/db}":                                            16777216,
		"mysql_global_variables_wait_timeout{unix:/db}":                                                 28800,
		"mysql_global_variables_table_open_cache{unix:/db}":                                             2000,
		"mysql_global_variables_long_query_time{unix:/db}":                                              10,
		"plimsoll_mysql_log_on{unix:/db,general,table}":                                                 1,
		"plimsoll_mysql_log_on{unix:/db,general,file}":                                                  1,
		"plimsoll_mysql_log_on{unix:/db,slow,table}":                                                    0,
		"plimsoll_mysql_log_on{unix:/db,slow,file}":                                                     0,
		"mysql_global_status_open_tables{unix:/db}":                                                     28,
		"mysql_global_status_opened_tables{unix:/db}":                                                   35,
		"mysql_global_status_table_open_cache_overflows{unix:/db}":                                      0,
		"mysql_global_status_threads_connected{unix:/db}":                                               8,
		"mysql_global_status_threads_running{unix:/db}":                                                 7,
		"mysql_global_status_connection_errors_total{unix:/db,max_connections}":                         0,
		"mysql_global_status_handlers_total{unix:/db,read_rnd_next}":                                    22,
		"mysql_global_status_innodb_row_lock_current_waits{unix:/db}":                                   2,
		"mysql_info_schema_processlist_threads{unix:/db,sleep,}":                                        1,
		"mysql_info_schema_processlist_threads{unix:/db,query,updating}":                                2,
		"plimsoll_mysql_sessions_waiting{unix:/db,metadata}":                                            2,
		"plimsoll_mysql_sessions_waiting{unix:/db,row}":                                                 2,
		"plimsoll_mysql_sessions_waiting{unix:/db,table}":                                               1,
		"plimsoll_mysql_sessions_waiting{unix:/db,global}":                                              0,
		"plimsoll_mysql_statement_sessions{unix:/db,UPDATE shop.kept SET n = n - ? WHERE id = ?,}":      2,
		"plimsoll_mysql_statement_sessions{unix:/db,SELECT id, ? FROM shop.stock WHERE n = ?,metadata}": 1,
		"plimsoll_mysql_statement_sessions{unix:/db,UPDATE shop.old SET n = ?,table}":                   1,
		"plimsoll_mysql_longest_wait_seconds{unix:/db}":                                                 3.024714,
		"plimsoll_mysql_longest_query_seconds{unix:/db}":                                                2.506807,
		"plimsoll_mysql_oldest_transaction_seconds{unix:/db,idle in transaction,job}":                   4,
	}
	got := map[string]float64{}
	for series := range want {
		if v, ok := rec.Values[series]; ok {
			got[series] = v
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What there was is told as nothing once it is gone; and of many kinds only so many.
func TestWhatIsGoneIsNothing(t *testing.T) {
	rec, put := livetest.NewRecord(), newPut()
	one := answer{oldest: map[open]float64{{"active", "app"}: 3}, threads: map[thread]float64{{"query", "x"}: 2}}
	put(probe.NewOut(rec, "web", time.Unix(1, 0), time.Second), "x", one)
	many := answer{threads: map[thread]float64{}}
	for i := range 3 * maxKinds {
		many.threads[thread{"query", fmt.Sprint(i)}] = 1
	}
	put(probe.NewOut(rec, "web", time.Unix(2, 0), time.Second), "x", many)
	for _, series := range []string{"plimsoll_mysql_oldest_transaction_seconds{x,active,app}", "mysql_info_schema_processlist_threads{x,query,x}"} {
		if v, ok := rec.Values[series]; !ok || v != 0 {
			t.Errorf("%s is %v, %v; want 0", series, v, ok)
		}
	}
	n := 0
	for series := range rec.Values {
		if strings.HasPrefix(series, "mysql_info_schema_processlist_threads{") {
			n++
		}
	}
	if n != maxKinds {
		t.Errorf("%d states are told, want %d", n, maxKinds)
	}
}

func TestLocks(t *testing.T) {
	for state, want := range map[string]string{
		"Waiting for table metadata lock": "metadata", "Waiting for schema metadata lock": "metadata", "Waiting for table level lock": "table",
		"Waiting for backup lock": "global", "Waiting for global read lock": "global", "Waiting for table flush": "global", "User lock": "user",
		"Sending data": "", "Updating": "", "": "", "System lock": "", "User sleep": "",
	} {
		if got := lockOf(clean(state)); got != want {
			t.Errorf("%q is %q, want %q", state, got, want)
		}
	}
	a, err := parse([]rows{{{"10", "1024", "2048", "28800", "2000", "0", "1", "0.5", "FILE"}}, {{"Threads_connected", "1"}}, {
		{"Query", "Waiting for table metadata lock", "2", "3.5"}, {"Slave_SQL", "Waiting for table metadata lock", "1", "900"}, {"Sleep", "", "1", "800"}}, {}})
	if err != nil || a.waits["metadata"] != 2 || a.longestWait != 3.5 || a.longestQuery != 0 {
		t.Errorf("a replica's thread and who idles are no sessions that wait: %+v, %v", a, err)
	}
	if a.slowAfter != 0.5 || !a.logs[logTo{"slow", "file"}] || a.logs[logTo{"slow", "table"}] || a.logs[logTo{"general", "file"}] {
		t.Errorf("the logs are %v", a.logs)
	}
}

func TestLogin(t *testing.T) {
	s, err := login(said(file(t, "login-10.11.bin")), "root")
	if err != nil || !s.maria {
		t.Fatalf("let in: %+v, %v", s, err)
	}
	asked := s.Conn.(*recorded).asked.String()
	if !strings.Contains(asked, "root\x00\x00mysql_native_password\x00") || !strings.Contains(asked, "TRANSACTION READ ONLY") {
		t.Errorf("it asked %q", asked)
	}
	if b := asked[4:8]; b[0]&0x80 != 0 || b[2]&0x05 != 0 { // LOCAL_FILES; MULTI_STATEMENTS and PS_MULTI_RESULTS
		t.Errorf("it offers %x", b)
	}
	_, err = login(said(file(t, "denied-10.11.bin")), "nobody")
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "Access denied for user 'nobody'@'localhost' (using password: NO) (error 1045)") {
		t.Errorf("denied: %v", err)
	}
}

// A server that says that it had closed the session is asked again; one whose words end does, too.
func TestClosedSession(t *testing.T) {
	for code, want := range map[int]error{4031: asker.ErrClosed, 1927: asker.ErrClosed, 1040: asker.ErrFull, 1045: fs.ErrPermission} {
		words := packet(0, string([]byte{isError, byte(code), byte(code >> 8)})+"#HY000so it is")
		if _, err := asking([]byte(words), true).query("SELECT 1"); !errors.Is(err, want) || errors.Is(err, asker.ErrClosed) != (want == asker.ErrClosed) {
			t.Errorf("error %d: %v, want %v", code, err, want)
		}
	}
	if _, err := asking(nil, true).query("SELECT 1"); !errors.Is(err, io.EOF) {
		t.Errorf("nothing was said: %v", err)
	}
}

// However a server asks for a proof, it gets nothing.
func TestNothingIsProven(t *testing.T) {
	greeting := file(t, "login-10.11.bin")[:104]
	for answer, want := range map[string]error{
		packet(2, "\xfeunix_socket\x00"):                      io.EOF, // it is answered, and then goes on
		packet(2, "\xfecaching_sha2_password\x00salt"):        io.EOF,
		packet(2, "\xfemysql_clear_password\x00"):             fs.ErrPermission,
		packet(2, "\xfedialog\x00\x04Password:"):              fs.ErrPermission,
		packet(2, "\x01\x04"):                                 fs.ErrPermission,
		packet(2, "\xfe"):                                     fs.ErrPermission,
		packet(2, "\xff\x10\x04#08004Too many connections"):   asker.ErrFull,
		packet(2, "\xff\xa2\x06#28000Access denied for user"): fs.ErrPermission,
		packet(2, "\xff"):                                     nil,
		strings.Repeat(packet(2, "\xfeunix_socket\x00"), 9):   fs.ErrPermission,
	} {
		c := said(append(bytes.Clone(greeting), answer...))
		_, err := login(c, "root")
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%.40q: %v, want %v", answer, err, want)
		}
		sent := c.asked.Bytes()
		for sent = sent[4+int(sent[0]):]; len(sent) > 0; sent = sent[4:] {
			if sent[0] != 0 {
				t.Errorf("%.40q: it was sent %q", answer, sent)
				break
			}
		}
	}
}

func TestFullBeforeTheGreeting(t *testing.T) {
	if _, err := login(said([]byte(packet(0, "\xff\x10\x04Too many connections"))), "root"); !errors.Is(err, asker.ErrFull) {
		t.Errorf("%v, want full", err)
	}
}

// A server that asks for a file gets none, and nothing else that is no table.
func TestQueryRefuses(t *testing.T) {
	column, end := packet(2, "def"), packet(3, "\xfe\x00\x00\x02\x00")
	one := packet(1, "\x01") + column + end
	for words, want := range map[string]string{
		packet(1, "\xfb/etc/shadow"):                        "asks for a file",
		packet(1, "\x11"):                                   "17 columns",
		packet(1, "\xfc"):                                   "columns",
		packet(1, "\x01") + end:                             "another packet came",
		packet(1, "\x01") + column + column:                 "another packet came",
		one + packet(4, "\x05abc"):                          "longer than it says",
		one + packet(4, "\x01ab"):                           "more than 1 columns",
		one + packet(4, "\xfd\xff\xff\xff"):                 "longer than it says",
		one:                                                 "EOF",
		"\xff\xff\xff\x01":                                  "16777215 bytes",
		"\x00\x00\x00\x01":                                  "0 bytes",
		packet(1, "\xff\xcb\x04#42000 denied"):              "denied",
		one + packet(4, "\xff\xcb\x04#42000access"):         "access",
		one + strings.Repeat(packet(4, "\x01a"), maxRows+1): "more than 4000 rows",
		one + strings.Repeat(packet(4, "\xc8"+strings.Repeat("a", 200)), maxRows): "no more than 524288",
	} {
		s := asking([]byte(words), true)
		_, err := s.query("SELECT 1")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", words, err, want)
		}
		if asked := s.Conn.(*recorded).asked.String(); asked != packet(0, "\x03SELECT 1") {
			t.Errorf("%.40q: it was sent %q", words, asked)
		}
	}
	got, err := asking([]byte(one+packet(4, "\x02ab")+packet(5, "\xfb")+end), true).query("SELECT 1")
	if diff := cmp.Diff(rows{{"ab"}, {""}}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// As root it is root first; the server's own user comes after, and alone where we are not root.
func TestAccounts(t *testing.T) {
	got := accounts(asuser.Owner{UID: 104, GID: 110, Name: "mysql"})
	if len(got) == 0 || got[len(got)-1].Name != "mysql" || (os.Geteuid() == 0) != (len(got) == 2 && got[0].Name == "root") {
		t.Errorf("accounts are %v", got)
	}
	if got := accounts(asuser.Owner{}); len(got) != 1 && os.Geteuid() == 0 {
		t.Errorf("for root's own server accounts are %v", got)
	}
}

func TestNone(t *testing.T) { livetest.CheckNone(t, All()) }

func FuzzAnswer(f *testing.F) {
	for _, name := range []string{"answer-10.11.bin", "login-10.11.bin", "denied-10.11.bin"} {
		f.Add(file(f, name))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := ask(asking(b, true))
		if err == nil {
			rec := livetest.NewRecord()
			newPut()(probe.NewOut(rec, "web", time.Unix(1, 0), time.Second), "x", a)
			for series := range rec.Values {
				if strings.ContainsAny(series, "\x1b\n\"\\$`") {
					t.Errorf("%q", series)
				}
			}
		}
	})
}

func FuzzLogin(f *testing.F) {
	for _, name := range []string{"login-10.11.bin", "denied-10.11.bin"} {
		f.Add(file(f, name))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := login(said(b), "root")
		if (s == nil) != (err != nil) {
			t.Errorf("%v, %v", s, err)
		}
	})
}
