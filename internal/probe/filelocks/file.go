package filelocks

import (
	"bytes"
	"strconv"
	"strings"

	"plimsoll/internal/host"
)

// maxFiles bounds the descriptors of a process that are looked through for the file.
const maxFiles = 256

// fileOf is the name of that file (DEVICE:INODE) as a process has it open; dir is the process's directory in /proc.
// Nobody asks the file system: one that does not answer would keep whoever asks.
func fileOf(dir, file string) (name string) {
	_, _ = host.EachDescriptor(dir, maxFiles, func(fd int, link []byte, err error) {
		if err != nil || name != "" || len(link) == 0 || link[0] != '/' {
			return
		}
		info, err := host.ReadFile(dir + "/fdinfo/" + strconv.Itoa(fd))
		if err == nil && isFile(info, file, func() ([]byte, error) { return host.ReadFile(dir + "/mountinfo") }) {
			name = strings.TrimSuffix(string(link), " (deleted)")
		}
	})
	return name
}

// isFile says whether an fdinfo is of that file: by a lock that is held through it, or by its inode (since Linux 5.14)
// and the device of its mount; inodes of two file systems have the same numbers.
func isFile(info []byte, file string, mountinfo func() ([]byte, error)) bool {
	device, inode, err := place(file)
	if err != nil {
		return false
	}
	var mount string
	same := false
	for line := range bytes.Lines(info) {
		f := bytes.Fields(line)
		switch {
		case len(f) > 6 && string(f[0]) == "lock:" && string(f[6]) == file:
			return true
		case len(f) == 2 && string(f[0]) == "mnt_id:":
			mount = string(f[1])
		case len(f) == 2 && string(f[0]) == "ino:":
			same = string(f[1]) == strconv.FormatUint(inode, 10)
		}
	}
	if !same {
		return false
	}
	mounts, err := mountinfo()
	if err != nil {
		return false
	}
	for line := range bytes.Lines(mounts) {
		if f := bytes.Fields(line); len(f) > 2 && string(f[0]) == mount {
			return string(f[2]) == device
		}
	}
	return false
}
