package postgres

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

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/livetest"
)

// recorded is a connection to a server whose words were recorded; what it is asked is thrown away.
type recorded struct {
	net.Conn
	words io.Reader
}

func (r *recorded) Read(b []byte) (int, error)  { return r.words.Read(b) }
func (r *recorded) Write(b []byte) (int, error) { return len(b), nil }

func replay(t testing.TB, name string) *recorded {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return said(b)
}

func said(words []byte) *recorded {
	c, _ := net.Pipe()
	return &recorded{c, bytes.NewReader(words)}
}

// TestAnswer reads what a PostgreSQL 15 said while a transaction that idles held a row for which
// three sessions waited, two of them behind the third; it began before forty of the table's rows were deleted.
// What it says of its log, of indexes, of policies, of parallel workers and of what its planner is told was put in later, as such a server says it.
func TestAnswer(t *testing.T) {
	sets, err := newSession(replay(t, "answer-15.bin")).ask(question(150018, true, true))
	if err != nil {
		t.Fatal(err)
	}
	a, err := parse(sets, true, true)
	if err != nil {
		t.Fatal(err)
	}
	if a.longest < 3 || a.holderAge < a.longest {
		t.Errorf("the longest wait was %v s for a transaction of %v s", a.longest, a.holderAge)
	}
	want := answer{
		maxConnections: 20, reserved: 3, delays: true, delay: 0.02, siblings: 5, wrote: 728, writing: 1, forced: true, setupCost: 1000, scanBytes: 8 << 20, states: map[string]float64{"active": 3, "idle in transaction": 1},
		waits:   map[[2]string]float64{{"Lock", "transactionid"}: 1, {"Lock", "tuple"}: 2},
		blocked: map[holder]float64{{"idle in transaction", "postgres", "mails"}: 3},
		holding: map[holding]float64{{"UPDATE stock SET n = ? WHERE id = ?", "idle in transaction"}: 3},
		tables:  []counts{{[]string{"public", "stock"}, []float64{2, 200}}},
		dead:    []counts{{[]string{"public", "stock"}, []float64{40, 160}}},
		statements: map[doing]float64{
			{"UPDATE stock SET n = ? WHERE id = ?", "idle in transaction", ""}:    1,
			{"UPDATE stock SET n = n - ?, id = ? WHERE id = ?", "active", "Lock"}: 3,
		},
		lookups:  []counts{{[]string{"public", "stock"}, []float64{7, 9}}},
		policies: []counts{{[]string{"public", "stock", "public.mine()"}, nil}},
		planner: []counts{
			{[]string{"plan_cache_mode", "force_generic_plan", "auto", "SYSTEM"}, []float64{1}},
			{[]string{"enable_sort", "off", "on", `ROLE "Mails" IN DATABASE shop`}, []float64{0.75}},
		},
		log:   &walLog{bytes: 1700000, pages: 60, most: 1 << 30},
		whole: true, longest: a.longest, holderAge: a.holderAge, oldest: a.oldest, oldestSnapshot: a.oldestSnapshot, databases: a.databases,
	}
	if diff := cmp.Diff(want, a, cmp.AllowUnexported(answer{}, holder{}, holding{}, counts{}, snapshot{}, owner{}, doing{}, walLog{})); diff != "" {
		t.Error(diff)
	}
	if o := a.oldestSnapshot; o.of != (owner{o.of.pid, "idle in transaction", "postgres", "mails"}) || o.seconds < a.longest || o.transactions < 2 {
		t.Errorf("the oldest snapshot is that of %+v", o)
	}
	if len(a.databases) != 3 || a.databases[1].names[0] != "postgres" || a.databases[1].values[0] != 15 {
		t.Errorf("databases are %v", a.databases)
	}
}

// A server is asked for no view that it has not: one that is missing takes the whole answer.
func TestWhatAnOldServerHasNot(t *testing.T) {
	for version, want := range map[int]bool{110022: false, 120000: true, 170000: true} {
		if got := strings.Contains(question(version, true, true), "pg_stat_progress_create_index"); got != want {
			t.Errorf("a PostgreSQL of version %d is asked who creates an index: %v, want %v", version, got, want)
		}
	}
}

// A server that is too old to tell of its log tells of its checkpoints all the same.
func TestAnOldServersLog(t *testing.T) {
	for version, want := range map[int]bool{130010: false, 140000: true, 170000: true} {
		if got := strings.Contains(question(version, true, false), "pg_stat_wal"); got != want {
			t.Errorf("a PostgreSQL of version %d is asked for its log: %v, want %v", version, got, want)
		}
	}
	var a answer
	if err := a.checkpoints(rows{{"3", "9", "", "", ""}}); err != nil || a.requested != 9 || a.log != nil {
		t.Fatalf("of an old server: %+v, %v", a, err)
	}
	k := newAsker(nil, host.Proc{})
	k.answer = a
	rec := livetest.NewRecord()
	k.putCounters(probe.NewOut(rec, "db", time.Unix(0, 0), time.Second))
	if st := rec.States[logBytes.Name]; st.State == model.Read {
		t.Errorf("its log is %v", st)
	}
}

// Statements whose texts cannot be told take nothing else with them.
func TestTextsThatCannotBeTold(t *testing.T) {
	a := newAsker(nil, host.Proc{})
	a.refuseTexts(fmt.Errorf("ask: %w", &answerError{code: badText}))
	rec := livetest.NewRecord()
	a.putSessions(probe.NewOut(rec, "web", time.Unix(0, 0), time.Second))
	if st := rec.States[statement.Name]; a.noTexts == nil || st.State == model.Read {
		t.Errorf("statements are %v", st)
	}
	if _, err := parse([]rows{{{"20", "3", "0", "0", "5", "761", "3", "off", "1000", "8388608"}}, {}, {}, {}}, false, false); err != nil {
		t.Errorf("an answer without them: %v", err)
	}
}

// A commit_delay that does not hold for everyone, or that there is none of, is not 0.
func TestNoCommitDelay(t *testing.T) {
	a, err := parse([]rows{{{"20", "3", "0", "", "5", "761", "3", "off", "1000", "8388608"}}, {}, {}, {}}, false, false)
	if err != nil || a.delays {
		t.Fatalf("a delay that is not told: %+v, %v", a, err)
	}
	k := newAsker(nil, host.Proc{})
	k.answer = a
	rec := livetest.NewRecord()
	k.put(probe.NewOut(rec, "db", time.Unix(0, 0), time.Second))
	if st := rec.States[commitDelay.Name]; st.State == model.Read {
		t.Errorf("commit_delay is %v", st)
	}
}

// What is beyond the bound is told as one, and what is gone as nothing.
func TestManyStatements(t *testing.T) {
	rec, a := livetest.NewRecord(), newAsker(nil, host.Proc{})
	many := map[doing]float64{}
	for i := range maxStatements + 10 {
		many[doing{fmt.Sprint("SELECT a", i), "active", ""}] = 2
	}
	for i, now := range []map[doing]float64{many, {}} {
		a.answer.statements = now
		a.putSessions(probe.NewOut(rec, "web", time.Unix(int64(i), 0), time.Second))
		sum := 0.0
		for _, v := range rec.Values {
			sum += v
		}
		if want := float64(2 * len(now)); sum != want || len(rec.Values) != maxStatements+1 {
			t.Errorf("%d statements of 2 connections each are told as %d series, together %v, want %d and %v", len(now), len(rec.Values), sum, maxStatements+1, want)
		}
	}
}

// A transaction that had the oldest snapshot and is gone is told as nothing, and one that still has it only once.
func TestSnapshotThatIsGone(t *testing.T) {
	mails, report := owner{"7", "active", "app", "mails"}, owner{"9", "idle in transaction", "app", "report"}
	rec, a := livetest.NewRecord(), &asker{port: "5432"}
	const of = "plimsoll_postgres_oldest_snapshot_seconds{5432,"
	for i, step := range []struct {
		now  snapshot
		want map[string]float64
	}{
		{snapshot{}, map[string]float64{}},
		{snapshot{mails, 3, 10}, map[string]float64{of + "7,active,app,mails}": 3}},
		{snapshot{mails, 4, 12}, map[string]float64{of + "7,active,app,mails}": 4}},
		{snapshot{report, 2, 5}, map[string]float64{of + "7,active,app,mails}": 0, of + "9,idle in transaction,app,report}": 2}},
		{snapshot{}, map[string]float64{of + "7,active,app,mails}": 0, of + "9,idle in transaction,app,report}": 0}},
	} {
		a.answer.oldestSnapshot = step.now
		a.putSnapshot(probe.NewOut(rec, "web", time.Unix(int64(i), 0), time.Second))
		got := map[string]float64{}
		for series, v := range rec.Values {
			if strings.HasPrefix(series, of) {
				got[series] = v
			}
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("step %d: %s", i, diff)
		}
	}
}

func TestLogin(t *testing.T) {
	s, err := login(replay(t, "login-15.bin"), "postgres", "postgres")
	if err != nil || s.version != 150018 {
		t.Errorf("let in: %+v, %v", s, err)
	}
	_, err = login(replay(t, "refused-15.bin"), "nobody", "postgres")
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), `Peer authentication failed for user "nobody" (28000)`) {
		t.Errorf("refused: %v", err)
	}
	// AuthenticationCleartextPassword
	_, err = login(said([]byte("R\x00\x00\x00\x08\x00\x00\x00\x03")), "postgres", "postgres")
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "pg_hba.conf") {
		t.Errorf("asked for a password: %v", err)
	}
}

func TestTheEndOfAChain(t *testing.T) {
	before := map[string][]string{"3": {"2"}, "2": {"1", "4"}, "4": {"1"}, "5": {"6"}, "6": {"5"}}
	for pid, want := range map[string]string{"3": "1", "2": "1", "4": "1", "1": "1"} {
		if got := chainEnd(pid, before); got != want {
			t.Errorf("chain of %s ends at %s, want %s", pid, got, want)
		}
	}
	chainEnd("5", before) // a circle, as in a deadlock, ends
}

func TestListening(t *testing.T) {
	const table = `Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 10 /run/other
0000000000000000: 00000002 00000000 00010000 0001 01 11 /run/postgresql/.s.PGSQL.5433
0000000000000000: 00000003 00000000 00000000 0001 03 12 /run/postgresql/.s.PGSQL.5432
0000000000000000: 00000002 00000000 00010000 0001 01 13 /run/postgresql/.s.PGSQL.5432
0000000000000000: 00000002 00000000 00010000 0001 01 14 @.s.PGSQL.5432
`
	for inode, want := range map[string]string{"13": "/run/postgresql/.s.PGSQL.5432", "11": "/run/postgresql/.s.PGSQL.5433", "12": "", "10": "", "14": "", "99": ""} {
		if got := listening([]byte(table), map[string]bool{inode: true}); got != want {
			t.Errorf("of inode %s: %q, want %q", inode, got, want)
		}
	}
}

func TestMasters(t *testing.T) {
	got := masters([]host.Proc{
		{PID: 1, Comm: "init", Args: []string{"init"}}, {PID: 10, PPID: 1, Comm: "postgres", Args: []string{"postgres", "-D", "/x"}},
		{PID: 11, PPID: 10, Comm: "postgres", Args: []string{"postgres: checkpointer "}}, {PID: 12, PPID: 1, Comm: "psql", Args: []string{"psql"}},
	})
	if len(got) != 1 || got[0].PID != 10 {
		t.Errorf("masters are %v", got)
	}
}

func FuzzAnswer(f *testing.F) {
	for _, name := range []string{"answer-15.bin", "login-15.bin", "refused-15.bin"} {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		sets, err := newSession(said(b)).ask("SELECT 1")
		if err != nil {
			return
		}
		if a, err := parse(sets, len(sets) > 5, len(sets)%2 == 1); err == nil && a.blocked == nil {
			t.Error("an answer without its locks")
		}
	})
}

func FuzzListening(f *testing.F) {
	f.Add([]byte("0: 00000002 00000000 00010000 0001 01 13 /run/postgresql/.s.PGSQL.5432\n"))
	f.Fuzz(func(t *testing.T, table []byte) {
		name := listening(table, map[string]bool{"13": true})
		if name != "" && !strings.Contains(name, "/"+socketPrefix) {
			t.Errorf("%q is no socket of PostgreSQL", name)
		}
	})
}

// Answers that come between rounds keep nobody from asking in each; what counts up is kept of two that come in one.
func TestLateAnswers(t *testing.T) {
	a := &asker{reply: make(chan reply, 1)}
	a.reply <- reply{answer: answer{whole: true, timed: 3}}
	a.collect(time.Time{})
	if a.reply != nil || !a.fresh || a.answer.timed != 3 {
		t.Fatalf("not taken: %+v", a)
	}
	a.reply = make(chan reply, 1)
	a.collect(time.Time{})
	if a.reply == nil {
		t.Error("taken before it came")
	}
	a.reply <- reply{answer: answer{maxConnections: 7}}
	a.collect(time.Now().Add(time.Second))
	if !a.answer.whole || a.answer.timed != 3 || a.answer.maxConnections != 7 {
		t.Errorf("%+v", a.answer)
	}
}

// All is asked as often as the server's time allows: once a second of one that answers at once, every five of a slow one.
func TestHowOftenAllIsAsked(t *testing.T) {
	const us = time.Microsecond
	for _, c := range []struct {
		sessions, all, want time.Duration
	}{
		{0, 0, 5 * time.Second},
		{300 * us, 0, 5 * time.Second},
		{300 * us, 800 * us, time.Second},
		{500 * us, 1600 * us, 2200 * time.Millisecond},
		{900 * us, 1600 * us, 1400 * time.Millisecond},
		{900 * us, 4000 * us, 5 * time.Second},
	} {
		k := costs{c.sessions, c.all}
		if got := k.every(); got.Round(time.Millisecond) != c.want {
			t.Errorf("%v, %v: every %v, want %v", c.sessions, c.all, got, c.want)
		}
	}
	var k costs
	k.took(300*us, false)
	for range 20 { // a server that answers late now and then
		k.took(40*time.Millisecond, true)
		k.took(700*us, true)
	}
	if k.every() != time.Second {
		t.Errorf("late answers now and then: every %v, want 1 s", k.every())
	}
	for range 30 {
		k.took(40*time.Millisecond, true)
	}
	if k.every() != wholeSeldom {
		t.Errorf("all answers late: every %v, want 5 s", k.every())
	}
}
