package exporter

import (
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"plimsoll/internal/collect"
)

// start runs an exporter of this machine until the test ends; nothing is traced.
func start(t *testing.T, opt Options) string {
	t.Helper()
	ready := make(chan string, 1)
	opt.Listen = "127.0.0.1:0"
	opt.Collect.Interval = time.Second
	if opt.Collect.Hosts == nil {
		opt.Collect.Hosts = []collect.HostSpec{{Name: "web", Spec: "local"}}
	}
	opt.Ready, opt.Note = func(url string) { ready <- url }, func(string) {}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, opt) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case url := <-ready:
		return url
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	return ""
}

func get(t *testing.T, c *http.Client, url string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var in io.Reader = res.Body
	if res.Header.Get("Content-Encoding") == "gzip" {
		if in, err = gzip.NewReader(res.Body); err != nil {
			t.Fatal(err)
		}
	}
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func TestScrapes(t *testing.T) {
	at := start(t, Options{Version: "1.2.3"})
	for _, want := range []string{`{__name__="plimsoll_exporter_info", version="1.2.3"}`, `{__name__="node_load1", host="web"}`} {
		for there := false; !there; { // what takes long to read is in the next one
			_, text := get(t, http.DefaultClient, at, "Accept", "application/openmetrics-text;version=1.0.0")
			_, there = parsed(t, []byte(text), string(openMetrics))[want]
		}
	}
	_, text := get(t, http.DefaultClient, at, "Accept-Encoding", "gzip")
	parsed(t, []byte(text), string(plainText))
	if code, _ := get(t, http.DefaultClient, at, "Host", "evil.example"); code != http.StatusMisdirectedRequest {
		t.Errorf("a name that stands for this machine is answered with %d", code)
	}
	if code, _ := get(t, http.DefaultClient, strings.TrimSuffix(at, "metrics")+"secret"); code != http.StatusNotFound {
		t.Errorf("what is not there is answered with %d", code)
	}
}

// Who never reads what it asked for, or never asks, takes nobody else's place.
func TestSlowReadersDoNotStopScrapes(t *testing.T) {
	at := start(t, Options{})
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxConnections / 2 {
		c, err := net.Dial("tcp", u.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i%2 == 0 {
			_, err = io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
		} else {
			_, err = io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: loc")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 10 {
				if code, _ := get(t, http.DefaultClient, at); code != http.StatusOK {
					t.Errorf("a scrape beside slow ones is answered with %d", code)
				}
			}
		})
	}
	all.Wait()
}

func TestOthersNeedTLS(t *testing.T) {
	dir := t.TempDir()
	users := filepath.Join(dir, "users.yml")
	writeFile(t, users, "basic_auth_users: {scraper: '$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi'}\n")
	wrong := filepath.Join(dir, "wrong.yml")
	writeFile(t, wrong, "tls_server_config: {cert_file: nosuch.pem, key_file: nosuch.key}\n")
	for _, bad := range [][2]string{{"0.0.0.0:0", ""}, {"[::]:0", ""}, {"example.com:1", ""}, {":0", ""}, {"0.0.0.0:0", users}, {"127.0.0.1:0", wrong}, {"127.0.0.1:0", dir}, {"nowhere", ""}} {
		s, err := listen(bad[0], bad[1], false)
		if err == nil {
			s.tcp.Close()
			t.Errorf("listens on %q with %q", bad[0], bad[1])
		}
	}
	if _, err := listen("127.0.0.1:0", filepath.Join(dir, "none"), false); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want that the web config is not there", err)
	}
	s, err := listen("0.0.0.0:0", "", true)
	if err != nil {
		t.Fatal(err)
	}
	s.tcp.Close()
}

func TestTLSAndUsers(t *testing.T) {
	dir := t.TempDir()
	pool := certificate(t, dir)
	hash, err := bcrypt.GenerateFromPassword([]byte("right"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "web.yml")
	writeFile(t, config, "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\nbasic_auth_users: {scraper: '"+string(hash)+"'}\n")
	at := start(t, Options{WebConfig: config})
	if !strings.HasPrefix(at, "https://") {
		t.Errorf("it is found at %s, want https", at)
	}
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	if code, _ := get(t, c, at); code != http.StatusUnauthorized {
		t.Errorf("who says no name is answered with %d", code)
	}
	if code, _ := get(t, c, strings.Replace(at, "//", "//scraper:wrong@", 1)); code != http.StatusUnauthorized {
		t.Errorf("a wrong password is answered with %d", code)
	}
	if code, text := get(t, c, strings.Replace(at, "//", "//scraper:right@", 1)); code != http.StatusOK || !strings.Contains(text, "node_load1") {
		t.Errorf("the right password is answered with %d", code)
	}
	if code, _ := get(t, http.DefaultClient, strings.Replace(at, "https:", "http:", 1)); code != http.StatusBadRequest {
		t.Errorf("plain HTTP is answered with %d", code)
	}
	old := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}}}
	if _, err := old.Get(at); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
}

// certificate writes one for 127.0.0.1, which the pool trusts.
func certificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	writeFile(t, filepath.Join(dir, "cert.pem"), string(cert))
	writeFile(t, filepath.Join(dir, "key.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return pool
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
