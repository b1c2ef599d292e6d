package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// kernel is one that is looked at; without a suite it is the one that runs.
type kernel struct {
	name, of string
	ubuntu   bool
	suite    string
	meta     string   // the package that depends on the newest kernel of the suite
	types    []string // the architectures of which the types are recorded
}

var kernels = []kernel{
	{"5.10", "Debian 11", false, "bullseye", "linux-image-", []string{"amd64"}},
	{"5.15", "Ubuntu 22.04", true, "jammy", "linux-image-generic", []string{"amd64"}},
	{"6.1", "Debian 12", false, "bookworm", "linux-image-", []string{"amd64", "arm64"}},
	{"6.12", "Debian 13", false, "trixie", "linux-image-", []string{"amd64", "arm64"}},
	{"here", "this machine", false, "", "", nil},
	{"newest", "Debian experimental", false, "experimental", "linux-image-", []string{"amd64", "arm64"}},
}

var errSkipped = errors.New("it cannot be had here")

// store keeps packages, and what is in them, outside of the project.
type store struct {
	folder string
	ubuntu string // its mirror; "" if none is named
}

// unpacked is a kernel's files.
type unpacked struct {
	image   string
	modules string // the folder in which lib/modules is
	release string
}

// kernelPackage are the packages that hold a kernel and its modules.
var kernelPackage = regexp.MustCompile(`^ *\|?Depends: (linux-(?:image|binary|modules|modules-extra)-\d\S*)$`)

// fetch downloads a kernel's packages, if they are not here yet, and unpacks them.
func (s *store) fetch(k kernel, arch string) (unpacked, error) {
	apt, err := s.apt(k)
	if err != nil {
		return unpacked{}, err
	}
	fmt.Printf("%s: asking for the packages of %s, %s\n", k.name, k.of, arch)
	if _, err := command("apt-get", append(apt, "-qq", "update")...); err != nil {
		return unpacked{}, err
	}
	names, err := packages(apt, k, arch)
	if err != nil {
		return unpacked{}, err
	}
	debs := filepath.Join(s.folder, "packages", k.suite+"-"+arch)
	if err := os.MkdirAll(debs, 0o755); err != nil {
		return unpacked{}, err
	}
	get := exec.Command("apt-get", append(append(apt, "-qq", "download"), names...)...)
	get.Dir = debs
	if out, err := get.CombinedOutput(); err != nil {
		return unpacked{}, fmt.Errorf("download %v: %w: %s", names, err, out)
	}
	into := filepath.Join(s.folder, "kernels", strings.TrimSuffix(names[0], ":"+arch)+"-"+arch)
	if _, err := os.Stat(into); err == nil {
		return find(into)
	}
	if err := unpackAll(names, debs, into); err != nil {
		return unpacked{}, err
	}
	return find(into)
}

// unpackAll unpacks packages into a folder that is there only once all of them are in it.
func unpackAll(names []string, debs, into string) error {
	unready := into + ".unready"
	if err := errors.Join(os.RemoveAll(unready), os.MkdirAll(unready, 0o755)); err != nil {
		return err
	}
	for _, name := range names {
		name, _, _ = strings.Cut(name, ":")
		files, err := filepath.Glob(filepath.Join(debs, name+"_*.deb"))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("%s is not in %s after its download: %v", name, debs, err)
		}
		slices.Sort(files)
		if _, err := command("dpkg", "-x", files[len(files)-1], unready); err != nil {
			return err
		}
	}
	return os.Rename(unready, into)
}

// apt returns the options by which apt-get works in folders of its own, with the
// packages of one suite.
func (s *store) apt(k kernel) ([]string, error) {
	mirror, keys := s.ubuntu, filepath.Join(s.folder, "ubuntu-archive-keyring.gpg")
	if k.ubuntu {
		if mirror == "" {
			return nil, fmt.Errorf("%w: name a mirror of Ubuntu's packages with -ubuntu", errSkipped)
		}
		if err := s.ubuntuKeys(keys); err != nil {
			return nil, err
		}
	} else {
		var err error
		if mirror, err = ownMirror(); err != nil {
			return nil, err
		}
		keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
	}
	root := filepath.Join(s.folder, "apt", k.suite)
	for _, folder := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			return nil, err
		}
	}
	line := ""
	for _, suite := range suites(k) {
		line += fmt.Sprintf("deb [arch=%s signed-by=%s] %s %s main\n", strings.Join(k.types, ","), keys, mirror, suite)
	}
	list := filepath.Join(root, "sources.list")
	err := errors.Join(os.WriteFile(list, []byte(line), 0o644), os.WriteFile(filepath.Join(root, "status"), nil, 0o644))
	return []string{"-o", "Dir::State=" + root + "/state", "-o", "Dir::State::status=" + root + "/status", "-o", "Dir::Cache=" + root + "/cache",
		"-o", "Dir::Etc::sourcelist=" + list, "-o", "Dir::Etc::sourceparts=-", "-o", "APT::Architecture=amd64",
		"-o", "APT::Architectures::=amd64", "-o", "APT::Architectures::=arm64", "-o", "APT::Sandbox::User=root"}, err
}

// suites of Ubuntu's kernels are two: its first one is never renewed.
func suites(k kernel) []string {
	if k.ubuntu {
		return []string{k.suite, k.suite + "-updates"}
	}
	return []string{k.suite}
}

// ubuntuKeys takes the keys with which Ubuntu signs from Debian's package of them.
func (s *store) ubuntuKeys(into string) error {
	if _, err := os.Stat(into); err == nil {
		return nil
	}
	apt, err := s.apt(kernel{suite: "trixie", types: []string{"amd64"}})
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "keys")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if _, err := command("apt-get", append(apt, "-qq", "update")...); err != nil {
		return err
	}
	get := exec.Command("apt-get", append(apt, "-qq", "download", "ubuntu-keyring")...)
	get.Dir = temp
	if out, err := get.CombinedOutput(); err != nil {
		return fmt.Errorf("download Ubuntu's keys: %w: %s", err, out)
	}
	files, err := filepath.Glob(temp + "/*.deb")
	if err != nil || len(files) != 1 {
		return fmt.Errorf("Ubuntu's keys are %v, %v: want one package", files, err)
	}
	if _, err := command("dpkg", "-x", files[0], temp); err != nil {
		return err
	}
	keys, err := os.ReadFile(temp + "/usr/share/keyrings/ubuntu-archive-keyring.gpg")
	if err != nil {
		return err
	}
	return os.WriteFile(into, keys, 0o644)
}

// ownMirror is where this machine takes Debian's packages from.
func ownMirror() (string, error) {
	out, err := command("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages")
	if err != nil {
		return "", err
	}
	for _, line := range strings.Split(string(out), "\n") {
		if uri := strings.TrimSuffix(line, "/"); strings.HasSuffix(uri, "/debian") {
			return uri, nil
		}
	}
	return "", fmt.Errorf("%w: this machine takes no packages from a mirror of Debian's", errSkipped)
}

// packages follows the kernel's package to those that hold its parts.
func packages(apt []string, k kernel, arch string) ([]string, error) {
	suffix := ":" + arch
	meta := k.meta
	if !k.ubuntu {
		meta += arch
	}
	var found []string
	for todo := []string{meta + suffix}; len(todo) > 0; todo = todo[1:] {
		out, err := command("apt-cache", append(apt, "depends", todo[0])...)
		if err != nil {
			return nil, err
		}
		for _, line := range strings.Split(string(out), "\n") {
			m := kernelPackage.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			name, _, _ := strings.Cut(m[1], ":")
			if !slices.Contains(found, name+suffix) {
				found, todo = append(found, name+suffix), append(todo, name+suffix)
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s depends on no kernel", meta)
	}
	return found, nil
}

// find looks for the image and the modules, which lie where the distribution puts them.
func find(folder string) (unpacked, error) {
	var u unpacked
	for _, at := range []string{"boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz"} {
		if images, _ := filepath.Glob(filepath.Join(folder, at)); len(images) > 0 {
			u.image = images[0]
		}
	}
	for _, at := range []string{folder, folder + "/usr"} {
		if releases, _ := filepath.Glob(at + "/lib/modules/[0-9]*"); len(releases) > 0 {
			u.modules, u.release = at, filepath.Base(releases[0])
		}
	}
	if u.image == "" || u.release == "" {
		return u, fmt.Errorf("%s: no kernel was found in it; remove it, and it is unpacked anew", folder)
	}
	return u, nil
}

func command(name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, args[len(args)-1], err, complaint.String())
	}
	return out, nil
}
