package kernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/host/netlink"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

var nftLimit = &model.Signal{Name: "plimsoll_nft_limit_rate", Kind: model.Gauge, Unit: "per second",
	Help: "What a rule of the packet filter lets pass in a second, where it drops or refuses (verdict) what is above; " +
		"what is packets or bytes. The smallest of those in a chain.",
	Labels: []string{"table", "chain", "what", "verdict"}, Source: "nfnetlink (NFT_MSG_GETRULE)", ByHand: "nft list ruleset | grep limit"}

var nftRules = &model.Signal{Name: "plimsoll_nft_rules", Kind: model.Gauge, Unit: "rules",
	Help: "How many rules a table of the packet filter has, in all its chains; which of them a packet meets is up to the jumps between these. " +
		"What stands in a set or map is one rule.",
	Labels: []string{"table"}, Source: "nfnetlink (NFT_MSG_GETRULE)", ByHand: "nft list ruleset | wc -l"}

// NFTables reads how many rules a namespace's packet filter has, and which of
// them limit a rate.
func NFTables() probe.Probe {
	p := probe.Probe{Name: "nftables", Every: 5 * time.Second, Cost: costNFTables, Signals: []*model.Signal{nftLimit, nftRules},
		Blind: []string{"rules of iptables-legacy", "limits that are set up as sets, meters or named objects"}}
	overNetlink(&p, "the rules of the packet filter", unix.NETLINK_NETFILTER, func(conn *netlink.Conn) probe.Reader { return &nftables{conn} })
	return p
}

type nftables struct{ conn *netlink.Conn }

// nftGetRule is NFT_MSG_GETRULE of the subsystem NFNL_SUBSYS_NFTABLES.
const nftGetRule = 10<<8 | 7

// Read dumps all rules. A kernel that has no nf_tables answers with an error.
func (n *nftables) Read(out *probe.Out) error {
	type key struct{ table, chain, what, verdict string }
	lowest := map[key]float64{}
	rules := map[string]int{}
	err := n.conn.Dump(nftGetRule, make([]byte, nfgenmsgLen), time.Second, func(payload []byte) error {
		r, err := parseNFTRule(payload)
		if err != nil {
			return err
		}
		rules[r.table]++
		if r.rate > 0 && r.verdict != "" {
			k := key{r.table, r.chain, r.what, r.verdict}
			if old, ok := lowest[k]; !ok || r.rate < old {
				lowest[k] = r.rate
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
	for k, rate := range lowest {
		out.Put(nftLimit, rate, k.table, k.chain, k.what, k.verdict)
	}
	for table, n := range rules {
		out.Put(nftRules, float64(n), table)
	}
	return nil
}

// Close closes the socket.
func (n *nftables) Close() error { return n.conn.Close() }

// Attributes of linux/netfilter/nf_tables.h.
const (
	nfgenmsgLen = 4 // struct nfgenmsg

	nftaRuleTable, nftaRuleChain, nftaRuleExpressions = 1, 2, 4
	nftaExprName, nftaExprData                        = 1, 2
	nftaLimitRate, nftaLimitUnit, nftaLimitType       = 1, 2, 4
	nftaImmediateData                                 = 2
	nftaDataVerdict, nftaVerdictCode                  = 2, 1
)

// nftRule is what a rule says of a limit: a rate of 0 is none, and a verdict
// of "" neither drops nor refuses.
type nftRule struct {
	table, chain  string
	rate          float64 // a second
	what, verdict string
}

// parseNFTRule parses one NFT_MSG_NEWRULE: struct nfgenmsg and attributes.
func parseNFTRule(b []byte) (nftRule, error) {
	if len(b) < nfgenmsgLen {
		return nftRule{}, fmt.Errorf("nf_tables message of %d bytes, want %d or more", len(b), nfgenmsgLen)
	}
	var r nftRule
	eachAttr(b[nfgenmsgLen:], func(kind uint16, value []byte) {
		switch kind {
		case nftaRuleTable:
			r.table = cString(value)
		case nftaRuleChain:
			r.chain = cString(value)
		case nftaRuleExpressions:
			eachAttr(value, func(_ uint16, expr []byte) { r.expression(expr) })
		}
	})
	if r.table == "" || r.chain == "" {
		return nftRule{}, errors.New("nf_tables message without a table and a chain")
	}
	return r, nil
}

// expression takes one expression of a rule.
func (r *nftRule) expression(b []byte) {
	var name string
	var data []byte
	eachAttr(b, func(kind uint16, value []byte) {
		switch kind {
		case nftaExprName:
			name = cString(value)
		case nftaExprData:
			data = value
		}
	})
	switch name {
	case "limit":
		r.limit(data)
	case "reject":
		r.verdict = "reject"
	case "immediate":
		eachAttr(data, func(kind uint16, value []byte) {
			if kind == nftaImmediateData && drops(value) {
				r.verdict = "drop"
			}
		})
	}
}

// limit takes the data of a limit: so many packets or bytes in so many seconds.
func (r *nftRule) limit(data []byte) {
	var rate, unit uint64
	r.what = "packets"
	eachAttr(data, func(kind uint16, value []byte) {
		switch {
		case kind == nftaLimitRate && len(value) == 8:
			rate = binary.BigEndian.Uint64(value)
		case kind == nftaLimitUnit && len(value) == 8:
			unit = binary.BigEndian.Uint64(value)
		case kind == nftaLimitType && len(value) == 4 && binary.BigEndian.Uint32(value) == 1:
			r.what = "bytes"
		}
	})
	if unit > 0 {
		r.rate = float64(rate) / float64(unit)
	}
}

// drops says whether a verdict is NF_DROP, which is 0.
func drops(data []byte) bool {
	is := false
	eachAttr(data, func(kind uint16, verdict []byte) {
		if kind != nftaDataVerdict {
			return
		}
		eachAttr(verdict, func(kind uint16, code []byte) {
			if kind == nftaVerdictCode && len(code) == 4 && binary.BigEndian.Uint32(code) == 0 {
				is = true
			}
		})
	})
	return is
}

func cString(b []byte) string {
	s, _, _ := bytes.Cut(b, []byte{0})
	return string(s)
}
