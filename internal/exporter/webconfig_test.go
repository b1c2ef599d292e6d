package exporter

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/sys/unix"

	"plimsoll/internal/input"
)

// answers serves "fine" by a web config until the test ends; it returns its address.
func answers(t *testing.T, config string) string {
	t.Helper()
	s, err := listen("127.0.0.1:0", config, false)
	check(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- s.serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") }))
	}()
	t.Cleanup(func() {
		stop()
		check(t, <-ended)
	})
	return s.url()
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// status is what a scrape is answered with, 0 for no answer.
func status(c *http.Client, url string) int {
	got, err := c.Get(url)
	if err != nil {
		return 0
	}
	defer got.Body.Close()
	_, _ = io.Copy(io.Discard, got.Body)
	return got.StatusCode
}

// Whoever may write a web config, or what it names, can put anything there while it is in use: nothing without end is read, nothing
// is waited for, and nobody is let in who was not before. When it is whole again, who may read is answered again.
func TestAWebConfigThatChangesWhileItIsInUse(t *testing.T) {
	for _, secured := range []bool{false, true} {
		dir := t.TempDir()
		pool := certificate(t, dir)
		hash, err := bcrypt.GenerateFromPassword([]byte("right"), bcrypt.MinCost)
		check(t, err)
		config := filepath.Join(dir, "web.yml")
		text := "basic_auth_users: {scraper: '" + string(hash) + "'}\n"
		files := []string{config}
		if secured {
			text += "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n"
			files = append(files, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
		}
		writeFile(t, config, text)
		at := answers(t, config)
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
		anew := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}}
		may := strings.Replace(at, "//", "//scraper:right@", 1)
		for _, file := range files {
			whole, err := os.ReadFile(file)
			check(t, err)
			for what, put := range map[string]func() error{
				"more than is read": func() error {
					return os.WriteFile(file, append(whole, strings.Repeat("#\n", input.MaxPEM)...), 0o600)
				},
				"nothing":       func() error { return os.WriteFile(file, nil, 0o600) },
				"half of it":    func() error { return os.WriteFile(file, whole[:len(whole)/2], 0o600) },
				"a device":      func() error { return os.Symlink("/dev/null", file) },
				"a FIFO":        func() error { return unix.Mkfifo(file, 0o600) },
				"a link to one": func() error { return os.Symlink(file+".fifo", file) },
				"no file":       func() error { return nil },
			} {
				if got := status(c, may); got != http.StatusOK {
					t.Fatalf("%s is whole, and answered with %d", file, got)
				}
				_ = unix.Mkfifo(file+".fifo", 0o600) // it may be there
				check(t, os.Remove(file))
				check(t, put())
				for _, client := range []*http.Client{c, anew} {
					if code, right := status(client, at), status(client, may); code == http.StatusOK || right == http.StatusOK {
						t.Errorf("%s is %s: answered with %d, and with %d to a user", file, what, code, right)
					}
				}
				_ = os.Remove(file) // it may be none
				check(t, os.WriteFile(file, whole, 0o600))
			}
		}
		// A config that is half written may lack all users, and be whole otherwise.
		writeFile(t, config, strings.Replace(text, "basic_auth_users: {scraper: '"+string(hash)+"'}", "http_server_config: {http2: false}", 1))
		if code, right := status(c, at), status(anew, may); code == http.StatusOK || right == http.StatusOK {
			t.Errorf("without users it is answered with %d, and with %d to who was one", code, right)
		}
		writeFile(t, config, text)
		// A user who is taken out is one no more, on a connection that stands, too.
		if got := status(c, may); got != http.StatusOK {
			t.Fatalf("answered with %d", got)
		}
		writeFile(t, config, strings.Replace(text, "scraper:", "another:", 1))
		if got := status(c, may); got != http.StatusUnauthorized {
			t.Errorf("who is no user any more is answered with %d", got)
		}
	}
}

// A web config that asks nobody who he is, and has no TLS either, does nothing of what it was given for.
func TestAWebConfigThatKeepsNobodyOut(t *testing.T) {
	file := filepath.Join(t.TempDir(), "web.yml")
	for _, text := range []string{"", "# nothing\n", "{}\n", "basic_auth_users: {}\n", "basic_auth_users:\n", "basic_auth_users: {}\nhttp_server_config: {http2: false}\n"} {
		writeFile(t, file, text)
		if s, err := listen("127.0.0.1:0", file, false); err == nil {
			s.tcp.Close()
			t.Errorf("%q is taken", text)
		} else if !strings.Contains(err.Error(), "basic_auth_users") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
