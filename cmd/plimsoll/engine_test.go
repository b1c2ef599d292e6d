package main

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"testing"
	"time"

	"plimsoll/internal/load"
	"plimsoll/internal/model"
)

// An engine that is interrupted stays until its input ends: what it used is read once more.
func TestInterruptedEngineStaysForItsReader(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	in, plans := io.Pipe()
	records, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- driveLoad(ctx, in, out)
		out.Close()
	}()
	go json.NewEncoder(plans).Encode(model.LoadPlan{URL: server.URL, Method: "GET", Connections: 1, Threads: 1, Rate: 10, DurationMS: 60_000, KeepAlive: true, TimeoutMS: 1000})
	final := make(chan struct{})
	go func() {
		_ = load.ReadRecords(records, func(r load.Record) {
			interrupt()
			if r.Final {
				close(final)
			}
		})
	}()
	<-final
	select {
	case err := <-ended:
		t.Fatalf("it ended before its input did: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	plans.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
