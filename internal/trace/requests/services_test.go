package requests

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// nginxConfig is one worker's, with a file, its own count of requests, and PHP-FPM
// behind it, over a Unix socket, over TCP, and over connections that are kept.
const nginxConfig = `daemon off; worker_processes 1; pid DIR/nginx.pid; error_log DIR/error.log;
events { worker_connections 512; }
http {
  access_log off; client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/fastcgi; uwsgi_temp_path DIR/uwsgi; scgi_temp_path DIR/scgi;
  upstream kept { server 127.0.0.1:9000; keepalive 2; }
  server {
    listen 127.0.0.1:80; root DIR/www;
    location = /status { stub_status; }
    location /sent/ { sendfile on; alias DIR/www/; }
    location /unix/ { include /etc/nginx/fastcgi.conf; fastcgi_param SCRIPT_FILENAME DIR/www/x.php; fastcgi_pass unix:DIR/fpm.sock; }
    location /tcp/ { include /etc/nginx/fastcgi.conf; fastcgi_param SCRIPT_FILENAME DIR/www/x.php; fastcgi_pass 127.0.0.1:9000; }
    location /kept/ { include /etc/nginx/fastcgi.conf; fastcgi_param SCRIPT_FILENAME DIR/www/x.php; fastcgi_keep_conn on; fastcgi_pass kept; }
  }
  server { listen 127.0.0.1:443 ssl; ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate DIR/cert.pem; ssl_certificate_key DIR/key.pem; root DIR/www; }
}
`

// place makes a folder that nginx's worker may read, with files in it.
func place(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "requests") // the test's own is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Mkdir(filepath.Join(dir, "www"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, "DIR", dir)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func startNginx(t *testing.T) string {
	t.Helper()
	dir := place(t, map[string]string{"nginx.conf": nginxConfig, "www/file": strings.Repeat("x", 599), "www/large": strings.Repeat("x", 3<<20),
		"www/x.php": "<?php usleep(2000); echo str_repeat('x', 30000);"})
	openssl := exec.Command("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
		"-keyout", dir+"/key.pem", "-out", dir+"/cert.pem")
	if out, err := openssl.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	startDaemon(t, func() bool { return listens("tcp", "127.0.0.1:443") }, "nginx", "-c", dir+"/nginx.conf", "-e", dir+"/error.log")
	return dir
}

func listens(network, address string) bool {
	c, err := net.Dial(network, address)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// client asks over HTTP/1.1 from the test's own thread, which is in its namespace.
type client struct {
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, network, address string) *client {
	t.Helper()
	c, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &client{c, bufio.NewReader(c)}
}

func (c *client) get(t *testing.T, path string) string {
	t.Helper()
	c.ask(t, path)
	return c.read(t)
}

func (c *client) ask(t *testing.T, path string) {
	t.Helper()
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
}

func (c *client) read(t *testing.T) string {
	t.Helper()
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatal(r.Status, err)
	}
	return string(body)
}

// TestNginxCountsTheSame: to the last request, by its own stub_status; files small and
// large, written and sent by sendfile, connections that stand and those of one request.
func TestNginxCountsTheSame(t *testing.T) { eachWay(t, nginxCountsTheSame) }

func nginxCountsTheSame(t *testing.T, w way) {
	tr, ns := begin(t, w, everything)
	startNginx(t)
	for range 11 {
		c := dial(t, "tcp", "127.0.0.1:80")
		for range 9 {
			c.get(t, "/file")
			c.get(t, "/sent/file")
		}
		c.get(t, "/large")
		c.get(t, "/sent/large")
		c.Close()
	}
	for range 17 {
		for _, path := range []string{"/file", "/large", "/sent/file", "/sent/large"} {
			c := dial(t, "tcp", "127.0.0.1:80")
			c.get(t, path)
			c.Close()
		}
	}
	c := dial(t, "tcp", "127.0.0.1:80")
	said := strings.Fields(c.get(t, "/status"))
	var accepted, handled, requests uint64 // "… server accepts handled requests A H R Reading: …"
	for i, word := range said {
		if word == "requests" {
			_, _ = fmt.Sscan(strings.Join(said[i+1:i+4], " "), &accepted, &handled, &requests) // checked below
		}
	}
	if want := uint64(11*20 + 17*4 + 1); requests != want {
		t.Fatalf("nginx counts %d requests, want %d: %v", requests, want, said)
	}
	p := wait(t, tr, ns, "127.0.0.1:80", "all are answered", func(p Place) bool { return p.group("nginx").InHand.Buckets.Count() == requests })
	got := p.group("nginx")
	if p.Begun != requests || len(got.Failed) > 0 || len(got.Excluded) > 0 {
		t.Errorf("%d begun, nginx says %d; failed %v, excluded %v", p.Begun, requests, got.Failed, got.Excluded)
	}
	if n := got.Served.Buckets.Count(); n != requests-1 {
		t.Errorf("%d are known to be over, want all but the last", n)
	}
	if len(p.Peers) != 1 || p.Peers[0].Address != "127.0.0.1" || p.Peers[0].Answered != requests {
		t.Errorf("peers: %+v", p.Peers)
	}
}

// held writes the first piece, which of TLS is the client's hello, and keeps back the rest until it is let go.
type held struct {
	net.Conn
	kept          []byte
	begun, letOff bool
}

func (h *held) Write(b []byte) (int, error) {
	if h.begun && !h.letOff {
		h.kept = append(h.kept, b...)
		return len(b), nil
	}
	h.begun = true
	return h.Conn.Write(b)
}

func (h *held) letGo() error {
	h.letOff = true
	_, err := h.Conn.Write(h.kept)
	return err
}

// TestRequestsWithTheHandshakesEnd: of TLS 1.3, where a client may ask in the packet that ends its handshake.
func TestRequestsWithTheHandshakesEnd(t *testing.T) { eachWay(t, requestsWithTheHandshakesEnd) }

func requestsWithTheHandshakesEnd(t *testing.T, w way) {
	tr, ns := begin(t, w, everything)
	startNginx(t)
	const connections, requests = 5, 3
	for range connections {
		h := &held{Conn: dial(t, "tcp", "127.0.0.1:443")}
		secured := tls.Client(h, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})
		c := &client{secured, bufio.NewReader(secured)}
		if err := secured.Handshake(); err != nil {
			t.Fatal(err)
		}
		c.ask(t, "/file")
		if err := h.letGo(); err != nil {
			t.Fatal(err)
		}
		c.read(t)
		for range requests - 1 {
			c.get(t, "/file")
		}
		secured.Close()
	}
	p := wait(t, tr, ns, "127.0.0.1:443", "all are answered", func(p Place) bool { return p.group("nginx").InHand.Buckets.Count() >= connections*requests })
	if n := p.group("nginx").InHand.Buckets.Count(); n != connections*requests {
		t.Errorf("%d requests, want %d: %+v", n, connections*requests, p.group("nginx"))
	}
}

// TestHandshakesAreNoRequests: nginx's TLS, 1.2 and 1.3, by a client of another make.
func TestHandshakesAreNoRequests(t *testing.T) { eachWay(t, handshakesAreNoRequests) }

func handshakesAreNoRequests(t *testing.T, w way) {
	tr, ns := begin(t, w, everything)
	startNginx(t)
	const connections = 7
	for _, version := range []string{"-tls1_2", "-tls1_3"} {
		for range connections {
			cmd := exec.Command("openssl", "s_client", "-quiet", "-connect", "127.0.0.1:443", version)
			cmd.Stdin = strings.NewReader("GET /file HTTP/1.0\r\n\r\n")
			if out, err := cmd.CombinedOutput(); !strings.Contains(string(out), "200 OK") {
				t.Fatalf("%v: %s", err, out)
			}
		}
	}
	p := wait(t, tr, ns, "127.0.0.1:443", "all are answered", func(p Place) bool { return p.group("nginx").InHand.Buckets.Count() >= 2*connections })
	failed := maps.Clone(p.group("nginx").Failed)
	delete(failed, "cut") // openssl may close before it has read nginx's farewell, and so reset the connection
	if n := p.group("nginx").InHand.Buckets.Count(); n != 2*connections || p.group("nginx").Excluded["tls"] < 2*connections || len(failed) > 0 {
		t.Errorf("%d requests in %d connections: %+v", n, 2*connections, p.group("nginx"))
	}
}

// TestUpstreams: PHP-FPM behind nginx, each way, at both ends.
func TestUpstreams(t *testing.T) { eachWay(t, upstreams) }

func upstreams(t *testing.T, w way) {
	tr, ns := begin(t, w, everything)
	fpm, err := filepath.Glob("/usr/sbin/php-fpm*")
	if err != nil || len(fpm) == 0 {
		t.Skip("no PHP-FPM is here")
	}
	dir := startNginx(t)
	const pool = "[%s]\nuser = www-data\ngroup = www-data\nlisten = %s\nlisten.mode = 0666\npm = static\npm.max_children = 3\naccess.log = " + "DIR/%s.log\n"
	conf := "[global]\ndaemonize = no\nerror_log = DIR/fpm.log\n" + fmt.Sprintf(pool, "u", dir+"/fpm.sock", "u") + fmt.Sprintf(pool, "t", "127.0.0.1:9000", "t")
	if err := os.WriteFile(dir+"/fpm.conf", []byte(strings.ReplaceAll(conf, "DIR", dir)), 0o644); err != nil {
		t.Fatal(err)
	}
	startDaemon(t, func() bool { return listens("unix", dir+"/fpm.sock") && listens("tcp", "127.0.0.1:9000") }, fpm[0], "-y", dir+"/fpm.conf")
	c := dial(t, "tcp", "127.0.0.1:80")
	asked := map[string]uint64{"/unix/x": 29, "/tcp/x": 31, "/kept/x": 37}
	for path, n := range asked {
		for range n {
			c.get(t, path)
		}
	}
	worker := filepath.Base(fpm[0])
	for place, n := range map[string]uint64{"unix:" + dir + "/fpm.sock": 29, "127.0.0.1:9000": 31 + 37} {
		all := wait(t, tr, ns, place, "all are answered", func(p Place) bool { return bySide(t, tr, ns, place)[worker].InHand.Buckets.Count() >= n })
		groups := bySide(t, tr, ns, place)
		for _, name := range []string{worker, "nginx"} {
			got := groups[name]
			if got.InHand.Buckets.Count() != n || got.InHand.Sum.Seconds() < float64(n)*0.002 || len(got.Failed) > 0 || len(got.Excluded) > 0 {
				t.Errorf("%s at %s: %d, want %d: %+v\n%+v", name, place, got.InHand.Buckets.Count(), n, got, all)
			}
		}
		if groups["nginx"].InHand.Sum < groups[worker].InHand.Sum {
			t.Errorf("at %s nginx waited for %v, PHP had requests in hand for %v", place, groups["nginx"].InHand.Sum, groups[worker].InHand.Sum)
		}
	}
}

// bySide returns the groups of both ends of what has this name.
func bySide(t *testing.T, tr *Trace, ns uint32, name string) map[string]Group {
	t.Helper()
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]Group{}
	for _, p := range s.Places {
		if p.Netns != ns || p.Listen+p.Destination != name {
			continue
		}
		for _, c := range p.Groups {
			by[c.Name] = c
		}
	}
	return by
}

// TestRedisCountsTheSame: by its own INFO, over TCP and a Unix socket.
func TestRedisCountsTheSame(t *testing.T) { eachWay(t, redisCountsTheSame) }

func redisCountsTheSame(t *testing.T, w way) {
	tr, ns := begin(t, w, everything)
	dir := t.TempDir()
	startDaemon(t, func() bool { return listens("unix", dir+"/redis.sock") }, "redis-server", "--port", "6379", "--bind", "127.0.0.1",
		"--unixsocket", dir+"/redis.sock", "--save", "", "--daemonize", "no")
	unix, tcp := dial(t, "unix", dir+"/redis.sock"), dial(t, "tcp", "127.0.0.1:6379")
	for range 211 {
		for _, c := range []*client{unix, tcp} {
			ask(t, c, "PING")
		}
	}
	if _, err := fmt.Fprintln(tcp, "INFO stats"); err != nil {
		t.Fatal(err)
	}
	var said uint64
	for !strings.HasPrefix(line(t, tcp), "total_connections") {
	}
	if _, err := fmt.Sscanf(line(t, tcp), "total_commands_processed:%d", &said); err != nil || said != 2*211 {
		t.Fatalf("redis counts %d commands: %v", said, err)
	}
	count := func() uint64 {
		return at(t, tr, ns, "unix:"+dir+"/redis.sock").group("redis-server").InHand.Buckets.Count() +
			at(t, tr, ns, "127.0.0.1:6379").group("redis-server").InHand.Buckets.Count()
	}
	wait(t, tr, ns, "127.0.0.1:6379", "all are answered", func(Place) bool { return count() > said })
	if n := count(); n != said+1 { // redis counts INFO when it has answered it
		t.Errorf("%d, redis says %d and INFO", n, said)
	}
}

func line(t *testing.T, c *client) string {
	t.Helper()
	s, err := c.in.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSampled: where they are too many, one in so many is followed, and the sums are
// estimates of all.
func TestSampled(t *testing.T) { eachWay(t, sampled) }

func sampled(t *testing.T, w way) {
	tr, ns := begin(t, w, 100)
	name, addr := startServer(t, "127.0.0.1:0")
	c := dial(t, "tcp", addr)
	const n = 20011
	for range n {
		fmt.Fprintln(c, "wait 0")
		line(t, c)
	}
	p := at(t, tr, ns, addr)
	t.Logf("%d begun, %d followed; excluded: %v", p.Begun, p.Followed, p.group(name).Excluded)
	if n := p.group(name).Excluded["overlapped"]; n > 0 {
		t.Fatalf("a connection whose client waits for each reply is taken for %d that take no turns", n)
	}
	if p.Followed == n || p.Followed < 100 { // how many depends on how fast this machine is just now
		t.Fatalf("%d of %d were followed", p.Followed, n)
	}
	// The variance of each that stands for so many is each(each-1); that grows to a few times the mean.
	each := n / float64(p.Followed)
	if off := float64(p.Begun) - n; off*off > 36*n*4*each {
		t.Errorf("%d are estimated, there were %d", p.Begun, n)
	}
	if got := p.group(name).InHand.Buckets.Count(); got != p.Begun {
		t.Errorf("%d answered of %d", got, p.Begun)
	}
}
