package filter

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"plimsoll/internal/capture/pcap"
)

// takes compiles an expression for Ethernet, and returns what it does with a packet.
func takes(t testing.TB, expression string, snap int) func([]byte) int {
	t.Helper()
	raw, err := Compile(expression, Options{Snap: snap})
	if err != nil {
		t.Fatal(err)
	}
	program, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatalf("%s: not all of %v is a program", expression, raw)
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return func(b []byte) int {
		n, err := vm.Run(b)
		if err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
		return n
	}
}

// expressions are some of each kind, and some of them together.
var expressions = []string{
	"", "ip", "ip6", "tcp", "udp", "icmp", "icmp6", "arp", "sctp",
	"host 10.78.1.2", "src host 10.78.1.2", "dst 10.78.1.2", "src or dst host 10.78.1.2", "src and dst host 10.78.1.2",
	"ip host 10.78.2.2", "arp host 10.78.2.2", "net 10.78.1.0/24", "src net 10", "dst net 10.78.2", "net 0.0.0.0/0", "ip net 128.0.0.0/1",
	"host fe80::1", "net fe80::/10", "ip6 net 2000::/3", "src net ff02::/16 or dst net ff02::/16", "ip6 host ff02::fb", "net 2001:db8:1::/48", "net ::/0",
	"port 80", "tcp port 80", "udp port 53", "src port 443", "tcp dst port 80 or 443", "portrange 1-1024", "udp src portrange 5000-6000", "src and dst port 53",
	"not port 80", "not tcp", "! (tcp or udp)", "tcp and not port 80", "tcp && (port 80 || port 443)",
	"port 443 or host 10.78.1.2 and tcp", "not host 10.78.1.2 and 10.78.2.2", "ip6 and udp and not port 5353", "udp or tcp and port 443 or icmp",
}

// What a program takes is what tcpdump takes with the same expression, on every
// capture with Ethernet headers that is here.
func TestTakesWhatTcpdumpTakes(t *testing.T) {
	if _, err := exec.LookPath("tcpdump"); err != nil {
		if os.Geteuid() == 0 {
			t.Fatalf("%v; scripts/install-deps tests installs it", err)
		}
		t.Skip(err)
	}
	files, _ := filepath.Glob("../testdata/causes/[cim]*.client.pcap")
	more, _ := filepath.Glob("../../../../shared/captures/*.pcap*")
	kinds := 0
	for _, name := range append(files, more...) {
		packets := ethernet(t, name)
		if packets == nil {
			continue
		}
		for _, expression := range expressions {
			fits := takes(t, expression, Whole)
			want, got := tcpdump(t, name, expression), 0
			for _, b := range packets {
				if fits(b) > 0 {
					got++
				}
			}
			if got != want {
				t.Errorf("%s: %q takes %d packets, with tcpdump %d", filepath.Base(name), expression, got, want)
			}
			if 0 < want && want < len(packets) {
				kinds++
			}
		}
	}
	if kinds < 10 {
		t.Errorf("only %d times did an expression take some and not all", kinds)
	}
}

// ethernet reads the packets of a capture, nil if they have other headers.
func ethernet(t *testing.T, name string) (packets [][]byte) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcap.Open(f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		var k pcap.Packet
		if err := r.Next(&k); errors.Is(err, io.EOF) {
			return packets
		} else if err != nil || k.Link != pcap.LinkEthernet {
			return nil
		}
		packets = append(packets, append([]byte(nil), k.Data...))
	}
}

func tcpdump(t *testing.T, name, expression string) int {
	t.Helper()
	out, err := exec.Command("tcpdump", "-n", "-t", "-q", "--count", "-r", name, expression).Output()
	var n int
	if _, scan := fmt.Sscanf(string(out), "%d packet", &n); err != nil || scan != nil {
		t.Fatalf("tcpdump -r %s %q: %v, %v: %s", name, expression, err, scan, out)
	}
	return n
}

// eth makes a packet: an EtherType, and what comes behind it.
func eth(kind uint16, body ...[]byte) []byte {
	b := append(make([]byte, 12), byte(kind>>8), byte(kind))
	for _, part := range body {
		b = append(b, part...)
	}
	return b
}

func ip4(proto byte, options int, fragment uint16) []byte {
	b := make([]byte, 20+options)
	b[0], b[9] = 0x40|byte(len(b)/4), proto
	b[6], b[7] = byte(fragment>>8), byte(fragment)
	copy(b[12:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
	return b
}

func ip6(next byte) []byte {
	b := make([]byte, 40)
	b[0], b[6] = 0x60, next
	b[8], b[23], b[24], b[39] = 0xfe, 1, 0xfd, 2
	return b
}

func ports4(from, to byte, size int) []byte {
	b := make([]byte, size)
	b[1], b[3] = from, to
	if size >= 20 {
		b[12] = byte(size/4) << 4
	}
	return b
}

func TestPackets(t *testing.T) {
	body := make([]byte, 400)
	for _, c := range []struct {
		says       string
		expression string
		packet     []byte
		want       bool
	}{
		{"a port behind IP options", "tcp dst port 80", eth(etherIPv4, ip4(ipTCP, 8, 0), ports4(9, 80, 20)), true},
		{"the same is the destination's alone", "src port 80", eth(etherIPv4, ip4(ipTCP, 8, 0), ports4(9, 80, 20)), false},
		{"a later fragment has no ports", "port 80", eth(etherIPv4, ip4(ipTCP, 0, 100), ports4(9, 80, 20)), false},
		{"so it has not port 80", "not port 80", eth(etherIPv4, ip4(ipTCP, 0, 100), ports4(9, 80, 20)), true},
		{"yet it is TCP", "tcp", eth(etherIPv4, ip4(ipTCP, 0, 100), ports4(9, 80, 20)), true},
		{"over IPv6", "udp port 53", eth(etherIPv6, ip6(ipUDP), ports4(9, 53, 8)), true},
		{"TCP in an IPv6 fragment", "tcp", eth(etherIPv6, ip6(ipFragment), []byte{ipTCP}, body), true},
		{"an IPv6 address", "src fe00::1", eth(etherIPv6, ip6(ipUDP), body), true},
		{"the other IPv6 address", "src fd00::2", eth(etherIPv6, ip6(ipUDP), body), false},
		{"an IPv6 net that ends within a word", "dst net fc00::/7", eth(etherIPv6, ip6(ipUDP), body), true},
		{"a host asked for by ARP", "host 10.0.0.7", eth(etherARP, append(make([]byte, 24), 10, 0, 0, 7)), true},
		{"which is no IP", "ip host 10.0.0.7", eth(etherARP, append(make([]byte, 24), 10, 0, 0, 7)), false},
		{"both ends of a range", "portrange 80-90", eth(etherIPv4, ip4(ipUDP, 0, 0), ports4(9, 90, 8)), true},
		{"beyond the range", "portrange 80-89", eth(etherIPv4, ip4(ipUDP, 0, 0), ports4(9, 90, 8)), false},
		{"a packet that ends too early", "port 80", eth(etherIPv4, ip4(ipTCP, 0, 0)), false},
	} {
		if got := takes(t, c.expression, Whole)(c.packet) > 0; got != c.want {
			t.Errorf("%s: %q: %v", c.says, c.expression, got)
		}
	}
}

// With headers alone no byte of what is behind them is kept.
func TestHeadersAlone(t *testing.T) {
	body := make([]byte, 400)
	fits := takes(t, "", Headers)
	for _, c := range []struct {
		says   string
		packet []byte
		want   int
	}{
		{"TCP with options", eth(etherIPv4, ip4(ipTCP, 4, 0), ports4(9, 80, 32), body), 14 + 24 + 32},
		{"TCP over IPv6", eth(etherIPv6, ip6(ipTCP), ports4(9, 80, 20), body), 14 + 40 + 20},
		{"UDP", eth(etherIPv4, ip4(ipUDP, 0, 0), ports4(9, 53, 8), body), 14 + 20 + 8},
		{"a tunnel", eth(etherIPv4, ip4(47, 0, 0), body), otherHeaders},
		{"VXLAN", eth(etherIPv4, ip4(ipUDP, 0, 0), []byte{9, 9, 4789 >> 8, 4789 & 255, 0, 0, 0, 0}, body), otherHeaders},
		{"a fragment", eth(etherIPv4, ip4(ipTCP, 0, 100), body), otherHeaders},
		{"ARP", eth(etherARP, body), otherHeaders},
	} {
		if got := fits(c.packet); got != c.want {
			t.Errorf("%s: %d bytes kept, want %d", c.says, got, c.want)
		}
	}
}

func TestErrorsSayWhere(t *testing.T) {
	for expression, want := range map[string]string{
		"host example.com":                      `at byte 6: "example.com": want an IP address; names are not looked up`,
		"tcp port http":                         `at byte 10: "http": want a port, 0 to 65535; names are not looked up`,
		"port 70000":                            `at byte 6: "70000": want a port`,
		"port 80-90":                            `at byte 6: "80-90": want a port`,
		"tcp port":                              `at byte 9: a value for port is missing`,
		"tcp and":                               `at byte 8: the expression ends here; want host`,
		"tcp udp":                               `at byte 5: "udp": want and, or, or the end`,
		"(tcp or udp":                           `at byte 1: this parenthesis is not closed`,
		"tcp)":                                  `at byte 4: ")": want and`,
		"vlan 7":                                `at byte 1: "vlan": want host, net`,
		"net 10.0.0.1/8":                        `at byte 5: "10.0.0.1/8": it has bits set beyond its length; want 10.0.0.0/8`,
		"net 10.0.0.0/33":                       `at byte 5: "10.0.0.0/33": want a length from 0 to 32`,
		"icmp port 3":                           `at byte 11: icmp has no ports`,
		"tcp host 10.0.0.1":                     `at byte 10: tcp has no address like 10.0.0.1; write "tcp and host 10.0.0.1"`,
		"ip6 host 10.0.0.1":                     `ip6 has no address like`,
		"tcp[13] & 2 != 0":                      `at byte 1: "tcp[13]": want host`,
		"host fe80::1%eth0":                     `want an IP address`,
		strings.Repeat("(", 99):                 `the expression ends here`,
		strings.Repeat("(", 101) + "tcp":        `at byte 101: more than 100 parentheses`,
		"tcp " + strings.Repeat("x", maxLength): `at byte 1: it has 16388 bytes`,
	} {
		_, err := Compile(expression, Options{Snap: Whole})
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", expression, err, want)
		}
	}
}

// Programs in which labels are further away than a test reaches do what they say, and
// the kernel takes them; what it would not take is refused before.
func TestLongPrograms(t *testing.T) {
	var hosts []string
	for i := range 100 {
		hosts = append(hosts, fmt.Sprintf("10.1.%d.1", i))
	}
	expression := "host " + strings.Join(hosts, " or ")
	fits := takes(t, expression, Whole)
	for last, want := range map[byte]bool{0: true, 99: true, 100: false} {
		p := eth(etherIPv4, ip4(ipTCP, 0, 0))
		copy(p[14+12:], []byte{10, 1, last, 1})
		if got := fits(p) > 0; got != want {
			t.Errorf("10.1.%d.1: %v", last, got)
		}
	}
	raw, err := Compile(expression, Options{Link: Cooked, Snap: Headers, Loopback: []int{1, 7}})
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	program := unix.SockFprog{Len: uint16(len(raw)), Filter: (*unix.SockFilter)(unsafe.Pointer(&raw[0]))}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program); err != nil {
		t.Errorf("the kernel refuses %d instructions: %v", len(raw), err)
	}
	if _, err := Compile(expression+" or "+strings.Repeat("host 10.0.0.1 or ", 500)+"tcp", Options{Snap: Whole}); err == nil || !strings.Contains(err.Error(), "the kernel takes 4096") {
		t.Errorf("a program too long for the kernel: %v", err)
	}
}

// FuzzCompile compiles whatever, and runs what comes of it on packets.
func FuzzCompile(f *testing.F) {
	for _, e := range expressions {
		f.Add(e)
	}
	packets := [][]byte{nil, eth(etherIPv4, ip4(ipTCP, 8, 0), ports4(9, 80, 20)), eth(etherIPv6, ip6(ipFragment), []byte{ipTCP})}
	f.Fuzz(func(t *testing.T, expression string) {
		for _, link := range []Link{Ethernet, Cooked} {
			raw, err := Compile(expression, Options{Link: link, Snap: Headers})
			if (err == nil) != (len(raw) > 0) || len(raw) > maxProgram {
				t.Fatalf("%d instructions, %v", len(raw), err)
			}
			if err != nil || link == Cooked {
				continue
			}
			fits := takes(t, expression, Headers)
			for _, p := range packets {
				fits(p)
			}
		}
	})
}
