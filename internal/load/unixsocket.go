package load

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// longestSocket is how long the path of a Unix socket may be; its struct has no room for more.
const longestSocket = len(unix.RawSockaddrUnix{}.Path) - 1

func checkSocket(path string) error {
	if len(path) > longestSocket {
		return fmt.Errorf("unix socket: a path of %d bytes: want at most %d; name it from a directory nearer to it", len(path), longestSocket)
	}
	if path == "@" {
		return errors.New("unix socket @: want a name after it")
	}
	return nil
}

// socketAddress is a path as the kernel's struct sockaddr_un; one that begins with @ is an abstract name.
func socketAddress(path string) (family int, raw []byte) {
	raw = binary.NativeEndian.AppendUint16(nil, unix.AF_UNIX)
	if path[0] == '@' {
		return unix.AF_UNIX, append(append(raw, 0), path[1:]...)
	}
	return unix.AF_UNIX, append(append(raw, path...), 0)
}
