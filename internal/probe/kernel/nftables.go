package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/host/netlink"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

var nftLimit = &model.Signal{Name: "plimsoll_nft_limit_rate", Kind: model.Gauge, Unit: "per second",
	Help: "What a rule of the packet filter lets pass in a second, where it drops or refuses (verdict) what is above, or accepts what is " +
		"below and leaves the rest to the rules after it; what is packets or bytes; of is new where it counts " +
		"only packets that begin a connection (a SYN, or ct state new), else all. The smallest of those in a chain; its family and handle are what nft -a shows of it.",
	Labels: []string{"family", "table", "chain", "handle", "what", "of", "verdict"}, Source: "nfnetlink (NFT_MSG_GETRULE)", ByHand: "nft list ruleset | grep limit"}

var nftBurst = &model.Signal{Name: "plimsoll_nft_limit_burst", Kind: model.Gauge, Unit: "count",
	Help:   "How many packets (or bytes) the rule with that rate lets pass at once, after a pause.",
	Labels: nftLimit.Labels, Source: nftLimit.Source, ByHand: nftLimit.ByHand}

var nftRules = &model.Signal{Name: "plimsoll_nft_rules", Kind: model.Gauge, Unit: "rules",
	Help: "How many rules a table of the packet filter has, in all its chains; which of them a packet meets is up to the jumps between these. " +
		"What stands in a set or map is one rule.",
	Labels: []string{"table"}, Source: "nfnetlink (NFT_MSG_GETRULE)", ByHand: "nft list ruleset | wc -l"}

var nftCopies = &model.Signal{Name: "plimsoll_nft_copy_info", Kind: model.Gauge, Unit: "bool",
	Help:   "1 for each rule of the packet filter that sends a copy of what it matches somewhere else (dup, iptables' TEE); its handle is what nft -a shows of it.",
	Labels: []string{"family", "table", "chain", "handle"}, Source: nftRules.Source, ByHand: "nft -a list ruleset | grep -E 'dup|TEE'"}

// NFTables reads how many rules a namespace's packet filter has, and which of
// them limit a rate or copy packets.
func NFTables() probe.Probe {
	p := probe.Probe{Name: "nftables", Every: 5 * time.Second, Cost: costNFTables, Signals: []*model.Signal{nftLimit, nftBurst, nftRules, nftCopies},
		Blind: []string{"rules of iptables-legacy", "limits that are set up as sets, meters or named objects, or by iptables' hashlimit and connlimit"}}
	overNetlink(&p, "the rules of the packet filter", unix.NETLINK_NETFILTER, func(conn *netlink.Conn) probe.Reader { return &nftables{conn} })
	return p
}

type nftables struct{ conn *netlink.Conn }

// nftGetRule is NFT_MSG_GETRULE of the subsystem NFNL_SUBSYS_NFTABLES.
const nftGetRule = 10<<8 | 7

// Read dumps all rules. A kernel that has no nf_tables answers with an error.
func (n *nftables) Read(out *probe.Out) error {
	type key struct{ family, table, chain, what, of, verdict string }
	lowest := map[key]nftRule{}
	rules := map[string]int{}
	err := n.conn.Dump(nftGetRule, make([]byte, nfgenmsgLen), time.Second, func(payload []byte) error {
		r, err := parseNFTRule(payload)
		if err != nil {
			return err
		}
		rules[r.table]++
		if r.copies {
			out.Put(nftCopies, 1, r.family, r.table, r.chain, strconv.FormatUint(r.handle, 10))
		}
		if r.rate > 0 && r.verdict != "" {
			k := key{r.family, r.table, r.chain, r.what, r.of(), r.verdict}
			if old, ok := lowest[k]; !ok || r.rate < old.rate {
				lowest[k] = r
			}
		}
		return nil
	})
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return host.Absent("this kernel has no nf_tables, or it is not loaded")
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("list the rules of the packet filter; that needs root, or CAP_NET_ADMIN: %w", err)
	}
	if err != nil {
		return fmt.Errorf("list the rules of the packet filter: %w", err)
	}
	for k, r := range lowest {
		labels := []string{k.family, k.table, k.chain, strconv.FormatUint(r.handle, 10), k.what, k.of, k.verdict}
		out.Put(nftLimit, r.rate, labels...)
		out.Put(nftBurst, r.burst, labels...)
	}
	for table, n := range rules {
		out.Put(nftRules, float64(n), table)
	}
	return nil
}

// Close closes the socket.
func (n *nftables) Close() error { return n.conn.Close() }
