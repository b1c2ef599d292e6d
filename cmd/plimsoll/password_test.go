package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// terminals makes a pair: what is written to the first is typed at the second.
func terminals(t *testing.T) (person, tty *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil && os.Getenv("CI") == "" {
		t.Skipf("no terminal can be made here: %v", err)
	}
	ok(t, err)
	t.Cleanup(func() { _ = person.Close() })
	raw, err := person.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var number int
	if e := raw.Control(func(fd uintptr) {
		number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		err = errors.Join(err, unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0))
	}); e != nil || err != nil {
		t.Fatal(e, err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tty.Close() })
	return person, tty
}

// What is typed is not shown, and afterwards what is typed is again.
func TestPasswordIsNotShown(t *testing.T) {
	person, tty := terminals(t)
	answer := make(chan string, 1)
	go func() {
		got, err := askAt(t.Context(), tty, "Password? ")
		answer <- fmt.Sprintf("%q %v", got, err)
	}()
	shown := bufio.NewReader(person)
	if question, err := shown.ReadString('?'); question != "Password?" || err != nil {
		t.Fatal(question, err)
	}
	write(t, person, "a b  c\n")
	if got := <-answer; got != `"a b  c" <nil>` {
		t.Errorf("it is %s", got)
	}
	write(t, person, "seen\n")
	if line, err := shown.ReadString('n'); line != " \r\nseen" || err != nil {
		t.Errorf("%q is shown, %v", line, err)
	}
}

// Who thinks better of it is not asked any longer.
func TestPasswordIsGivenUp(t *testing.T) {
	_, tty := terminals(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := askAt(ctx, tty, "Password? "); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%q, %v", got, err)
	}
}

func write(t *testing.T, f *os.File, text string) {
	t.Helper()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// Each way is asked for once, and what was wrong is not tried again.
func TestPasswordIsAskedForOnce(t *testing.T) {
	var questions []string
	p := &passwords{known: map[string]string{}, read: func(_ context.Context, question string) (string, error) {
		questions = append(questions, question)
		return fmt.Sprint("secret", len(questions)), nil
	}}
	for _, via := range []string{"ssh:a", "ssh:b", "ssh:a"} {
		if got, want := p.of(t.Context(), via), map[string]string{"ssh:a": "secret1", "ssh:b": "secret2"}[via]; got != want {
			t.Errorf("%s: %q, want %q", via, got, want)
		}
	}
	p.wrong("ssh:a")
	p.wrong("ssh:c") // it asked for none
	if a, b := p.of(t.Context(), "ssh:a"), p.of(t.Context(), "ssh:b"); a != "" || b != "secret2" || len(questions) != 2 {
		t.Errorf("%q and %q after %q", a, b, questions)
	}
	if p.of(t.Context(), "ssh:c") != "secret3" {
		t.Errorf("ssh:c was not asked: %q", questions)
	}
}
