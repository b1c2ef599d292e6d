package reason

import (
	"os"
	"strconv"

	"plimsoll/internal/host"
)

// running is what a thread does that waits for nothing.
const running = "running"

// OfThread says what a thread does: a reason to wait, or running. An error is
// fs.ErrNotExist or ESRCH where it has ended.
func OfThread(tid int) (string, error) {
	dir := "/proc/" + strconv.Itoa(tid)
	line, err := os.ReadFile(dir + "/syscall")
	if err != nil {
		return "", err
	}
	r, waits := OfCall(string(line), func(fd uint64) string {
		to, _ := os.Readlink(dir + "/fd/" + strconv.FormatUint(fd, 10)) // "" where it is closed by now
		return to
	})
	if !waits {
		return running, nil
	}
	if r == Other {
		// A call that waits for no one thing says nothing; that it sleeps uninterruptibly in it does.
		st, err := host.StatOf(tid)
		if err != nil {
			return "", err
		}
		if st.State == 'D' {
			r = UninterruptibleOther
		}
	}
	return r.String(), nil
}
