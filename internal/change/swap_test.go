package change

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"plimsoll/internal/probe/livetest"
)

// A container's root may swap a directory for a link at any moment. What it leads
// to on the host, and not in the container, must stay as it is.
func TestADirectorySwappedWhileAFileIsEditedReachesNothingOfTheHosts(t *testing.T) {
	t.Parallel()
	host := t.TempDir()
	s := livetest.Start(t, map[string]string{"conf/f": "theirs", "ready/x": ""},
		"unshare", "-m", "--propagation", "private", "sh", "-c", "mount -t tmpfs plcg "+host+" && mkdir DIR/mounted && exec sleep 600")
	s.Until("the mount is there", func() bool {
		_, err := os.Stat(s.Dir + "/mounted")
		return err == nil
	})
	file := filepath.Join(host, "f")
	if err := os.WriteFile(file, []byte("the host's"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(host, s.Dir+"/link"); err != nil {
		t.Fatal(err)
	}
	p, err := processOf(s.PID)
	if err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, s.Dir+"/conf", unix.AT_FDCWD, s.Dir+"/link", unix.RENAME_EXCHANGE)
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	at := target{Kind: inFile, Path: s.Dir + "/conf/f", Process: &p}
	done := 0
	for range 500 {
		if v, err := at.get(); err == nil && v == "the host's" {
			t.Fatal("the host's file was read")
		}
		if at.set("edited") == nil {
			done++
		}
		names, err := os.ReadDir(host)
		if err != nil || len(names) != 1 {
			t.Fatalf("after %d edits the host's directory has %v, %v", done, names, err)
		}
		if now := read(t, file); now != "the host's" {
			t.Fatalf("after %d edits the host's file is %q", done, now)
		}
	}
	if done == 0 {
		t.Error("it was never the directory's turn")
	}
}
