package kernel

import (
	"fmt"

	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

var (
	filesAllocated = &model.Signal{Name: "node_filefd_allocated", Kind: model.Gauge, Unit: "files",
		Help: "Open files of the machine.", Source: "/proc/sys/fs/file-nr", ByHand: "sysctl fs.file-nr"}
	filesMaximum = &model.Signal{Name: "node_filefd_maximum", Kind: model.Gauge, Unit: "files",
		Help: "Most open files of the machine (fs.file-max).", Source: "/proc/sys/fs/file-nr", ByHand: "sysctl fs.file-max"}
)

// FileNr reads how many files the machine has open.
func FileNr() probe.Probe {
	p := probe.Probe{Name: "filefd", Scope: probe.PerMachine, Cost: costFileNr,
		Blind: []string{"a process's own limit is nearly always reached first; see namedprocess_namegroup_worst_fd_ratio"}}
	return fromFiles(p, func() []source {
		return []source{{path: "proc/sys/fs/file-nr", hint: "no /proc/sys; is /proc mounted?",
			signals: []*model.Signal{filesAllocated, filesMaximum}, put: putFileNr}}
	})
}

func putFileNr(b []byte, out *probe.Out) error {
	v, err := parseFileNr(b)
	if err != nil {
		return err
	}
	out.Put(filesAllocated, float64(v[0]))
	out.Put(filesMaximum, float64(v[2]))
	return nil
}

// parseFileNr parses allocated, unused and maximum.
func parseFileNr(b []byte) ([3]uint64, error) {
	list, err := parseUints(b)
	if err != nil {
		return [3]uint64{}, err
	}
	if len(list) != 3 {
		return [3]uint64{}, fmt.Errorf("want 3 numbers, got %d", len(list))
	}
	return [3]uint64(list), nil
}
