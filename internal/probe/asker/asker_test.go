package asker

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/host"
)

// kind reads a line; "full" is a service's word for sending us away.
var kind = &Kind[string]{Name: "a service", Question: "how are you\n", Most: 20, Read: func(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if strings.HasPrefix(line, "full") {
		return "", ErrFull
	}
	return line, err
}}

// served connects to a service that does with the first connection what it is told.
func served(t *testing.T, do func(net.Conn)) net.Conn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		if c, err := l.Accept(); err == nil {
			do(c)
			c.Close()
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// What is there counts however late one looks, what comes by a time is waited for, and no longer; where nobody was asked nothing comes.
func TestAwait(t *testing.T) {
	there := make(chan int, 1)
	for i := range 100 {
		there <- i
		if got, ok := Await(there, time.Time{}); !ok || got != i {
			t.Fatalf("look %d: %d, %v", i, got, ok)
		}
	}
	if _, ok := Await(there, time.Time{}); ok {
		t.Error("an answer that was taken came again")
	}
	if _, ok := Await(there, time.Now().Add(time.Millisecond)); ok {
		t.Error("an answer came from nobody")
	}
	if _, ok := Await[int](nil, time.Now().Add(time.Hour)); ok {
		t.Error("an answer came to no question")
	}
	go func() { there <- 7 }()
	if got, ok := Await(there, time.Now().Add(time.Minute)); !ok || got != 7 {
		t.Errorf("what comes in time: %d, %v", got, ok)
	}
}

func TestAsk(t *testing.T) {
	c := served(t, func(c net.Conn) {
		line, err := bufio.NewReader(c).ReadString('\n')
		if err == nil {
			_, _ = io.WriteString(c, "you said "+line[:3]+"\n") // the test sees whether it came
		}
	})
	if answer, err := kind.ask(c); err != nil || answer != "you said how\n" {
		t.Errorf("%q, %v", answer, err)
	}
}

// Who sends us away does so before he reads, and closes: what he said counts, not what became of our question.
func TestAskIsSentAway(t *testing.T) {
	said := make(chan bool)
	c := served(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "full\n") // the test sees whether it came
		close(said)
	})
	<-said
	if _, err := kind.ask(c); !errors.Is(err, ErrFull) {
		t.Errorf("%v, want that it is full", err)
	}
}

// An answer without an end is read no further than it may be.
func TestAskIsBounded(t *testing.T) {
	c := served(t, func(c net.Conn) {
		for {
			if _, err := io.WriteString(c, strings.Repeat("x", 1000)); err != nil {
				return
			}
		}
	})
	if answer, err := kind.ask(c); err == nil || int64(len(answer)) > kind.Most {
		t.Errorf("%d bytes, %v", len(answer), err)
	}
	c.Close()
}

// A connection over which something went wrong is closed, and not used again.
func TestKeep(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	if r := keep(a, "x", "", nil); r.conn != a {
		t.Error("a connection that works was given up")
	}
	if r := keep(a, "x", "", io.EOF); r.conn != nil {
		t.Error("a connection that failed is kept")
	}
	if _, err := a.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v, want that it is closed", err)
	}
}

// A service may close what was idle: that is no failure, and it is asked again at once, at a new connection.
func TestAClosedConnectionIsMadeAnew(t *testing.T) {
	gone := served(t, func(net.Conn) {})
	if _, err := io.ReadAll(gone); err != nil {
		t.Fatal(err)
	}
	entered := 0
	again := &Kind[string]{Name: "a service", Question: kind.Question, Most: kind.Most, Read: kind.Read}
	again.Enter = func(*host.Host, int) (net.Conn, string, error) {
		entered++
		return served(t, func(c net.Conn) { _, _ = io.WriteString(c, "well\n") }), "x", nil // the test sees whether it came
	}
	s := &service[string]{kind: again, conn: gone, listen: "x"}
	s.begin(time.Now(), false)
	s.collect(time.Now().Add(time.Minute))
	if s.err != nil || s.answer != "well\n" || s.conn == nil || !s.fresh || entered != 1 {
		t.Errorf("%q, %v, entered %d times", s.answer, s.err, entered)
	}
	for _, err := range []error{ErrFull, os.ErrDeadlineExceeded, nil} {
		if hadClosed(err) {
			t.Errorf("%v is taken for a connection that was closed", err)
		}
	}
}
