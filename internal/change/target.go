package change

import (
	"fmt"
	"slices"
	"strings"
)

// targetKind is what kind of thing holds a value.
type targetKind string

const (
	inKernel targetKind = "kernel"
	inFile   targetKind = "file"
	inLimit  targetKind = "limit"
	inCPUs   targetKind = "cpus"
	inNice   targetKind = "nice"
	inPolicy targetKind = "policy"
	inSocket targetKind = "socket"
	inRing   targetKind = "ring"
)

// target is where a value is, written so that it is found on a later day, or
// recognised as gone.
type target struct {
	Kind targetKind `json:"sort"`
	// Path is the kernel's file, or a service's, as the service calls it.
	Path string `json:"path,omitempty"`
	// Name is the limit, or the interface and ring.
	Name string `json:"name,omitempty"`
	// Listen is a listener as the socket signals write it.
	Listen string `json:"listen,omitempty"`
	// Process is whose value it is; for a file, through whom it is reached when
	// it is in another mount namespace.
	Process *process `json:"process,omitempty"`
	// Net is the network namespace on which the value depends.
	Net *netns `json:"net,omitempty"`
	// Dir is the inode of a control group.
	Dir uint64 `json:"dir,omitempty"`
}

// setting is a value that can be read and written. Both return errGone when
// what it belongs to has ended.
type setting interface {
	get() (string, error)
	set(v string) error
}

func (p target) setting() (setting, error) {
	switch p.Kind {
	case inKernel:
		k := kernelFile{path: p.Path, in: machineWide(p.Path), dir: p.Dir}
		if p.Dir != 0 {
			k.in = withGroups
		}
		if p.Net != nil {
			k.in = p.Net.do
			if strings.HasPrefix(p.Path, "/sys/") {
				k.in = p.Net.doSys
			}
		}
		return k, nil
	case inFile:
		return p.file(), nil
	}
	if p.Net != nil {
		switch p.Kind {
		case inSocket:
			return listener{*p.Net, p.Listen}, nil
		case inRing:
			return ring{*p.Net, p.Name}, nil
		}
	}
	if p.Process != nil {
		switch p.Kind {
		case inLimit:
			return limit{*p.Process, p.Name}, nil
		case inCPUs:
			return affinity(*p.Process), nil
		case inNice:
			return nice(*p.Process), nil
		case inPolicy:
			return policy(*p.Process), nil
		}
	}
	return nil, fmt.Errorf("the journal names a target of kind %q, which this plimsoll does not know; use the one that wrote it", p.Kind)
}

// file is the configuration file that a target is.
func (p target) file() confFile { return confFile{p.Path, p.Process} }

func (p target) get() (string, error) {
	s, err := p.setting()
	if err != nil {
		return "", err
	}
	return s.get()
}

func (p target) set(v string) error {
	s, err := p.setting()
	if err != nil {
		return err
	}
	return s.set(v)
}

// untilReboot says whether a reboot takes the value back.
func (p target) untilReboot() bool { return p.Kind != inFile }

// String names the target for people.
func (p target) String() string {
	switch {
	case p.Path != "":
		return p.Path
	case p.Listen != "":
		return "the queue of " + p.Listen
	case p.Process != nil:
		return strings.TrimSpace(fmt.Sprintf("%s %s of process %d", p.Kind, p.Name, p.Process.PID))
	}
	return string(p.Kind) + " " + p.Name
}

// threadsOf says whether each thread has one of the values of another text: the
// threads themselves may be others by now.
func (p target) threadsOf(now, of string) bool {
	if p.Kind != inCPUs && p.Kind != inNice && p.Kind != inPolicy {
		return false
	}
	known := threadValues(of)
	return !slices.ContainsFunc(threadValues(now), func(v string) bool { return !slices.Contains(known, v) })
}

// same says whether two targets are one.
func (p target) same(q target) bool {
	if p.Kind != q.Kind || p.Path != q.Path || p.Name != q.Name || p.Listen != q.Listen {
		return false
	}
	if p.Process != nil && q.Process != nil && *p.Process != *q.Process {
		return false
	}
	return p.Net == nil || q.Net == nil || p.Net.Inode == q.Net.Inode
}
