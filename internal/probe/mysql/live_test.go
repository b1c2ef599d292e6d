package mysql

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/model"
	"plimsoll/internal/probe/livetest"
)

const serve = `set -e
chmod 755 "$1/.." "$1"
install -d -o mysql -g mysql -m 700 "$1/db"
mariadb-install-db --no-defaults --user=mysql --datadir="$1/db" --auth-root-authentication-method=socket --skip-test-db >/dev/null
printf '%s\n' "$2" >"$1/init.sql"
chmod 644 "$1/init.sql"
exec mariadbd --no-defaults --user=mysql --datadir="$1/db" --skip-networking --socket="$1/db/m.sock" --max-connections=10 --init-file="$1/init.sql"
`

// start makes a MariaDB as Debian does, and changes its accounts. Making one takes some ten seconds, so that it is tried on request.
func start(t *testing.T, sql string) *livetest.Service {
	t.Helper()
	if os.Getenv("PLIMSOLL_MARIADB") == "" {
		t.Skip("PLIMSOLL_MARIADB=1 tries a real server")
	}
	s := livetest.Start(t, map[string]string{"serve.sh": serve}, "sh", "DIR/serve.sh", "DIR", sql)
	s.Until("MariaDB answers", func() bool {
		return client(s, "SELECT 1").Run() == nil || strings.Contains(output(client(s, "SELECT 1")), "denied")
	})
	return s
}

func client(s *livetest.Service, sql string, options ...string) *exec.Cmd {
	return exec.Command("mariadb", append([]string{"--no-defaults", "-S", filepath.Join(s.Dir, "db/m.sock"), "-e", sql}, options...)...)
}

func output(cmd *exec.Cmd) string {
	out, _ := cmd.CombinedOutput() // what it failed with is in it
	return string(out)
}

func TestLiveLock(t *testing.T) {
	s := start(t, "CREATE DATABASE shop;\nCREATE TABLE shop.stock (id INT) ENGINE=InnoDB;")
	hold := exec.Command("mariadb", "--no-defaults", "-S", filepath.Join(s.Dir, "db/m.sock"))
	in, err := hold.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := hold.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("START TRANSACTION; SELECT * FROM shop.stock;\n")); err != nil {
		t.Fatal(err)
	}
	s.Sample(All())
	at := "unix:" + filepath.Join(s.Dir, "db/m.sock")
	s.Sees("mysql_global_variables_max_connections{"+at+"}", 10)
	s.Until("the transaction is open", func() bool {
		s.Round()
		return s.Rec.Values["plimsoll_mysql_oldest_transaction_seconds{"+at+",idle in transaction,root}"] > 0
	})
	alter := client(s, "ALTER TABLE shop.stock ADD COLUMN gift INT")
	if err := alter.Start(); err != nil {
		t.Fatal(err)
	}
	s.Sees("plimsoll_mysql_sessions_waiting{"+at+",metadata}", 1)
	in.Close()
	if err := hold.Wait(); err != nil {
		t.Error(err)
	}
	if err := alter.Wait(); err != nil {
		t.Error(err)
	}
	s.Sees("plimsoll_mysql_sessions_waiting{"+at+",metadata}", 0)
	if err := client(s, "SELECT 1").Run(); err != nil {
		t.Error(err)
	}
}

// Who has a password for root lets the server's own user in, and else nobody.
func TestLiveAccounts(t *testing.T) {
	const password = "ALTER USER root@localhost IDENTIFIED BY 'secret';\n"
	s := start(t, password)
	s.Sample(All())
	s.Sees("mysql_up{unix:"+filepath.Join(s.Dir, "db/m.sock")+"}", 1)

	s = start(t, password+"ALTER USER mysql@localhost IDENTIFIED BY 'secret';")
	s.Sample(All())
	s.Until("it is denied", func() bool {
		s.Round()
		st := s.Rec.States["mysql_up"]
		return st.State == model.Denied && strings.Contains(st.Why, "Access denied")
	})
}

// An account without the right to see others' sessions is no account to ask with: silence would be taken for a fact.
func TestLiveWithoutTheRight(t *testing.T) {
	s := start(t, "REVOKE PROCESS ON *.* FROM root@localhost;\nFLUSH PRIVILEGES;")
	s.Sample(All())
	s.Until("it is denied", func() bool {
		s.Round()
		st := s.Rec.States["plimsoll_mysql_sessions_waiting"]
		return st.State == model.Denied && strings.Contains(st.Why, "PROCESS")
	})
}

// A server that closes what is idle for a second does not close what asks it, and one that a KILL ended is made anew: neither is a failure.
func TestLiveClosedWhenIdle(t *testing.T) {
	s := start(t, "SET GLOBAL wait_timeout = 1;")
	s.Sample(All())
	at := "unix:" + filepath.Join(s.Dir, "db/m.sock")
	s.Sees("mysql_global_variables_wait_timeout{"+at+"}", 1)
	idle := exec.Command("mariadb", "--no-defaults", "-S", filepath.Join(s.Dir, "db/m.sock"), "--unbuffered")
	in, err := idle.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := idle.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("SET SESSION wait_timeout = 2;\n")); err != nil {
		t.Fatal(err)
	}
	s.Until("the server closes the idle client, while nobody asks", func() bool {
		return strings.Contains(output(client(s, "SHOW GLOBAL STATUS LIKE 'Aborted_clients'", "-N")), "\t1")
	})
	upToNow(t, s, at, 1)
	in.Close()
	_ = idle.Wait() // its connection is gone, and what it says of that is its own
	ours := "SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND = 'Sleep' AND USER = 'root'"
	if out := output(client(s, "KILL "+strings.TrimSpace(output(client(s, ours, "-N"))))); out != "" {
		t.Fatalf("the KILL says %s", out)
	}
	s.Until("the server has ended our session", func() bool { return output(client(s, ours, "-N")) == "" })
	upToNow(t, s, at, 2)
}

// upToNow reads rounds until so many clients were seen to be aborted, and fails where the server was ever told as down meanwhile.
func upToNow(t *testing.T, s *livetest.Service, at string, aborted float64) {
	t.Helper()
	s.Until("its answers go on", func() bool {
		s.Round()
		if s.Rec.Values["mysql_up{"+at+"}"] != 1 || s.Rec.States["mysql_global_status_queries"].State != model.Read {
			t.Fatalf("it was told as down: %s", s.Rec.States["mysql_global_status_queries"].Why)
		}
		return s.Rec.Values["mysql_global_status_aborted_clients{"+at+"}"] == aborted
	})
}
