package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/layout"
	"plimsoll/internal/lazy"
)

// group is a control group with processes in it: its path as they name it themselves,
// and the first of them.
type group struct {
	path string
	pid  int
}

// maxGroup is the most bytes of a process's list of control groups that are read.
const maxGroup = 16 << 10

// groupOf is the control group of the process whose directory it is, as /proc/PID/cgroup
// has it: that of version 2 where it is in one, else that in which systemd keeps it,
// else any. "" where it is in none.
func groupOf(dir string) (string, error) {
	b, err := ReadHead(dir+"/cgroup", maxGroup)
	return parseGroup(b), err
}

func parseGroup(b []byte) (path string) {
	best := 0
	for line := range bytes.Lines(b) {
		_, rest, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(":"))
		controllers, p, ok := bytes.Cut(rest, []byte(":"))
		worth := 1
		switch string(controllers) {
		case "":
			worth = 3
		case "name=systemd":
			worth = 2
		}
		if ok && len(p) > 1 && p[0] == '/' && worth > best {
			path, best = string(p), worth
		}
	}
	return path
}

// within says whether a control group is another one, or beneath it.
func within(path, of string) bool {
	return path == of || strings.HasPrefix(path, of) && path[len(of)] == '/'
}

// groups lists those control groups, cut off behind the first part that is named so,
// in which there are processes, with the lowest PID of each, in the order of these.
func groups(proc string, named func(part string) bool) ([]group, error) {
	entries, err := numbered(proc)
	if err != nil {
		return nil, err
	}
	var list []group
	for _, e := range entries {
		path, err := groupOf(filepath.Join(proc, strconv.Itoa(e.number)))
		if err != nil {
			continue // it has ended
		}
		end := 0
		for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
			end += 1 + len(part)
			if named(part) {
				path = path[:end]
				break
			}
		}
		if end == 0 || !named(filepath.Base(path)) {
			continue
		}
		i := slices.IndexFunc(list, func(g group) bool { return g.path == path })
		if i < 0 {
			list = append(list, group{path, e.number})
		} else {
			list[i].pid = min(list[i].pid, e.number)
		}
	}
	slices.SortFunc(list, func(a, b group) int { return a.pid - b.pid })
	return list, nil
}

// unitTypes are what the name of a unit with processes may end with.
var unitTypes = []string{".service", ".scope", ".slice", ".socket", ".mount", ".swap"}

// unit finds the control group of a systemd unit that runs. One in the machine's own
// system.slice comes before one in a container; a user's own units are his alone.
func unit(proc, name string, trusted func(path string) error) (group, error) {
	if !slices.ContainsFunc(unitTypes, func(t string) bool { return strings.HasSuffix(name, t) }) {
		name += ".service"
	}
	list, err := groups(proc, func(part string) bool { return part == name })
	if err != nil {
		return group{}, err
	}
	for _, g := range list {
		if g.path == "/system.slice/"+name {
			return g, nil
		}
	}
	list, left := sift(list, trusted)
	switch {
	case len(list) == 0 && left != nil:
		return group{}, fmt.Errorf("no unit %s but one of which nobody knows that it is: %w; name a process of it that you know, pid:N", name, left)
	case len(list) == 0:
		return group{}, fmt.Errorf("no process runs in a unit %s; systemctl status %s says more: %w", name, layout.Quote(name), fs.ErrNotExist)
	case len(list) == 1:
		return list[0], nil
	}
	return group{}, fmt.Errorf("several units are called %s: %s; name one by one of its processes, pid:N", name, paths(list))
}

func paths(list []group) string {
	var all []string
	for _, g := range list[:min(len(list), 8)] {
		all = append(all, fmt.Sprintf("%s (process %d)", layout.Line(g.path), g.pid))
	}
	return strings.Join(all, ", ")
}

// containerPart is the part of a control group's path that is a container's: of docker,
// podman, CRI-O, containerd and nerdctl, with systemd or without. Podman's and CRI-O's
// monitor of a container (conmon) has one beside it.
var containerPart = lazy.Regexp(`^(?:([a-z-]+)-)?([0-9a-f]{64})(?:\.scope)?$`)

func containerID(part string) string {
	m := containerPart().FindStringSubmatch(part)
	if m == nil || strings.HasSuffix(m[1], "conmon") {
		return ""
	}
	return m[2]
}

// shortestID is the shortest beginning of an ID that names a container.
const shortestID = 4

var idPrefix = lazy.Regexp(`^[0-9a-f]{4,64}$`)

// container finds the control group of a container that runs, by the beginning of its ID
// or by its name; root is where the container engines' files are looked for. A user
// can give a control group of his own any name, so that one is none.
func container(root, name string, trusted func(path string) error) (group, error) {
	list, err := groups(filepath.Join(root, "proc"), func(part string) bool { return containerID(part) != "" })
	if err != nil {
		return group{}, err
	}
	list, left := sift(list, trusted)
	var found []group
	var known []string
	for _, g := range list {
		id := containerID(filepath.Base(g.path))
		names := containerNames(root, id)
		known = append(known, strings.Join(append([]string{id[:12]}, names...), " "))
		if slices.Contains(names, name) {
			found = append(found, g)
		}
	}
	if len(found) == 0 && idPrefix().MatchString(name) {
		for _, g := range list {
			if strings.HasPrefix(containerID(filepath.Base(g.path)), name) {
				found = append(found, g)
			}
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return group{}, fmt.Errorf("several containers are called %q: %s; name one by its ID", name, paths(found))
	case left != nil:
		return group{}, fmt.Errorf("no container %q but perhaps one of which nobody knows that it is: %w; name a process of it that you know, pid:N", name, left)
	case len(known) == 0:
		return group{}, fmt.Errorf("no container %q: none runs here: %w", name, fs.ErrNotExist)
	}
	slices.Sort(known)
	known = slices.Compact(known)
	return group{}, fmt.Errorf("no container %q; there run %s; an ID, or %d characters of it, does it where a name is not known: %w",
		name, layout.Line(strings.Join(known[:min(len(known), 20)], ", ")), shortestID, fs.ErrNotExist)
}

// sift keeps the groups that are trusted, and returns why the first of the others is not.
func sift(list []group, trusted func(path string) error) (kept []group, left error) {
	for _, g := range list {
		if err := trusted(g.path); err == nil {
			kept = append(kept, g)
		} else if left == nil {
			left = fmt.Errorf("%s (process %d): %w", layout.Line(g.path), g.pid, err)
		}
	}
	return kept, left
}

// TrustedGroup says why the name of a control group proves nothing: somebody who is neither
// root nor we can make groups there (systemd delegates to each user), so that he may have
// named it. Where control groups are not mounted for us, process 1's are looked at.
func TrustedGroup(path string) error {
	for _, pid := range []string{"thread-self", "1"} {
		mounts, err := ReadHead("/proc/"+pid+"/mounts", maxMounts)
		if err != nil {
			continue
		}
		seen := false
		for _, mount := range groupMounts(string(mounts)) {
			is, err := trustedBelow("/proc/"+pid+"/root"+mount, path)
			if seen = seen || is; err != nil {
				return err
			}
		}
		if seen {
			return nil
		}
	}
	return errors.New("control groups cannot be looked at here (is /sys/fs/cgroup mounted?), so whose it is cannot be told")
}

// maxMounts is the most bytes of a list of mounts that are read.
const maxMounts = 1 << 20

// groupMounts are where hierarchies of control groups are mounted, in /proc/PID/mounts.
func groupMounts(mounts string) (list []string) {
	for line := range strings.Lines(mounts) {
		if f := strings.Fields(line); len(f) > 3 && (f[2] == "cgroup" || f[2] == "cgroup2") && !strings.Contains(f[1], `\`) {
			list = append(list, f[1])
		}
	}
	return list
}

// trustedBelow looks at a group in one hierarchy, if it is there, and at those above it.
func trustedBelow(mount, path string) (is bool, err error) {
	if slices.Contains(strings.Split(path, "/"), "..") {
		return false, errors.New("it lies outside of what we see of the control groups")
	}
	for at := filepath.Join(mount, path); ; at = filepath.Dir(at) {
		var st unix.Stat_t
		err := unix.Stat(at, &st)
		switch {
		case !is && err != nil:
			return false, nil
		case err != nil:
			return true, fmt.Errorf("look at the control group %s: %w", at, err)
		case st.Uid != 0 && int(st.Uid) != os.Geteuid():
			return true, fmt.Errorf("the control group is user %d's, who can name it as he likes", st.Uid)
		case st.Mode&0o022 != 0:
			return true, fmt.Errorf("others can make control groups in %s, and name them as they like", at)
		}
		if is = true; at == mount {
			return true, nil
		}
	}
}

// maxConfig is the most bytes of a container engine's file that are read.
const maxConfig = 4 << 20

// containerNames are the names that container engines keep for an ID, in files of root's.
func containerNames(root, id string) (names []string) {
	add := func(name string) {
		if name != "" && len(name) <= 300 && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var docker struct{ Name string }
	if readConfig(filepath.Join(root, "var/lib/docker/containers", id, "config.v2.json"), &docker) {
		add(strings.TrimPrefix(docker.Name, "/"))
	}
	for _, bundle := range []string{"run/containerd/io.containerd.runtime.v2.task/*/" + id + "/config.json", "run/containers/storage/*-containers/" + id + "/userdata/config.json"} {
		var spec struct{ Annotations map[string]string }
		readConfig(first(filepath.Join(root, bundle)), &spec)
		add(spec.Annotations["nerdctl/name"])
		for _, keys := range [][2]string{{"io.kubernetes.cri.sandbox-name", "io.kubernetes.cri.container-name"}, {"io.kubernetes.pod.name", "io.kubernetes.container.name"}} {
			if pod, name := spec.Annotations[keys[0]], spec.Annotations[keys[1]]; name != "" {
				add(name)
				add(pod + "/" + name)
			}
		}
	}
	var store []struct {
		ID    string
		Names []string
	}
	readConfig(first(filepath.Join(root, "var/lib/containers/storage/*-containers/containers.json")), &store)
	for _, c := range store {
		if c.ID == id {
			for _, n := range c.Names {
				add(n)
			}
		}
	}
	return names
}

// first is the first file that a pattern of ours matches, "" for none.
func first(pattern string) string {
	list, _ := filepath.Glob(pattern) // the pattern is whole
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// readConfig reads a file in JSON, if it is there and may be read: a container has its ID
// besides.
func readConfig(path string, into any) bool {
	if path == "" {
		return false
	}
	b, err := ReadHead(path, maxConfig)
	return err == nil && json.Unmarshal(b, into) == nil
}
