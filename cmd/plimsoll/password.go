package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// passwords are what a person was asked for, once for each way: they are kept as long as this process lives, since a walk logs in many times.
type passwords struct {
	mu    sync.Mutex // held while a person is asked: there is one terminal
	known map[string]string
	read  func(ctx context.Context, question string) (string, error)
}

// of is the password that sudo wants at the other end of a way, "" for none.
func (p *passwords) of(ctx context.Context, via string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if password, asked := p.known[via]; asked {
		return password
	}
	password, err := p.read(ctx, fmt.Sprintf("Password for sudo at %s (it is not kept; empty to observe without): ", via))
	if err != nil {
		return ""
	}
	p.known[via] = password
	return password
}

// wrong has one that was refused not be tried again: some machines shut out whoever is wrong a few times.
func (p *passwords) wrong(via string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, asked := p.known[via]; asked {
		p.known[via] = ""
	}
}

// maxPassword is the most bytes of a password.
const maxPassword = 1000

// readPassword asks at the terminal, and does not show what is typed. When ctx is done it gives up.
func readPassword(ctx context.Context, question string) (string, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return "", fmt.Errorf("open the terminal: %w", err)
	}
	defer tty.Close()
	return askAt(ctx, tty, question)
}

func askAt(ctx context.Context, tty *os.File, question string) (string, error) {
	show, err := hide(tty)
	if err != nil {
		return "", fmt.Errorf("have the terminal not show a password: %w", err)
	}
	defer show()
	if _, err := io.WriteString(tty, question); err != nil {
		return "", fmt.Errorf("ask at the terminal: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = tty.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	line, err := bufio.NewReader(io.LimitReader(tty, maxPassword)).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("read a password from the terminal: %w", err)
	}
	return strings.TrimSuffix(line, "\n"), nil
}

// hide has a terminal not show what is typed, and forget what was typed before it was asked, until show is called.
func hide(tty *os.File) (show func(), err error) {
	raw, err := tty.SyscallConn() // and not Fd, after which a read could not be given up
	if err != nil {
		return nil, err
	}
	var before *unix.Termios
	failed := raw.Control(func(fd uintptr) {
		if before, err = unix.IoctlGetTermios(int(fd), unix.TCGETS); err == nil {
			hidden := *before
			hidden.Lflag = hidden.Lflag&^unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG
			err = unix.IoctlSetTermios(int(fd), unix.TCSETSF, &hidden)
		}
	})
	return func() {
		_ = raw.Control(func(fd uintptr) { _ = unix.IoctlSetTermios(int(fd), unix.TCSETS, before) })
	}, errors.Join(failed, err)
}
