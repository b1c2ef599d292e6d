package kernel

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/host/netlink"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

var routingRules = &model.Signal{Name: "plimsoll_routing_rules", Kind: model.Gauge, Unit: "rules",
	Help: "How many rules of policy routing the host has. For a route that no socket remembers, as for each new connection, the kernel " +
		"holds the packet against one after the other, until one has a table with a route.",
	Labels: []string{"family"}, Source: "rtnetlink (RTM_GETRULE)", ByHand: "ip rule | wc -l; ip -6 rule | wc -l"}

// RoutingRules reads how many rules of policy routing a namespace has.
func RoutingRules() probe.Probe {
	p := probe.Probe{Name: "routing_rules", Every: 5 * time.Second, Cost: costRoutingRules, Signals: []*model.Signal{routingRules},
		Blind: []string{"which of the rules a packet meets"}}
	overNetlink(&p, "the rules of policy routing", unix.NETLINK_ROUTE, func(conn *netlink.Conn) probe.Reader { return &ipRules{conn} })
	return p
}

type ipRules struct{ conn *netlink.Conn }

// ruleHeaderLen is the length of struct fib_rule_hdr, whose first byte is the family.
const ruleHeaderLen = 12

// Read counts the rules of both families in one dump; of another one (multicast's) there may be some, too.
func (r *ipRules) Read(out *probe.Out) error {
	counts := map[byte]int{}
	err := r.conn.Dump(unix.RTM_GETRULE, make([]byte, ruleHeaderLen), time.Second, func(payload []byte) error {
		if len(payload) < ruleHeaderLen {
			return fmt.Errorf("rule of policy routing: %d bytes, want %d or more", len(payload), ruleHeaderLen)
		}
		counts[payload[0]]++
		return nil
	})
	if errors.Is(err, unix.EOPNOTSUPP) {
		return host.Absent("this kernel has no policy routing (CONFIG_IP_MULTIPLE_TABLES)")
	}
	if err != nil {
		return fmt.Errorf("list the rules of policy routing: %w", err)
	}
	for family, name := range map[byte]string{unix.AF_INET: "ipv4", unix.AF_INET6: "ipv6"} {
		if n := counts[family]; n > 0 { // without the kernel's own rules there are none at all
			out.Put(routingRules, float64(n), name)
		}
	}
	return nil
}

// Close closes the socket.
func (r *ipRules) Close() error { return r.conn.Close() }
