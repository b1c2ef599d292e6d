package load

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// startNginx starts nginx on a free port; server is what stands in its server block besides
// its access log, format how the log's lines are made, listen what follows the address. counts ends it and
// returns how often each line is in the log.
func startNginx(t *testing.T, listen, format, server string) (address string, counts func() map[string]int64) {
	t.Helper()
	nginx, err := exec.LookPath("nginx")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("nginx is not here; scripts/install-deps brings it")
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	l.Close()
	config := fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;
events {}
http {
  log_format counted '%[3]s';
  access_log %[1]s/access.log counted;
  client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d; scgi_temp_path %[1]s/e;
  server { listen %[2]s %[4]s; %[5]s }
}
`, dir, address, format, listen, server)
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	process := exec.Command(nginx, "-p", dir, "-c", filepath.Join(dir, "nginx.conf"), "-e", filepath.Join(dir, "error.log"))
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Process.Kill() }) // of a test that failed
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nginx does not listen")
		}
	}
	return address, func() map[string]int64 {
		t.Helper()
		if err := process.Process.Signal(os.Interrupt); err != nil { // it ends, and has written its log
			t.Fatal(err)
		}
		_ = process.Wait()
		log, err := os.ReadFile(filepath.Join(dir, "access.log"))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int64{}
		for line := range strings.Lines(string(log)) {
			got[strings.TrimSpace(line)]++
		}
		return got
	}
}
