package load

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// reading is what the parser makes of some input.
type reading struct {
	Step     step
	Fault    string
	Status   int
	Reusable bool
	Used     int  // of a complete reply
	AtEOF    bool // the end of the connection would complete it
}

// readReply feeds input in pieces of the given lengths (the last repeats; none: all at once).
func readReply(input []byte, toHEAD bool, lengths ...int) reading {
	var r reply
	return readBy(&r, r.feed, input, toHEAD, lengths...)
}

// readAgain does the same after the thread has seen just that before.
func readAgain(input []byte, toHEAD bool, lengths ...int) reading {
	var known knownHead
	var r reply
	feed := func(b []byte) (int, step) { return known.feed(&r, b, 0) }
	readBy(&r, feed, input, toHEAD)
	return readBy(&r, feed, input, toHEAD, lengths...)
}

// readBy has r take input by the given way to feed it.
func readBy(r *reply, feed func([]byte) (int, step), input []byte, toHEAD bool, lengths ...int) reading {
	r.reset(toHEAD)
	var got reading
	for rest := input; ; {
		n := len(rest)
		if len(lengths) > 0 {
			n = min(n, max(lengths[0], 1))
			if len(lengths) > 1 {
				lengths = lengths[1:]
			}
		}
		var used int
		used, got.Step = feed(rest[:n])
		got.Used += used
		rest = rest[n:]
		if got.Step != more || len(rest) == 0 {
			break
		}
	}
	got.Fault = r.fault.String()
	if got.Step == broken {
		got.Used = 0 // where a fault is noticed depends on the pieces
		return got
	}
	if got.AtEOF = got.Step == more && r.eof(); got.AtEOF || got.Step == done {
		got.Status, got.Reusable = int(r.status), r.reusable()
	}
	return got
}

func TestReplyAsRecordedFromNginx(t *testing.T) {
	all := func(status int, reusable bool) func(int) reading {
		return func(n int) reading { return reading{Step: done, Status: status, Reusable: reusable, Used: n} }
	}
	for name, want := range map[string]func(int) reading{
		"file.keepalive": all(200, true),
		"file.close":     all(200, false),
		"file.http10":    all(200, false),
		"file.head":      all(200, true),
		"404.keepalive":  all(404, true),
		"list.chunked":   all(200, true),
	} {
		input, err := os.ReadFile(filepath.Join("testdata", "nginx-1.22", name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want(len(input)), readReply(input, strings.HasSuffix(name, ".head"))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

var replies = []struct {
	why, input string
	want       reading
}{
	{"length counts the body", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", reading{Step: done, Status: 200, Reusable: true, Used: 41}},
	{"what follows the body is left over", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef", reading{Step: done, Status: 200, Reusable: true, Used: 41}},
	{"an empty body", "HTTP/1.1 200\r\ncontent-length:0\r\n\r\n", reading{Step: done, Status: 200, Reusable: true, Used: 34}},
	{"bare line feeds are line ends", "HTTP/1.1 200 OK\nContent-Length: 1\n\na", reading{Step: done, Status: 200, Reusable: true, Used: 36}},
	{"no length: until the end of the connection", "HTTP/1.1 200 OK\r\n\r\nabc", reading{Step: more, AtEOF: true, Status: 200, Used: 22}},
	{"an end amid the body completes nothing", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", reading{Step: more, Used: 41}},
	{"an end amid the head completes nothing", "HTTP/1.1 200 OK\r\nContent-Le", reading{Step: more, Used: 27}},
	{"204 has no body", "HTTP/1.1 204 No Content\r\n\r\n", reading{Step: done, Status: 204, Reusable: true, Used: 27}},
	{"304 has no body whatever its length says", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", reading{Step: done, Status: 304, Reusable: true, Used: 48}},
	{"interim replies are skipped", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 x\r\n\r\n", reading{Step: done, Status: 204, Reusable: true, Used: 43}},
	{"an interim reply's headers are not the final one's", "HTTP/1.1 103 x\r\nContent-Length: 9\r\nConnection: close\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", reading{Step: done, Status: 200, Reusable: true, Used: 94}},
	{"chunks, extension, trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: v\r\n\r\n", reading{Step: done, Status: 200, Reusable: true, Used: 70}},
	{"chunked beside a length is not reused", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n0\r\n\r\n", reading{Step: done, Status: 200, Used: 77}},
	{"a coding that is not chunked ends with the connection", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc", reading{Step: more, AtEOF: true, Status: 200, Used: 47}},
	{"HTTP/1.0 is not reused", "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", reading{Step: done, Status: 200, Used: 38}},
	{"HTTP/1.0 with keep-alive is", "HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: Keep-Alive\r\n\r\n", reading{Step: done, Status: 200, Reusable: true, Used: 62}},
	{"close among other options", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: foo , Close\r\n\r\n", reading{Step: done, Status: 200, Used: 63}},
	{"the same length twice is one", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n", reading{Step: done, Status: 200, Reusable: true, Used: 57}},

	{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\n", reading{Step: broken, Fault: "bad_content_length"}},
	{"a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", reading{Step: broken, Fault: "bad_content_length"}},
	{"a length beyond all", "HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999\r\n\r\n", reading{Step: broken, Fault: "bad_content_length"}},
	{"another protocol, known by its first byte", "SSH-2.0-OpenSSH_9.2", reading{Step: broken, Fault: "bad_status_line"}},
	{"HTTP/2", "HTTP/2 200\r\n\r\n", reading{Step: broken, Fault: "bad_status_line"}},
	{"a status of two digits", "HTTP/1.1 20 OK\r\n\r\n", reading{Step: broken, Fault: "bad_status_line"}},
	{"a status of four digits", "HTTP/1.1 2000\r\n\r\n", reading{Step: broken, Fault: "bad_status_line"}},
	{"a status out of range", "HTTP/1.1 600 x\r\n\r\n", reading{Step: broken, Fault: "bad_status_line"}},
	{"a header without colon", "HTTP/1.1 200 OK\r\nabc\r\n\r\n", reading{Step: broken, Fault: "bad_header"}},
	{"a blank before the colon", "HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n", reading{Step: broken, Fault: "bad_header"}},
	{"a folded header", "HTTP/1.1 200 OK\r\nA: b\r\n c: d\r\n\r\n", reading{Step: broken, Fault: "bad_header"}},
	{"a chunk size that is none", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", reading{Step: broken, Fault: "bad_chunk"}},
	{"a chunk longer than it said", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", reading{Step: broken, Fault: "bad_chunk"}},
	{"a chunk line without end", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("x", maxChunkLine), reading{Step: broken, Fault: "bad_chunk"}},
	{"a head without end", "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", maxHead), reading{Step: broken, Fault: "head_too_large"}},
	{"headers without end", "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", maxHead/5), reading{Step: broken, Fault: "head_too_large"}},
	{"trailers without end", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("A: b\r\n", maxHead/5), reading{Step: broken, Fault: "head_too_large"}},
	{"another protocol that nobody asked for", "HTTP/1.1 101 Switching Protocols\r\n\r\n", reading{Step: broken, Fault: "unasked_upgrade"}},
	{"interim replies without end", strings.Repeat("HTTP/1.1 100 x\r\n\r\n", maxInterim+1), reading{Step: broken, Fault: "too_many_interim"}},
}

func TestReply(t *testing.T) {
	for _, c := range replies {
		if diff := cmp.Diff(c.want, readReply([]byte(c.input), false)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.why, diff)
		}
	}
}

func TestReplyToHEADHasNoBody(t *testing.T) {
	const input = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"
	want := reading{Step: done, Status: 200, Reusable: true, Used: len(input)}
	if diff := cmp.Diff(want, readReply([]byte(input), true)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Where net/http reads a whole reply, so must we, and with the same status.
func TestReplyAgreesWithNetHTTP(t *testing.T) {
	for _, c := range replies {
		if c.want.Step != done || c.want.Status < 200 || c.want.Fault != "" {
			continue
		}
		b := bufio.NewReader(strings.NewReader(c.input))
		theirs, err := http.ReadResponse(b, nil)
		for err == nil && theirs.StatusCode < 200 {
			theirs, err = http.ReadResponse(b, nil)
		}
		if err != nil {
			if !strings.Contains(err.Error(), "unsupported transfer encoding") {
				t.Errorf("%s: net/http: %v", c.why, err)
			}
			continue
		}
		if _, err := io.Copy(io.Discard, theirs.Body); err != nil || theirs.StatusCode != c.want.Status {
			t.Errorf("%s: net/http: status %d, %v; ours %d", c.why, theirs.StatusCode, err, c.want.Status)
		}
		besideNetHTTP(t, []byte(c.input), false)
	}
}

// besideNetHTTP holds a reply that both we and net/http take for a whole one to be the same one.
func besideNetHTTP(t *testing.T, input []byte, toHEAD bool) {
	var r reply
	ours := readBy(&r, r.feed, input, toHEAD)
	if ours.Step != done && !ours.AtEOF || r.version10 && r.coded { // net/http has no codings in HTTP/1.0
		return
	}
	request := &http.Request{Method: "GET"}
	if toHEAD {
		request.Method = "HEAD"
	}
	raw := bytes.NewReader(input)
	b := bufio.NewReader(raw)
	theirs, err := http.ReadResponse(b, request)
	for err == nil && theirs.StatusCode < 200 {
		theirs, err = http.ReadResponse(b, request)
	}
	if err != nil {
		return
	}
	n, err := io.Copy(io.Discard, theirs.Body)
	if err != nil {
		return
	}
	used := len(input) - raw.Len() - b.Buffered()
	if theirs.StatusCode != ours.Status || n != r.length || used != ours.Used {
		t.Errorf("%q: net/http reads status %d and a body of %d bytes from %d; we %d, %d, %d", input, theirs.StatusCode, n, used, ours.Status, r.length, ours.Used)
	}
}

func TestReplyIsTheSameInPieces(t *testing.T) {
	for _, c := range replies {
		for _, length := range []int{1, 2, 3, 7, 64, 1000} {
			if diff := cmp.Diff(c.want, readReply([]byte(c.input), false, length)); diff != "" {
				t.Errorf("%s, in pieces of %d (-want +got):\n%s", c.why, length, diff)
			}
		}
	}
}

// A head that came before is compared, not parsed, and comes to the same; one that differs in a byte is parsed.
func TestKnownHead(t *testing.T) {
	for _, c := range replies {
		if diff := cmp.Diff(c.want, readAgain([]byte(c.input), false)); diff != "" {
			t.Errorf("%s, for the second time (-want +got):\n%s", c.why, diff)
		}
	}
	var known knownHead
	var r reply
	for _, c := range []struct {
		length string
		now    int64
		want   string
	}{{"3", 0, "3"}, {"3", 1, "3"}, {"5", 2, "3"}, {"5", learnEvery, "5"}} {
		r.reset(false)
		input := []byte("HTTP/1.1 200 OK\r\nContent-Length: " + c.length + "\r\n\r\n" + strings.Repeat("x", int(c.length[0]-'0')))
		if used, s := known.feed(&r, input, c.now); s != done || used != len(input) {
			t.Errorf("length %s: step %d after %d of %d bytes", c.length, s, used, len(input))
		}
		if want := "HTTP/1.1 200 OK\r\nContent-Length: " + c.want + "\r\n\r\n"; string(known.bytes) != want {
			t.Errorf("after length %s at %d ns %q is known, want %q", c.length, c.now, known.bytes, want)
		}
	}
}

// FuzzReply holds that the parser makes the same of an input however it is cut, and of a whole reply what net/http does.
func FuzzReply(f *testing.F) {
	for _, c := range replies {
		if len(c.input) < 4096 {
			f.Add([]byte(c.input), []byte{1, 5, 40}, false)
		}
	}
	recorded, err := filepath.Glob("testdata/nginx-1.22/*")
	if err != nil || len(recorded) == 0 {
		f.Fatalf("recorded replies: found %d, %v", len(recorded), err)
	}
	for _, path := range recorded {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, []byte{16, 1}, bytes.HasSuffix([]byte(path), []byte(".head")))
	}
	f.Fuzz(func(t *testing.T, input, cuts []byte, toHEAD bool) {
		var lengths []int
		for _, c := range cuts {
			lengths = append(lengths, int(c))
		}
		whole, pieces := readReply(input, toHEAD), readReply(input, toHEAD, lengths...)
		if diff := cmp.Diff(whole, pieces); diff != "" {
			t.Errorf("cut into %v (-whole +pieces):\n%s", lengths, diff)
		}
		if diff := cmp.Diff(whole, readAgain(input, toHEAD)); diff != "" {
			t.Errorf("(-first time +second time):\n%s", diff)
		}
		if diff := cmp.Diff(whole, readAgain(input, toHEAD, lengths...)); diff != "" {
			t.Errorf("(-first time +second time, cut into %v):\n%s", lengths, diff)
		}
		if whole.Step == broken == (whole.Fault == "") {
			t.Errorf("broken without a fault, or a fault without broken: %+v", whole)
		}
		besideNetHTTP(t, input, toHEAD)
	})
}
