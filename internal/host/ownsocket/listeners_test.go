package ownsocket

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/host"
)

// Where we listen ourselves is found and can be connected to; another process's list has none of it.
func TestListeners(t *testing.T) {
	h, err := host.Open("local", "local")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	path := filepath.Join(t.TempDir(), "own.sock")
	for network, address := range map[string]string{"unix": path, "tcp4": "127.0.0.1:0"} {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		list, err := Listeners(h, os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(list, func(a Address) bool { return a.String() == l.Addr().String() || a.Path == path })
		if i < 0 {
			t.Fatalf("%s is not among %v", l.Addr(), list)
		}
		c, err := DialListener(t.Context(), h, list[i], os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if list, err = Listeners(h, 1); err == nil && slices.ContainsFunc(list, func(a Address) bool { return a.Path == path }) {
			t.Errorf("process 1 listens at %v, too", list)
		}
	}
}

func TestTables(t *testing.T) {
	const tcp = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:18EB 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0 100 0 0 10 0
   1: 00000000:18EC 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12 1 0 100 0 0 10 0
   2: 0100007F:18EB 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 11 1 0 100 0 0 10 0
   3: xx:18EB 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0 100 0 0 10 0
   4: 00000000000000000000000001000000:18EB 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 11 1 0 100 0 0 10 0
   5: 0000000000000000FFFF00000100007F:18ED 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 11 1 0 100 0 0 10 0
`
	const unix = `Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 11 /run/redis.sock
0000000000000000: 00000002 00000000 00010000 0001 01 12 /run/other.sock
0000000000000000: 00000002 00000000 00010000 0001 01 11 @abstract
0000000000000000: 00000003 00000000 00000000 0001 03 11 /run/connected.sock
`
	var got []string
	for _, a := range slices.Concat(tcpListeners([]byte(tcp), map[string]bool{"11": true}), unixListeners([]byte(unix), map[string]bool{"11": true})) {
		got = append(got, a.String())
	}
	if diff := cmp.Diff([]string{"127.0.0.1:6379", "[::1]:6379", "127.0.0.1:6381", "unix:/run/redis.sock"}, got); diff != "" {
		t.Error(diff)
	}
}
