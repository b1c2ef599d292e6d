package postgres

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/probe/livetest"
)

const serve = `for bin in /usr/lib/postgresql/*/bin; do PATH=$bin:$PATH; done
chmod 755 "$1/.." "$1"
install -d -o postgres -g postgres -m 755 "$1/db"
as() { exec setpriv --reuid postgres --regid postgres --init-groups "$@"; }
(as initdb --auth-local peer --username postgres --no-sync -D "$1/db" >/dev/null) || exit
as postgres -D "$1/db" -c listen_addresses= -c plan_cache_mode=force_generic_plan -c unix_socket_directories="$1/db"
`

// hostile makes whatever somebody who owns a database, and nothing else, could make to have a function of
// his called by a superuser who looks.
const hostile = `CREATE TABLE public.called (what text); CREATE ROLE mallory; GRANT ALL ON SCHEMA public TO PUBLIC; GRANT ALL ON public.called TO PUBLIC;
ALTER DATABASE postgres SET search_path = public, pg_catalog; ALTER DATABASE postgres SET enable_sort = off; ALTER ROLE postgres SET search_path = public, pg_catalog; SET ROLE mallory;
CREATE FUNCTION public.trap(text) RETURNS text LANGUAGE plpgsql AS 'BEGIN INSERT INTO public.called VALUES ($1); RETURN $1; END';
CREATE FUNCTION public.current_setting(text) RETURNS text LANGUAGE sql AS 'SELECT public.trap($1)';
CREATE FUNCTION public.pg_blocking_pids(int) RETURNS int[] LANGUAGE sql AS 'SELECT ARRAY[length(public.trap(''pids''))]';
CREATE FUNCTION public.same(text, text) RETURNS bool LANGUAGE sql AS 'SELECT public.trap($1) IS NOT NULL';
CREATE OPERATOR public.= (LEFTARG = text, RIGHTARG = text, FUNCTION = public.same);
CREATE TABLE public.pg_stat_activity (pid int, state text); CREATE VIEW public.pg_stat_database AS SELECT public.trap('view') AS datname;`

// TestAHostileDatabase asks a real server. It runs only with PLIMSOLL_POSTGRES=1, as root.
func TestAHostileDatabase(t *testing.T) {
	if os.Getenv("PLIMSOLL_POSTGRES") == "" {
		t.Skip("PLIMSOLL_POSTGRES=1 tries a real server")
	}
	s := livetest.Start(t, map[string]string{"serve.sh": serve}, "sh", "DIR/serve.sh", "DIR")
	psql := func(sql string) (string, error) {
		cmd := exec.Command("setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups", "psql", "-h", filepath.Join(s.Dir, "db"), "-AtqX", "-v", "ON_ERROR_STOP=1", "-c", sql)
		out, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	s.Until("PostgreSQL answers", func() bool { _, err := psql("SELECT 1"); return err == nil })
	if out, err := psql(hostile); err != nil {
		t.Fatal(out, err)
	}
	if out, err := psql("SELECT state FROM pg_stat_activity WHERE 'a' = 'b'"); err != nil {
		t.Logf("psql itself: %s", out)
	}
	s.Sample(All())
	s.Sees("pg_up{5432}", 1)
	s.Sees("pg_settings_max_connections{5432}", 100)
	s.Sees("plimsoll_postgres_commit_delay_seconds{5432}", 0)
	s.Sees("pg_settings_commit_siblings{5432}", 5)
	s.Sees("plimsoll_postgres_planner_told{5432,plan_cache_mode,force_generic_plan,auto,command line}", 1)
	s.Sees("plimsoll_postgres_planner_told{5432,enable_sort,off,on,DATABASE postgres}", 0) // nobody else is there
	for range 3 {
		s.Round()
	}
	called, err := psql("SELECT what FROM public.called")
	if err != nil || called != "" {
		t.Errorf("functions of somebody else were called with a superuser's rights: %s, %v", called, err)
	}
}

// TestWhoseSnapshot asks a real server while VACUUM is at work for long, and a transaction is open in another database: neither keeps
// dead rows in ours. It runs only with PLIMSOLL_POSTGRES=1, as root.
func TestWhoseSnapshot(t *testing.T) {
	if os.Getenv("PLIMSOLL_POSTGRES") == "" {
		t.Skip("PLIMSOLL_POSTGRES=1 tries a real server")
	}
	s := livetest.Start(t, map[string]string{"serve.sh": serve}, "sh", "DIR/serve.sh", "DIR")
	session := func(database string, sql ...string) *exec.Cmd {
		args := []string{"--reuid", "postgres", "--regid", "postgres", "--init-groups", "psql", "-h", filepath.Join(s.Dir, "db"), "-AtqX", "-v", "ON_ERROR_STOP=1", "-d", database}
		for _, q := range sql {
			args = append(args, "-c", q)
		}
		cmd := exec.Command("setpriv", args...)
		cmd.Dir = s.Dir // psql complains of one that it may not enter
		return cmd
	}
	ask := func(sql string) string {
		out, err := session("postgres", sql).CombinedOutput()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(out))
	}
	s.Until("PostgreSQL answers", func() bool { return ask("SELECT 1") == "1" })
	for _, sql := range []string{"CREATE TABLE t AS SELECT g FROM generate_series(1, 300000) AS g", "CREATE DATABASE other"} {
		if out, err := session("postgres", sql).CombinedOutput(); err != nil {
			t.Fatal(string(out), err)
		}
	}
	for _, cmd := range []*exec.Cmd{
		session("postgres", "SET vacuum_cost_delay = 100", "SET vacuum_cost_limit = 1", "VACUUM t"),
		session("other", "BEGIN; CREATE TABLE x (a int); SELECT pg_sleep(600)"),
	} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	}
	// The server waits for its sessions when it is ended, and they do not notice that nobody listens.
	t.Cleanup(func() {
		ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
	})
	s.Until("both have been at it for more than a second", func() bool {
		return ask("SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND coalesce(backend_xmin, backend_xid) IS NOT NULL AND xact_start < clock_timestamp() - interval '1.5 s'") == "2"
	})
	out, err := session("postgres", snapshotQuery+notIndexing+oldestOfThem).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("who keeps dead rows: %s, %v; want nobody", out, err)
	}
}
