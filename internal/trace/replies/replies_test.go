package replies

import (
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"plimsoll/internal/trace/tcp/tcptest"
	"plimsoll/internal/trace/tracetest"
)

func TestMain(m *testing.M) { os.Exit(tcptest.Main(m, Tracer())) }

func begin(t *testing.T) *Trace {
	t.Helper()
	tr, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	tracetest.AllAttached(t, Tracer(), tr)
	return tr
}

// beginWithOurs watches this process, too: the replies are this process's own, which a tracer leaves out.
func beginWithOurs(t *testing.T) *Trace {
	t.Helper()
	tr := begin(t)
	if err := tr.Maps.Variables[bpfVarIgnored].Set([4]uint32{}); err != nil {
		t.Fatal(err)
	}
	return tr
}

// serve answers with the status that the path says, and has clients of it ask.
func serve(t *testing.T) (port int, ask func(path string)) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(r.URL.Path[1:])
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "HTTP/1.1 599 is what a body may begin with") // in the same packet
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return l.Addr().(*net.TCPAddr).Port, func(path string) {
		c, err := net.Dial("tcp", l.Addr().String()) // by this thread, which is in the namespace
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n", path); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Fatal(err)
		}
	}
}

// TestConfirmed: what a broker says of a message counts where it leaves a connection that was accepted, and nowhere else.
func TestConfirmed(t *testing.T) {
	ns := tcptest.OwnNetns(t, Tracer())
	tr := beginWithOurs(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taker, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer taker.Close()
	broker, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	says := func(from, to net.Conn, class, method byte) {
		frame := []byte{1, 0, 1, 0, 0, 0, 13, 0, class, 0, method, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0xce}
		if _, err := from.Write(frame); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(to, frame); err != nil { // so that the next is in a packet of its own
			t.Fatal(err)
		}
	}
	for range 5 {
		says(broker, taker, 60, 120)
		says(taker, broker, 60, 80) // a consumer's
	}
	says(broker, taker, 60, 80)
	says(broker, taker, 60, 60) // a delivery
	says(broker, taker, 20, 80)
	samples := tracetest.Sink{}
	if err := tr.Read(samples); err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	for said, want := range map[string]float64{"nack": 5, "ack": 1, "return": 0} {
		if got := samples[fmt.Sprintf("%d@plimsoll_replies_amqp_total{%d,%s}", ns, port, said)]; got != want {
			t.Errorf("%s: %v, want %v", said, got, want)
		}
	}
	if got := samples[fmt.Sprintf("%d@plimsoll_replies_amqp_total{%d,ack}", ns, taker.LocalAddr().(*net.TCPAddr).Port)]; got != 0 {
		t.Errorf("what a consumer says counted %v times", got)
	}
}

// TestStatuses: each reply counts once, by port and status.
func TestStatuses(t *testing.T) {
	ns := tcptest.OwnNetns(t, Tracer())
	tr := beginWithOurs(t)
	port, ask := serve(t)
	for range 7 {
		ask("/200")
	}
	for range 3 {
		ask("/503")
	}
	ask("/600") // none that HTTP has
	samples := tracetest.Sink{}
	if err := tr.Read(samples); err != nil {
		t.Fatal(err)
	}
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	for status, want := range map[int]float64{200: 7, 503: 3, 599: 0, 600: 0} {
		for _, series := range []string{
			fmt.Sprintf("%d@plimsoll_replies_http_total{%d,%d}", ns, port, status),
			fmt.Sprintf("%d@plimsoll_replies_http_read_total{%s,127.0.0.1:%d,%d}", ns, strings.TrimSpace(string(comm)), port, status),
		} {
			if got := samples[series]; got != want {
				t.Errorf("%s = %v, want %v", series, got, want)
			}
		}
	}
}

// What another call than read() and recv() has for its second argument is not what was read.
func TestReadByAnotherCall(t *testing.T) {
	tcptest.OwnNetns(t, Tracer())
	tr := beginWithOurs(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: l.Addr().(*net.TCPAddr).Port}); err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const line = "HTTP/1.1 200"
	body, buf := line+"twelve bytes", make([]byte, len(line))
	if _, err := io.WriteString(c, body); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Read(fd, buf); err != nil {
		t.Fatal(err)
	}
	var m unix.Msghdr // where TCP's recvmsg() writes no name, whatever stands there
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&m)), len(line)), line)
	iov := unix.Iovec{Base: &buf[0]}
	iov.SetLen(len(buf))
	m.Iov = &iov
	m.SetIovlen(1)
	if n, _, errno := unix.Syscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&m)), 0); errno != 0 || int(n) != len(buf) {
		t.Fatal(n, errno)
	}
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Read) != 1 || s.Read[0].N != 1 {
		t.Errorf("%+v, want the one reply that read() took", s.Read)
	}
}

// sampleAs has each CPU look at one in 2^shift, from a second on that began at began.
func sampleAs(t *testing.T, tr *Trace, shift uint32, began uint64) {
	t.Helper()
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		t.Fatal(err)
	}
	looks := make([]bpfLooks, cpus)
	for i := range looks {
		looks[i] = bpfLooks{SecondBegan: began, SampleShift: shift}
	}
	if err := tr.Maps.Maps[bpfMapLooked].Put(uint32(0), looks); err != nil {
		t.Fatal(err)
	}
}

func countOf(t *testing.T, tr *Trace, port, status int) uint64 {
	t.Helper()
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var n uint64
	for _, r := range s.HTTP {
		if int(r.Port) == port && int(r.Status) == status {
			n += r.N
		}
	}
	return n
}

// A rush that is over: each reply stands for itself again, from the first on.
func TestAfterRush(t *testing.T) {
	tcptest.OwnNetns(t, Tracer())
	tr := beginWithOurs(t)
	port, ask := serve(t)
	sampleAs(t, tr, 12, 0)
	for range 3 {
		ask("/503")
	}
	if n := countOf(t, tr, port, 503); n != 3 {
		t.Errorf("%d replies, want 3", n)
	}
}

// In a rush a reply that is looked at stands for as many.
func TestSampled(t *testing.T) {
	const replies = 400
	tcptest.OwnNetns(t, Tracer())
	tr := beginWithOurs(t)
	port, ask := serve(t)
	sampleAs(t, tr, 3, math.MaxInt64) // no second ends
	for range replies {
		ask("/503")
	}
	if n := countOf(t, tr, port, 503); n%8 != 0 || n < replies/4 || n > replies*7/4 { // 5.7 standard deviations
		t.Errorf("%d replies, want some %d, by eights", n, replies)
	}
}

// answer has a name server answer a question with each code, and a client read each answer when it comes.
func answer(t *testing.T, codes ...byte) {
	t.Helper()
	for _, code := range codes {
		answerTogether(t, code)
	}
}

// nameServer is one that answers nothing by itself, and a socket that is connected to it.
func nameServer(t *testing.T) (server net.PacketConn, client net.Conn) {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.2:53")
	if err != nil {
		t.Fatal(err)
	}
	client, err = net.Dial("udp", "127.0.0.2:53")
	if err != nil {
		server.Close()
		t.Fatal(err)
	}
	return server, client
}

// answerTogether has a name server answer with all codes before a client reads the first, on one socket,
// as the C library asks for both kinds of address.
func answerTogether(t *testing.T, codes ...byte) {
	t.Helper()
	server, client := nameServer(t)
	defer server.Close()
	defer client.Close()
	buffer := make([]byte, 512)
	for _, code := range codes {
		if _, err := client.Write(make([]byte, 32)); err != nil { // a question
			t.Fatal(err)
		}
		_, from, err := server.ReadFrom(buffer)
		if err != nil {
			t.Fatal(err)
		}
		reply := make([]byte, 32)
		reply[2], reply[3] = 0x81, 0x80|code
		if _, err := server.WriteTo(reply, from); err != nil { // on the loopback it is there now
			t.Fatal(err)
		}
	}
	for range codes {
		if _, err := client.Read(buffer); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAnswers: each counts for who reads it, by the server and its code; a question is none.
func TestAnswers(t *testing.T) {
	ns := tcptest.OwnNetns(t, Tracer())
	tr := beginWithOurs(t)
	answer(t, 0, 5, 5, 2, 3, 15)
	answerTogether(t, 2, 0)
	answerTogether(t, 2, 0, 2, 0, 2, 0, 2, 0)
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	tracetest.NothingLost(t, s.Lost)
	wantAnswers(t, s, ns, map[string]uint64{"NOERROR": 6, "REFUSED": 2, "SERVFAIL": 6, "NXDOMAIN": 1, "code 15": 1})
}

// What a socket holds beyond the bound is lost, and said to be; what came last is kept.
func TestTooManyUnread(t *testing.T) {
	ns := tcptest.OwnNetns(t, Tracer())
	tr := beginWithOurs(t)
	answerTogether(t, 2, 0, 5, 5, 5, 5, 5, 5, 5, 5)
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if s.Lost["answers"] != 2 {
		t.Errorf("lost %v, want 2 answers", s.Lost)
	}
	wantAnswers(t, s, ns, map[string]uint64{"NOERROR": 0, "SERVFAIL": 0, "REFUSED": 8})
}

func wantAnswers(t *testing.T, s Snapshot, ns uint32, want map[string]uint64) {
	t.Helper()
	got := map[string]uint64{}
	for _, a := range s.DNS {
		if a.Netns == ns && a.Server == "127.0.0.2:53" && a.Name == tracetest.OwnName(t) {
			got[a.Code] += a.N
		}
	}
	for code, n := range want {
		if got[code] != n {
			t.Errorf("%s: %d answers, want %d; all: %v", code, got[code], n, got)
		}
	}
}

// TestAnswerTimes: from the question on, and from its first packet where it is asked again;
// an answer to nothing that was asked has no time.
func TestAnswerTimes(t *testing.T) {
	ns := tcptest.OwnNetns(t, Tracer())
	tr := beginWithOurs(t)
	server, client := nameServer(t)
	defer server.Close()
	defer client.Close()
	const pause = 50 * time.Millisecond
	question, buffer := make([]byte, 32), make([]byte, 512)
	for range 2 {
		if _, err := client.Write(question); err != nil {
			t.Fatal(err)
		}
		time.Sleep(pause)
	}
	for range 2 {
		_, from, err := server.ReadFrom(buffer)
		if err != nil {
			t.Fatal(err)
		}
		reply := make([]byte, 32)
		reply[2] = 0x81
		if _, err := server.WriteTo(reply, from); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Read(buffer); err != nil {
			t.Fatal(err)
		}
	}
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	wantAnswers(t, s, ns, map[string]uint64{"NOERROR": 2})
	s.Times = slices.DeleteFunc(s.Times, func(a Times) bool { return a.Netns != ns })
	if len(s.Times) != 1 || s.Times[0].N != 1 || s.Times[0].Server != "127.0.0.2:53" || s.Times[0].Took < 2*pause || s.Times[0].Took > time.Minute {
		t.Errorf("%+v; want one answer of 127.0.0.2:53 after %v or more", s.Times, 2*pause)
	}
}

// Our own process is left out.
func TestIgnored(t *testing.T) {
	ns := tcptest.OwnNetns(t, Tracer())
	tr := begin(t)
	answer(t, 5)
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range s.DNS {
		if a.Netns == ns {
			t.Errorf("%+v is our own", a)
		}
	}
}

func TestText(t *testing.T) {
	s := Seen{Elapsed: 2 * time.Second}
	s.HTTP = []Replies{{Port: 8000, Status: 500, N: 60}, {Port: 8000, Status: 200, N: 40}}
	s.DNS = []Answers{{Name: "python3", Server: "127.0.0.1:53", Code: "REFUSED", N: 120}}
	want := `2 s: 100 replies over HTTP (50/s), 60 of them say that the service failed (5xx);
120 answers of name servers.

port   status  replies  /s
:8000  500     60       30
:8000  200     40       20

process  asks          code     answers  /s
python3  127.0.0.1:53  REFUSED  120      60
`
	if got := s.Text(80); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
