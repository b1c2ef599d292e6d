package change

import "golang.org/x/sys/unix"

// fileID names a file for as long as it is held open.
type fileID struct{ Dev, Ino uint64 }

func idOf(fd int) (fileID, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return fileID{st.Dev, st.Ino}, err
}
