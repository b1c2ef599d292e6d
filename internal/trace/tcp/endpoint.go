package tcp

import (
	"cmp"
	"fmt"
	"io/fs"
	"net/netip"
	"strconv"
	"strings"

	"github.com/cilium/ebpf/btf"
)

// Endpoint is an end of TCP connections: a service, known by the port it listens
// on, or a client, known by where it connects to.
type Endpoint struct {
	// Netns is the inode of the network namespace that the socket is in.
	Netns uint32 `json:"netns"`
	// Role is "server" or "client".
	Role string `json:"role"`
	// Port is the listener's port, "" of a client.
	Port string `json:"port,omitempty"`
	// Destination is the other end's address and port, "" of a server.
	Destination string `json:"dst,omitempty"`
}

// MakeEndpoint names an endpoint as it stands in the kernel's maps.
func MakeEndpoint(netns uint32, isClient bool, addr [16]byte, port uint16) Endpoint {
	if !isClient {
		return Endpoint{Netns: netns, Role: "server", Port: strconv.Itoa(int(port))}
	}
	return Endpoint{Netns: netns, Role: "client", Destination: netip.AddrPortFrom(netip.AddrFrom16(addr).Unmap(), port).String()}
}

// Labels are the values of the labels role, port and dst.
func (e Endpoint) Labels(more ...string) []string {
	return append([]string{e.Role, e.Port, e.Destination}, more...)
}

// String is the endpoint as reports show it: ":80" or "to 10.0.0.2:9000".
func (e Endpoint) String() string {
	if e.Role == "server" {
		return ":" + e.Port
	}
	return "to " + e.Destination
}

// Compare orders endpoints.
func (e Endpoint) Compare(other Endpoint) int {
	return cmp.Or(cmp.Compare(e.Netns, other.Netns), strings.Compare(e.Role, other.Role), strings.Compare(e.Port, other.Port),
		strings.Compare(e.Destination, other.Destination))
}

// EnumNames returns the names that the running kernel has for the values of one
// of its enums, without their common prefix. An error is fs.ErrNotExist where
// this kernel has no such enum.
func EnumNames(kernel *btf.Spec, enum, prefix string) (map[uint32]string, error) {
	var e *btf.Enum
	if err := kernel.TypeByName(enum, &e); err != nil {
		return nil, fmt.Errorf("this kernel has no enum %s: %w", enum, fs.ErrNotExist)
	}
	names := map[uint32]string{}
	for _, v := range e.Values {
		names[uint32(v.Value)] = strings.TrimPrefix(v.Name, prefix)
	}
	return names, nil
}

// states are the kernel's names (include/net/tcp_states.h, stable).
var states = []string{"", "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT", "CLOSE", "CLOSE_WAIT",
	"LAST_ACK", "LISTEN", "CLOSING", "NEW_SYN_RECV", "BOUND_INACTIVE"}

func stateName(n uint32) string {
	if n > 0 && int(n) < len(states) {
		return states[n]
	}
	return "state " + strconv.Itoa(int(n))
}
