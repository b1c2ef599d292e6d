package pipe

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"testing"
	"time"

	"plimsoll/internal/collect"
	"plimsoll/internal/model"
)

// FuzzCommands is what a session may say to a collector.
func FuzzCommands(f *testing.F) {
	var all []byte
	for _, c := range []command{hello, {Do: doOpen, Config: &collect.Config{Interval: time.Second}}, {Do: doStart}, {Do: doSettle},
		{Do: doEdge, Time: at, Window: "hold"}, {Do: doIgnore, PID: 1}, {Do: doCommand, PID: 1}, {Do: doEdge}, {Do: doClose}} {
		all = append(all, jsonFrame(isCommand, c)...)
	}
	f.Add(all)
	f.Add(all[:len(all)-3])
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := newServer(io.Discard)
		defer s.out.fail(io.ErrClosedPipe)
		_ = s.listen(bytes.NewReader(data)) // whatever it is, it is no panic
		for len(s.todo) > 0 {
			c := <-s.todo
			s.answer(c, s.do(context.Background(), c.command))
		}
		if s.local != nil {
			_ = s.local.Close()
		}
	})
}

// FuzzRecords is what a collector may say to a session: the recorder is told nothing
// that it may not be told (see book).
func FuzzRecords(f *testing.F) {
	var all bytes.Buffer
	take := func(frames ...[]byte) {
		for _, one := range frames {
			all.Write(one)
		}
	}
	take(jsonFrame(isAnswer, answer{ID: 1, Protocol: protocol, Heard: at * 1e6, Said: at * 1e6, Cost: &collect.Cost{}}),
		jsonFrame(isSignal, signalFrame{"g", []string{"dev"}, true}),
		frame(isSeries, appendString(appendString([]byte{0}, "a"), "eth0")),
		frame(isValues, appendValue(appendValue(binary.AppendVarint(nil, at), 0, 1), 0, 2)),
		jsonFrame(isEvent, model.Event{Time: at, Host: "a", Kind: "k", Text: "x"}),
		jsonFrame(isStatus, statusFrame{"a", "g", model.Status{State: model.Read}}),
		jsonFrame(isNote, "x"),
		frame(isFile, append(appendString(nil, "cpu"), 0, 1)), frame(isFile, append(appendString(nil, "cpu"), 1, 2)),
		frame(isPackets, append(appendString(nil, "a"), 1, 2)),
		jsonFrame(isTraced, model.Tracing{Level: "light", Profiles: []string{"cpu"}}),
		jsonFrame(isRound, roundFrame{Number: 1, Time: at, Dropped: &lost{Samples: 1, From: 1}}))
	f.Add(all.Bytes())
	f.Add(all.Bytes()[:all.Len()-5])
	f.Add([]byte("Last login: Mon Nov 23"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &Remote{now: then, waiting: map[int64]func(answer){1: func(answer) {}}}
		r.recv = newReceiver(newBook(t), then, []string{"a"}, 0)
		in, buf := bufio.NewReader(bytes.NewReader(data)), []byte(nil)
		for {
			k, payload, err := readFrame(in, &buf)
			if err == nil {
				err = r.take(k, payload)
			}
			if err != nil {
				r.recv.cut(err)
				return
			}
		}
	})
}
