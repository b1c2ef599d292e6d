package lab

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// up makes the hosts and does all steps of a case but the machine-wide ones.
func (l *Lab) up(ctx context.Context, c *Case, mends []string) (values, error) {
	if why := lacks(c.needs(false)); why != "" {
		return nil, fmt.Errorf("case %s: %s", c.ID, why)
	}
	dir := filepath.Join(l.stateDir(), workName)
	v, err := c.values(dir, mends)
	if err != nil {
		return nil, err
	}
	v["disk"] = l.diskDir(workName)
	if err := l.note(entry{Do: "case", Name: c.ID}); err != nil {
		return nil, err
	}
	if err := l.note(entry{Do: "dir", Name: c.ID, Path: dir}); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("work directory: %w", err)
	}
	if err := l.makeHosts(ctx, slices.ContainsFunc(c.Steps, Step.onPath)); err != nil {
		return nil, err
	}
	for i, s := range c.Steps {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("case %s: interrupted: %w", c.ID, err)
		}
		if err := l.apply(ctx, s, v); err != nil {
			return nil, fmt.Errorf("case %s, step %d: %w", c.ID, i+1, err)
		}
	}
	return v, nil
}

func (l *Lab) apply(ctx context.Context, s Step, v values) error {
	switch {
	case s.Sysctl != nil:
		value, err := v.render(s.Sysctl.Name, s.Sysctl.Value)
		if err != nil || value == "" {
			return err
		}
		return setSysctl(l.netns(s.Sysctl.Host), s.Sysctl.Name, value)
	case s.NFT != nil:
		return l.loadRules(ctx, s.NFT, v)
	case s.Qdisc != nil:
		return l.addQdisc(ctx, s.Qdisc, v)
	case s.Offload != nil:
		return command(ctx, "ip", "-n", l.netns(s.Offload.Host), "link", "set", "eth0", "gso_max_segs", strconv.Itoa(s.Offload.Segments))
	case s.File != nil:
		return writeFile(l.Cases, s.File, v)
	case s.DiskFile != nil:
		return l.writeDiskFile(s.DiskFile, v["disk"])
	case s.Cgroup != nil:
		return l.makeCgroup(s.Cgroup, v)
	case s.Nginx != nil:
		return l.startNginx(ctx, s.Nginx, v)
	case s.PHPFPM != nil:
		return l.startPHPFPM(ctx, s.PHPFPM, v)
	case s.Process != nil:
		return l.startProcess(ctx, s.Process, v)
	}
	return nil // machine-wide: see arm
}

// arm changes what the whole machine feels, right before the load.
func (l *Lab) arm(ctx context.Context, c *Case, v values) error {
	for _, s := range c.Steps {
		if s.MachineSysctl == nil {
			continue
		}
		value, err := v.render(s.MachineSysctl.Name, s.MachineSysctl.Value)
		if err != nil {
			return err
		}
		if value == "" {
			continue
		}
		if err := l.setMachineSysctl(ctx, s.MachineSysctl.Name, value); err != nil {
			return fmt.Errorf("case %s: %w", c.ID, err)
		}
	}
	return nil
}

func (l *Lab) loadRules(ctx context.Context, n *NFT, v values) error {
	rules, err := v.render("nft rules", n.Rules)
	if err != nil || strings.TrimSpace(rules) == "" {
		return err
	}
	return inNetNS(l.netns(n.Host), func() error {
		cmd := exec.CommandContext(ctx, "nft", "-f", "-")
		cmd.Stdin = strings.NewReader(rules)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("nft -f in %s: %s: %w", l.netns(n.Host), bytes.TrimSpace(out), err)
		}
		return nil
	})
}

func (l *Lab) addQdisc(ctx context.Context, q *Qdisc, v values) error {
	spec, err := v.render("qdisc", q.Spec)
	if err != nil || strings.TrimSpace(spec) == "" {
		return err
	}
	device := cmp.Or(q.Device, "eth0")
	return command(ctx, "tc", append([]string{"-n", l.netns(q.Host), "qdisc", "add", "dev", device, "root"}, strings.Fields(spec)...)...)
}

func writeFile(files fs.FS, f *File, v values) error {
	text, err := f.text(files)
	if err != nil {
		return err
	}
	text, err = v.render(f.Path, text)
	if err != nil {
		return err
	}
	path := filepath.Join(v["dir"], f.Path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("file %s: %w", f.Path, err)
	}
	mode := fs.FileMode(0o644)
	if f.Executable {
		mode = 0o755
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		return fmt.Errorf("file %s: %w", f.Path, err)
	}
	return nil
}

// ownDir makes a directory beside others', or takes one that is ours alone: what somebody
// prepared there could lead elsewhere.
func ownDir(dir string) error {
	err := os.Mkdir(dir, 0o755)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || int(st.Uid) != os.Geteuid() || info.Mode()&0o022 != 0 {
		return fmt.Errorf("%s is there and not the lab's own; remove it", dir)
	}
	return nil
}

func (l *Lab) writeDiskFile(f *DiskFile, dir string) error {
	if err := l.note(entry{Do: "dir", Name: f.Path, Path: dir}); err != nil {
		return err
	}
	if err := ownDir(dir); err != nil {
		return fmt.Errorf("file %s: %w", f.Path, err)
	}
	path := filepath.Join(dir, f.Path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("file %s: %w", f.Path, err)
	}
	data := make([]byte, f.Kilobytes<<10)
	rand.Read(data)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return fmt.Errorf("file %s: %w", f.Path, err)
	}
	return nil
}

func (l *Lab) startNginx(ctx context.Context, s *Service, v values) error {
	program, err := findProgram("nginx")
	if err != nil {
		return err
	}
	config := filepath.Join(v["dir"], s.Config)
	argv := []string{program, "-p", v["dir"], "-e", filepath.Join(v["dir"], "nginx-start.log"), "-c", config}
	return l.startAndWait(ctx, s, "nginx", v, argv)
}

func (l *Lab) startPHPFPM(ctx context.Context, s *Service, v values) error {
	program, err := findPHPFPM()
	if err != nil {
		return err
	}
	config := filepath.Join(v["dir"], s.Config)
	return l.startAndWait(ctx, s, "php-fpm", v, []string{program, "--nodaemonize", "--fpm-config", config})
}

func (l *Lab) startAndWait(ctx context.Context, s *Service, name string, v values, argv []string) error {
	text, err := v.renderAll(name, s.texts())
	if err != nil {
		return err
	}
	if text[0] != "" {
		argv = append([]string{"prlimit", "--nproc=" + text[0]}, argv...)
	}
	if text[1] != "" {
		argv = append([]string{"taskset", "--cpu-list", text[1]}, argv...)
	}
	if s.Cgroup != "" {
		argv = l.enterCgroup(s.Cgroup, argv)
	}
	c, err := l.start(l.netns(s.Host), name, v["dir"], 0, argv)
	if err != nil {
		return err
	}
	if s.Socket != "" {
		return c.waitListening(ctx, "unix", filepath.Join(v["dir"], s.Socket))
	}
	return c.waitListening(ctx, "tcp", strconv.Itoa(s.Listen))
}

func (l *Lab) startProcess(ctx context.Context, p *Process, v values) error {
	if p.Unless != "" && v[p.Unless] != "" {
		return nil
	}
	argv, err := v.renderAll(p.Name, p.Command)
	if err != nil {
		return err
	}
	if p.Cgroup != "" {
		argv = l.enterCgroup(p.Cgroup, argv)
	}
	var started []*child
	for i := range max(p.Count, 1) {
		c, err := l.start(l.netns(p.Host), fmt.Sprintf("%s-%d", p.Name, i+1), v["dir"], p.Nice, argv)
		if err != nil {
			return err
		}
		if p.Listen != 0 && i == 0 {
			if err := c.waitListening(ctx, "tcp", strconv.Itoa(p.Listen)); err != nil {
				return err
			}
		}
		started = append(started, c)
	}
	if !p.Ends {
		return nil
	}
	for _, c := range started {
		if err := c.waitEnd(ctx); err != nil {
			return err
		}
	}
	return nil
}
