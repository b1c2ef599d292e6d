package main

import (
	"net"
	"testing"
)

func TestTimeWaitsAreCounted(t *testing.T) {
	const connections = 31
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range connections {
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		client.Close() // who closes first keeps the port
		if _, err := server.Read(make([]byte, 1)); err == nil {
			t.Error("the client wrote something")
		}
		server.Close()
	}
	if taken, of := timeWaits(); taken < connections || of < connections {
		t.Errorf("%d of %d ports in TIME_WAIT, want %d or more", taken, of, connections)
	}
}
