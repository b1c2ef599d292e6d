package nginx

import (
	"fmt"
	"testing"

	"plimsoll/internal/service/nginx"
)

const refusal1 = `2024/01/31 12:00:00 [error] 12#12: *34 limiting requests, excess: 5.010 by zone "login", client: 10.0.0.9, server: , request: "GET /login HTTP/1.1", host: "x"`

// TestServedBesideALimit: good responses are told by whether the client was limited, which may be known late.
func TestServedBesideALimit(t *testing.T) {
	tally, access, errs := newTally(), logKind{access: &nginx.AccessLog{Format: nginx.CombinedFormat()}}, logKind{}
	serve := func(from string, status int) {
		t.Helper()
		if line := fmt.Sprintf(`%s - - [31/Jan/2024:12:00:00 +0000] "GET / HTTP/1.1" %d 12 "-" "x"`, from, status); !tally.accessLine(access, []byte(line)) {
			t.Fatalf("not understood: %s", line)
		}
	}
	serve("10.0.0.1", 200)
	if tally.limited.told() || tally.limited.all != 0 {
		t.Errorf("counted before anybody was limited: %+v", tally.limited)
	}
	tally.errorLine(errs, []byte(refusal1))
	for range 3 {
		serve("10.0.0.1", 200)
		serve("10.0.0.8", 200)
	}
	serve("10.0.0.9", 429)
	serve("10.0.0.9", 200)
	if tally.limited.all != 7 || tally.limited.theirs != 1 {
		t.Errorf("%d good responses, %d of limited clients; want 7 and 1", tally.limited.all, tally.limited.theirs)
	}
	tally.limited.note("10.0.0.8")
	if tally.limited.theirs != 4 {
		t.Errorf("%d of limited clients once another one is; want 4", tally.limited.theirs)
	}
}

// TestTooManyClients: with more clients than are kept it is not told whose responses they are.
func TestTooManyClients(t *testing.T) {
	var l limited
	l.note("first")
	for i := range maxClients - 1 {
		l.served([]byte(fmt.Sprint(i)))
	}
	if !l.told() {
		t.Fatal("not told of as many as are kept")
	}
	l.served([]byte("one more"))
	if l.told() || len(l.clients) != maxClients {
		t.Errorf("told of %d clients, %v; want %d and not told", len(l.clients), l.told(), maxClients)
	}
}
