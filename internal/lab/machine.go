package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// claimPath is a file that says which lab has changed a machine-wide setting:
// that lab's prefix is in it. Without it two labs at once would each take the
// other's value for the old one, and leave it behind.
func claimPath(name string) string { return "/run/plimsoll-machine." + name }

// claimPatience is how long a lab waits for another to give a setting back.
const claimPatience = 60 * time.Second

// claimed says whether this lab is the one that changed the setting.
func (l *Lab) claimed(name string) bool {
	holder, err := os.ReadFile(claimPath(name))
	return err == nil && string(holder) == l.prefix()
}

// claim makes this lab the only one that changes the setting.
func (l *Lab) claim(ctx context.Context, name string) error {
	// The claim appears with its content: a half-written one would belong to nobody.
	mine := claimPath(name) + "." + l.prefix()
	if err := os.WriteFile(mine, []byte(l.prefix()), 0o644); err != nil {
		return fmt.Errorf("claim %s: %w", name, err)
	}
	defer os.Remove(mine)
	ctx, cancel := context.WithTimeout(ctx, claimPatience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := os.Link(mine, claimPath(name))
		if err == nil {
			return nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("claim %s: %w", name, err)
		}
		select {
		case <-ctx.Done():
			holder, _ := os.ReadFile(claimPath(name))
			return fmt.Errorf("%s is changed by another lab (%s, see %s); take that one down first: %w",
				name, holder, claimPath(name), ctx.Err())
		case <-tick.C:
		}
	}
}

// setMachineSysctl changes a setting of the whole machine, its old value noted first.
func (l *Lab) setMachineSysctl(ctx context.Context, name, value string) error {
	if err := l.note(entry{Do: "claim", Name: name}); err != nil {
		return err
	}
	if err := l.claim(ctx, name); err != nil {
		return err
	}
	old, err := os.ReadFile(sysctlPath(name))
	if err != nil {
		return fmt.Errorf("read %s, to be able to restore it: %w", name, err)
	}
	if err := l.note(entry{Do: "machine_sysctl", Name: name, Old: strings.TrimSpace(string(old))}); err != nil {
		return err
	}
	if err := os.WriteFile(sysctlPath(name), []byte(value), 0); err != nil {
		return fmt.Errorf("set %s to %q: %w", name, value, err)
	}
	return nil
}

// heirScript waits until its standard input ends, and then writes back the old
// values of those settings that are still claimed: by $1, in threes of claim,
// setting and value.
const heirScript = `cat >/dev/null; me=$1; shift
while [ $# -ge 3 ]; do [ "$(cat "$1")" = "$me" ] && printf '%s' "$3" >"$2"; shift 3; done`

// heir starts a process that takes the machine-wide changes back should this one
// be killed: its standard input ends with us, whatever ends us. stop ends it; after
// disarm it finds nothing to do. Without it a killed lab left the whole machine short
// of files until somebody came and ran `plimsoll lab down`.
func (l *Lab) heir() (stop func(), err error) {
	entries, err := l.readJournal()
	if err != nil {
		return nil, err
	}
	argv := []string{"-c", heirScript, "heir", l.prefix()}
	for _, e := range slices.Backward(entries) {
		if e.Do == "machine_sysctl" {
			argv = append(argv, claimPath(e.Name), sysctlPath(e.Name), e.Old)
		}
	}
	cmd := exec.Command("sh", argv...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // ^C is for us
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("process that restores the machine's settings if this one is killed: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("process that restores the machine's settings if this one is killed: %w", err)
	}
	return func() {
		_ = in.Close()
		_ = cmd.Wait() // not 0 where nothing was left to restore
	}, nil
}

// restoreSysctl writes a machine-wide setting's old value back, unless that was
// done before: then the setting may be another lab's by now.
func (l *Lab) restoreSysctl(e entry) error {
	if !slices.Contains(machineSysctls, e.Name) {
		return fmt.Errorf("journal names setting %s, which no case may change: left alone", e.Name)
	}
	if !l.claimed(e.Name) {
		return nil
	}
	if err := os.WriteFile(sysctlPath(e.Name), []byte(e.Old), 0); err != nil {
		return fmt.Errorf("restore %s to %s: %w", e.Name, e.Old, err)
	}
	return nil
}

// release gives the claim on a setting back, if this lab has it.
func (l *Lab) release(name string) error {
	if !slices.Contains(machineSysctls, name) || !l.claimed(name) {
		return nil
	}
	if err := os.Remove(claimPath(name)); err != nil {
		return fmt.Errorf("release %s: %w", name, err)
	}
	return nil
}
