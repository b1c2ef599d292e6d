package refusals

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestText(t *testing.T) {
	s := Seen{Snapshot{Refusals: []Refusal{{1, "app", "mmap", "ENOMEM", 1200}, {1, "vsftpd", "bind", "EADDRINUSE", 3}}}, 10 * time.Second}
	want := `10 s: 1,203 system calls were refused for want of something (120/s).

process  call  error       calls  calls/s
app      mmap  ENOMEM      1,200  120
vsftpd   bind  EADDRINUSE  3      0.3
`
	if d := cmp.Diff(want, s.Text(80)); d != "" {
		t.Error(d)
	}
	if got, want := (Seen{Elapsed: time.Second}).Text(80), "1 s: 0 system calls were refused for want of something (0/s).\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
