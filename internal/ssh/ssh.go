// Package ssh runs this binary on another machine, through the user's own ssh client: its
// configuration, agent, jump hosts and known hosts are the user's. The binary goes the same
// way, into a directory of its own, and is gone when it has started.
package ssh

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"plimsoll/internal/layout"
)

//go:embed far.sh
var farScript string

const (
	// patience is how long a login may be silent, or take nothing of what is sent.
	patience = time.Minute
	// farewell is how long one that was told to end may take.
	farewell = 10 * time.Second
	// maxNoise is how much a login may print beside our own words, in bytes.
	maxNoise = 64 << 10
)

// options are ours for any login: nobody is asked, nothing is forwarded, and nobody else's
// connection is used, whose end would be ours. All else is the user's configuration.
var options = []string{"-T", "-a", "-x", "-o", "BatchMode=yes", "-o", "ControlMaster=no", "-o", "ControlPath=none",
	"-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none", "-o", "PermitLocalCommand=no"}

// Guest is a command of this binary that runs on another machine. What is written is its
// standard input, what is read its standard output, which may say anything. Close ends it.
type Guest struct {
	// Note says what it runs without, "" if it is root.
	Note string

	to     Destination
	ask    Ask
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	said   tail // standard error
	noise  tail // standard output that is not ours
	mark   string
	kill   *time.Timer // ends a login that is silent
	silent atomic.Bool
	passed traffic
	once   sync.Once
	err    error
}

// Ask asks a person for the password that sudo wants of whom we log in as; "" is none.
type Ask func(ctx context.Context) string

// Start logs in and runs a command of this binary, whose words have no blanks: as root, if need be and a person can be
// asked, with a password (ask may be nil). When ctx is done before the command runs, the login ends; after that Close ends it.
func Start(ctx context.Context, to Destination, ask Ask, words ...string) (*Guest, error) {
	client, err := exec.LookPath("ssh")
	if err != nil {
		return nil, fmt.Errorf("there is no ssh client here; install OpenSSH's (Debian: openssh-client): %w", err)
	}
	g := &Guest{to: to, ask: ask, mark: "plimsoll-" + rand.Text()}
	script := "mark=" + g.mark + "\n" + farScript
	args := append([]string{}, options...)
	if to.Port != "" {
		args = append(args, "-p", to.Port)
	}
	// The login shell may be any: one line that all take alike. It reads the script byte by
	// byte, since what comes after that is not for the shell.
	args = append(args, "--", to.Name, fmt.Sprintf(`exec /bin/sh -c 'eval "$(dd bs=1 count=%d 2>/dev/null)"'`, len(script)))
	if err := g.start(client, args); err != nil {
		return nil, err
	}
	g.kill = time.AfterFunc(patience, func() { g.silent.Store(true); _ = g.cmd.Process.Kill() })
	stop := context.AfterFunc(ctx, func() { _ = g.cmd.Process.Kill() })
	err = g.move(ctx, script, words)
	g.kill.Stop()
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, g.failed(ctx, err)
	}
	return g, nil
}

// doorTime is how long a login that is only tried may take to be let in, and how often it is tried: one may be
// refused because of many others (MaxStartups).
const (
	doorTime  = 10 * time.Second
	doorTries = 2
)

// LetsIn says whether a machine lets us log in, by doing so: nothing is run there.
func LetsIn(ctx context.Context, to Destination) (err error) {
	for range doorTries {
		g := &Guest{to: to}
		client, found := exec.LookPath("ssh")
		if found != nil {
			return found
		}
		args := append(append([]string{}, options...), "-o", "ConnectTimeout="+strconv.Itoa(int(doorTime.Seconds())))
		if to.Port != "" {
			args = append(args, "-p", to.Port)
		}
		if err = g.start(client, append(args, "--", to.Name, "exit")); err != nil {
			return err
		}
		g.kill = time.AfterFunc(2*doorTime, func() { _ = g.cmd.Process.Kill() })
		stop := context.AfterFunc(ctx, func() { _ = g.cmd.Process.Kill() })
		_, _ = io.CopyN(&g.noise, g.out, maxNoise)
		err = g.Close()
		g.kill.Stop()
		stop()
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		err = explain(to, g.said.String(), "", err)
	}
	return err
}

func (g *Guest) start(client string, args []string) (err error) {
	g.cmd = exec.Command(client, args...)
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a ^C at the terminal is for us
	g.cmd.Stderr, g.cmd.WaitDelay = &g.said, time.Second
	out, err := g.cmd.StdoutPipe()
	if err == nil {
		g.in, err = g.cmd.StdinPipe()
	}
	if err == nil {
		err = g.cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("start ssh: %w", err)
	}
	g.in = countedInput{g.in, &g.passed}
	g.out = bufio.NewReaderSize(countedOutput{out, &g.passed}, maxNoise)
	return nil
}

// traffic is how many bytes went over a login, as they are before ssh encrypts them.
type traffic struct{ sent, received atomic.Int64 }

type countedInput struct {
	io.WriteCloser
	passed *traffic
}

func (c countedInput) Write(b []byte) (int, error) {
	n, err := c.WriteCloser.Write(b)
	c.passed.sent.Add(int64(n))
	return n, err
}

type countedOutput struct {
	io.Reader
	passed *traffic
}

func (c countedOutput) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.passed.received.Add(int64(n))
	return n, err
}

// Bytes is how many went there and came from there, the program included.
func (g *Guest) Bytes() (sent, received int64) {
	return g.passed.sent.Load(), g.passed.received.Load()
}

// maxSentence is the most bytes of what our own words at the other end say: what was tried in each directory.
const maxSentence = 1000

// farError is what our own words at the other end say.
type farError string

func (e farError) Error() string { return string(e) }

// move goes through the login, until the command runs.
func (g *Guest) move(ctx context.Context, script string, words []string) error {
	if _, err := io.WriteString(g.in, script); err != nil {
		return err
	}
	is, err := g.hear("machine")
	if err != nil {
		return err
	}
	path, err := binaryFor(is[1:])
	if err != nil {
		return farError(err.Error())
	}
	if err := g.send(path, is[4] == "gzip", words); err != nil {
		return err
	}
	as, err := g.admitted(ctx)
	if err != nil {
		return err
	}
	if as = as[1:]; as[0] != "0" && as[0] != "sudo" && as[0] != "password" {
		why := "; there is no sudo"
		if len(as) > 1 {
			why = ": sudo says " + quote(strings.Join(as[1:], " "))
		}
		g.Note = "user " + layout.Line(as[0]) + ", and not root" + why
	}
	return nil
}

// admitted hears as whom the program runs; before that it may be asked for a password.
func (g *Guest) admitted(ctx context.Context) ([]string, error) {
	as, err := g.hear("run", "password")
	if err != nil || as[0] == "run" {
		return as, err
	}
	if g.ask == nil {
		return nil, farError("it asks for a password, and was told that nobody can be asked")
	}
	g.kill.Stop() // a person is slow
	password := g.ask(ctx)
	g.kill.Reset(patience)
	if _, err := io.WriteString(g.in, password+"\n"); err != nil {
		return nil, err
	}
	return g.hear("run")
}

// hear waits for one of some words of ours, and returns it with what stands behind it.
func (g *Guest) hear(words ...string) ([]string, error) {
	for noise := 0; noise < maxNoise; {
		line, err := g.out.ReadSlice('\n')
		g.kill.Reset(patience)
		rest, ours := strings.CutPrefix(string(line), g.mark+" ")
		if !ours {
			noise += len(line)
			_, _ = g.noise.Write(line)
			if err != nil && err != bufio.ErrBufferFull {
				return nil, err
			}
			continue
		}
		fields := strings.Fields(rest)
		switch {
		case len(fields) > 1 && slices.Contains(words, fields[0]) && (fields[0] != "machine" || len(fields) == 5):
			return fields, nil
		case len(fields) > 0 && fields[0] == "failed":
			sentence := strings.Join(fields[1:], " ")
			return nil, farError(layout.Line(strings.ToValidUTF8(sentence[:min(len(sentence), maxSentence)], "?")))
		}
		return nil, farError("its shell answers nonsense: " + quote(rest))
	}
	return nil, farError(fmt.Sprintf("its login prints more than %d bytes before it runs a command: %s", maxNoise, quote(g.noise.String())))
}

// machines are what uname -m says, for what Go calls it.
var machines = map[string]string{"x86_64": "amd64", "aarch64": "arm64"}

// binaryFor is this program for a machine that says its system and itself.
func binaryFor(is []string) (string, error) {
	if is[0] != "Linux" {
		return "", fmt.Errorf("it runs %s; Plimsoll observes Linux", quote(is[0]))
	}
	arch := machines[is[1]]
	if arch == runtime.GOARCH {
		return "/proc/self/exe", nil
	}
	own, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return "", fmt.Errorf("find our own binary: %w", err)
	}
	if arch == "" {
		return "", fmt.Errorf("it is of another architecture (uname -m says %s); there is a Plimsoll for x86_64 and aarch64", quote(is[1]))
	}
	path := filepath.Join(filepath.Dir(own), "plimsoll-linux-"+arch)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("it is of another architecture (%s, and this is %s); put Plimsoll's binary for linux/%s at %s, and it is sent", arch, runtime.GOARCH, arch, path)
	}
	return path, nil
}

// pack is a program as it is sent.
type pack struct {
	wire []byte
	size int64 // of the program
	sum  []byte
}

// packing keeps them by path: all machines get the same, a walk logs in many times, and making one takes half a second and 20 MB.
type packing struct {
	mu   sync.Mutex
	made map[string]pack
}

var packs = packing{made: map[string]pack{}}

func (k *packing) of(path string, packed bool) (pack, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := fmt.Sprint(packed, path)
	if p, ok := k.made[key]; ok {
		return p, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return pack{}, err
	}
	defer file.Close()
	var b bytes.Buffer
	if is, err := file.Stat(); err == nil {
		b.Grow(int(is.Size())) // what is not used of it is no memory; growing it on the way would take it several times
	}
	sum, to := sha256.New(), io.WriteCloser(plain{&b})
	if packed {
		to, _ = gzip.NewWriterLevel(&b, gzip.BestSpeed) // a level that there is
	}
	n, err := io.Copy(io.MultiWriter(sum, to), file)
	if err := errors.Join(err, to.Close()); err != nil {
		return pack{}, err
	}
	k.made[key] = pack{b.Bytes(), n, sum.Sum(nil)}
	return k.made[key], nil
}

// plain is the form of a machine that has no gzip.
type plain struct{ io.Writer }

func (plain) Close() error { return nil }

// send sends the program, and what of it is to be run.
func (g *Guest) send(path string, packed bool, words []string) error {
	p, err := packs.of(path, packed)
	if err != nil {
		return farError(fmt.Sprintf("read our own binary: %v", err))
	}
	wire := p.wire
	asks := "no"
	if g.ask != nil {
		asks = "yes"
	}
	began := time.Now()
	g.kill.Reset(patience)
	if _, err := fmt.Fprintf(g.in, "%d %d %x %s %s\n", len(wire), p.size, p.sum, asks, strings.Join(words, " ")); err != nil {
		return nil // what it says about that is yet to be heard
	}
	for len(wire) > 0 {
		n, err := g.in.Write(wire[:min(len(wire), 64<<10)])
		if err != nil {
			return nil
		}
		g.kill.Reset(patience)
		wire = wire[n:]
	}
	// ssh and the kernel have taken the last megabytes, and the link has not: it may be silent for as long as it took so far.
	g.kill.Reset(patience + time.Since(began))
	return nil
}

// failed ends a login that led to nothing, and says why it did not.
func (g *Guest) failed(ctx context.Context, err error) error {
	_ = g.in.Close()
	var far farError
	if !errors.As(err, &far) {
		_, _ = io.CopyN(&g.noise, g.out, maxNoise) // the rest of what it says, to its end
	}
	ended := g.end()
	switch {
	case far != "":
		return far
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case g.silent.Load():
		return fmt.Errorf("nothing was heard for %v (ssh %s true)", patience, g.to)
	}
	return explain(g.to, g.said.String(), g.noise.String(), errors.Join(ended, err))
}

// Read reads what the command writes to its standard output.
func (g *Guest) Read(b []byte) (int, error) { return g.out.Read(b) }

// Write writes to the command's standard input.
func (g *Guest) Write(b []byte) (int, error) { return g.in.Write(b) }

// CloseInput ends the command's standard input, on which it ends.
func (g *Guest) CloseInput() error { return g.in.Close() }

// Close ends the command and the login. The error says how they ended, if not well.
func (g *Guest) Close() error {
	_ = g.in.Close()
	return g.end()
}

func (g *Guest) end() error {
	g.once.Do(func() {
		kill := time.AfterFunc(farewell, func() { _ = g.cmd.Process.Kill() })
		defer kill.Stop()
		err := g.cmd.Wait()
		if err == nil {
			return
		}
		g.err = EndError{g.cmd.ProcessState.ExitCode(), lastLines(g.said.String())}
	})
	return g.err
}

// EndError is how a command at the other end ended, if not well.
type EndError struct {
	// Code is the command's exit code; 255 is ssh's own, -1 a signal here.
	Code int
	// Said is the end of what was written to standard error.
	Said string
}

// ExitCode is Code, as of a process here.
func (e EndError) ExitCode() int { return e.Code }

func (e EndError) Error() string {
	text := "exit code " + strconv.Itoa(e.Code)
	if e.Said != "" {
		text += ": it says " + quote(e.Said)
	}
	return text
}
