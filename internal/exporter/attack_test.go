package exporter

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// liveHeap is what is in use, after what is not was thrown away.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // what a sync.Pool kept over the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Ten thousand scrapes in all formats, eight at a time, leave nothing behind, and each is answered with the page of its round.
func TestTenThousandScrapesLeaveNothing(t *testing.T) {
	at := start(t, Options{})
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8, DisableCompression: true}}
	defer c.CloseIdleConnections()
	headers := [][2]string{{"Accept", "application/openmetrics-text"}, {"Accept", "text/plain"}, {"Accept-Encoding", "gzip"}}
	const each, clients = 1250, 8
	scrape := func(n int) {
		req, err := http.NewRequest(http.MethodGet, at, nil)
		if err != nil {
			t.Error(err)
			return
		}
		how := headers[n%len(headers)]
		req.Header.Set(how[0], how[1])
		res, err := c.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		defer res.Body.Close()
		if read, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK || read != res.ContentLength {
			t.Errorf("scrape %d: %s, %d of %d bytes, %v", n, res.Status, read, res.ContentLength, err)
		}
	}
	for n := range len(headers) {
		scrape(n)
	}
	before, files := liveHeap(), descriptors(t)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for n := range each {
				scrape(n)
			}
		})
	}
	all.Wait()
	c.CloseIdleConnections()
	if after := liveHeap(); after > before+24<<20 { // rounds go on meanwhile, of a machine that changes; 3 kB a scrape would be more
		t.Errorf("%d MiB are in use, %d before", after>>20, before>>20)
	}
	if after := descriptors(t); after > files+1000 { // of processes that came meanwhile
		t.Errorf("%d descriptors are open, %d before", after, files)
	}
}

// What is no TLS, or ends in the middle of its handshake, gets nothing but its end, and leaves who does it right alone.
func TestTLSMisuse(t *testing.T) {
	dir := t.TempDir()
	pool := certificate(t, dir)
	config := filepath.Join(dir, "web.yml")
	writeFile(t, config, "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n")
	at := start(t, Options{WebConfig: config})
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	hello := helloOf(t)
	for name, said := range map[string]string{
		"nothing":           "",
		"half a hello":      hello[:len(hello)/2],
		"hello, no answer":  hello,
		"garbage":           strings.Repeat("\xff\x00\x16\x03", 4096),
		"a record too long": "\x16\x03\x01\xff\xff" + strings.Repeat("a", 1<<16),
		"SSL 2":             "\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10",
		"data unencrypted":  "\x17\x03\x03\x00\x10GET /metrics HTTP",
		"plain HTTP":        "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", u.Host)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, said); err != nil && name != "a record too long" && name != "garbage" { // those may be cut off
			t.Errorf("%s: %v", name, err)
		}
		_ = conn.(*net.TCPConn).CloseWrite() // it may be closed by them
		answer, _ := io.ReadAll(conn)        // or reset
		if strings.Contains(string(answer), "node_") {
			t.Errorf("%s is shown what is read", name)
		}
		conn.Close()
	}
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	if code, text := get(t, c, at); code != http.StatusOK || !strings.Contains(text, "node_load1") {
		t.Errorf("who does it right is answered with %d", code)
	}
}

// helloOf is how a client of TLS begins.
func helloOf(t *testing.T) string {
	t.Helper()
	here, there := net.Pipe()
	go func() {
		_ = tls.Client(here, &tls.Config{ServerName: "localhost"}).Handshake() // nobody answers
	}()
	buf := make([]byte, 4096)
	n, err := there.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	there.Close()
	return string(buf[:n])
}
