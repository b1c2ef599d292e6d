package doing

import (
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// What a process is about is read from the kernel, with what the descriptor leads to.
func TestOf(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/fd", 0o755); err != nil {
		t.Fatal(err)
	}
	for fd, link := range map[int]string{3: "socket:[123]", 4: "pipe:[5]", 5: "/srv/data"} {
		if err := os.Symlink(link, dir+"/fd/"+strconv.Itoa(fd)); err != nil {
			t.Fatal(err)
		}
	}
	read, write := strconv.Itoa(unix.SYS_READ), strconv.Itoa(unix.SYS_WRITE)
	for said, want := range map[string]string{
		"running": "running", read + " 0x3 0x7f 0x1": "socket_read", read + " 0x4 0x7f": "pipe", write + " 0x4 0x7f": "pipe_write", read + " 0x5 0x7f": "disk", read + " 0x9 0x7f": "other",
		strconv.Itoa(unix.SYS_ACCEPT4) + " 0x3 0x0": "accept", "-1 0x7ffd 0x7f": "other", "": "-",
	} {
		if err := os.WriteFile(dir+"/syscall", []byte(said+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := Of(dir); got != want {
			t.Errorf("%q: %s, want %s", said, got, want)
		}
	}
}
