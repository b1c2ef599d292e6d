package kernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Attributes of linux/netfilter/nf_tables.h.
const (
	nfgenmsgLen = 4 // struct nfgenmsg

	nftaRuleTable, nftaRuleChain, nftaRuleHandle, nftaRuleExpressions = 1, 2, 3, 4

	nftaExprName, nftaExprData         = 1, 2
	nftaLimitRate, nftaLimitUnit       = 1, 2
	nftaLimitBurst, nftaLimitType      = 3, 4
	nftaImmediateData                  = 2
	nftaDataVerdict, nftaVerdictCode   = 2, 1
	nftaTargetName                     = 1
	nftaMatchName, nftaMatchInfo       = 1, 3
	nftaPayloadBase, nftaPayloadOffset = 2, 3
	nftaCTKey                          = 2
	nftaCmpOp, nftaCmpData             = 2, 3
	nftaBitwiseMask                    = 4
	nftaDataValue                      = 1

	nftPayloadTransport = 2
	tcpFlagsOffset      = 13
	tcpSYN              = 0x02
	nftCTState          = 0
	ctNew               = 1 << 3 // NF_CT_STATE_BIT(IP_CT_NEW)

	nfDrop, nfAccept = 0, 1 // linux/netfilter.h
)

// nftFamilies are the families of tables, NFPROTO_… of linux/netfilter.h, in nft's words.
var nftFamilies = map[byte]string{1: "inet", 2: "ip", 3: "arp", 5: "netdev", 7: "bridge", 10: "ip6"}

// nftRule is what a rule says of a limit: a rate of 0 is none, and a verdict
// of "" neither drops, refuses nor accepts.
type nftRule struct {
	family        string // as nft writes it, "" of one that it has no word for
	table, chain  string
	handle        uint64
	rate          float64 // a second
	burst         float64
	what, verdict string
	loaded        string // what the last expressions took of the packet
	newOnly       bool   // it matches nothing but what begins a connection
	copies        bool   // it sends a copy of what it matches somewhere else
}

func (r *nftRule) of() string {
	if r.newOnly {
		return "new"
	}
	return "all"
}

// parseNFTRule parses one NFT_MSG_NEWRULE: struct nfgenmsg and attributes.
func parseNFTRule(b []byte) (nftRule, error) {
	if len(b) < nfgenmsgLen {
		return nftRule{}, fmt.Errorf("nf_tables message of %d bytes, want %d or more", len(b), nfgenmsgLen)
	}
	r := nftRule{family: nftFamilies[b[0]]}
	eachAttr(b[nfgenmsgLen:], func(kind uint16, value []byte) {
		switch kind {
		case nftaRuleTable:
			r.table = cString(value)
		case nftaRuleChain:
			r.chain = cString(value)
		case nftaRuleHandle:
			if len(value) == 8 {
				r.handle = binary.BigEndian.Uint64(value)
			}
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
	case "payload", "ct":
		r.loaded = loadOf(name, data)
	case "bitwise":
		r.mask(data)
	case "cmp":
		equal, value := attrNumber(data, nftaCmpOp) == 0, nestedNumber(data, nftaCmpData, binary.BigEndian)
		is := equal && r.loaded == "tcp flags" && value == tcpSYN || !equal && r.loaded == "new" && value == 0
		r.newOnly = r.newOnly || is
	case "match": // of iptables
		r.newOnly = r.newOnly || conntrackNew(data)
	case "reject":
		r.verdict = "reject"
	case "target": // of iptables, where nf_tables has none of its own
		eachAttr(data, func(kind uint16, value []byte) {
			if kind == nftaTargetName {
				r.target(cString(value))
			}
		})
	case "dup":
		r.copies = true
	case "immediate":
		eachAttr(data, func(kind uint16, value []byte) {
			if kind == nftaImmediateData {
				r.verdict = verdictOf(value)
			}
		})
	}
}

// target takes an extension of iptables by its name.
func (r *nftRule) target(name string) {
	switch name {
	case "REJECT":
		r.verdict = "reject"
	case "TEE":
		r.copies = true
	}
}

// loadOf says what a rule takes of a packet, where that can tell the beginning of a connection.
func loadOf(name string, data []byte) string {
	switch {
	case name == "payload" && attrNumber(data, nftaPayloadBase) == nftPayloadTransport && attrNumber(data, nftaPayloadOffset) == tcpFlagsOffset:
		return "tcp flags"
	case name == "ct" && attrNumber(data, nftaCTKey) == nftCTState:
		return "ct state"
	}
	return ""
}

// mask narrows what was taken of the packet: to the flag SYN alone, or to the state of a new connection.
func (r *nftRule) mask(data []byte) {
	if r.loaded == "tcp flags" && nestedNumber(data, nftaBitwiseMask, binary.BigEndian) == tcpSYN ||
		r.loaded == "ct state" && nestedNumber(data, nftaBitwiseMask, binary.NativeEndian) == ctNew {
		r.loaded = "new"
	}
}

// conntrackNew says whether a match of iptables is -m conntrack --ctstate NEW: struct xt_conntrack_mtinfo3 of
// linux/netfilter/xt_conntrack.h.
func conntrackNew(data []byte) bool {
	const matchFlags, invertFlags, stateMask, size, state = 146, 148, 150, 152, 1
	var name string
	var info []byte
	eachAttr(data, func(kind uint16, value []byte) {
		switch kind {
		case nftaMatchName:
			name = cString(value)
		case nftaMatchInfo:
			info = value
		}
	})
	if name != "conntrack" || len(info) < size {
		return false
	}
	at := func(i int) uint16 { return binary.NativeEndian.Uint16(info[i:]) }
	return at(matchFlags)&state != 0 && at(invertFlags)&state == 0 && at(stateMask) == ctNew
}

// attrNumber is an attribute of four bytes in network order, 0 where there is none.
func attrNumber(data []byte, want uint16) (n uint32) {
	eachAttr(data, func(kind uint16, value []byte) {
		if kind == want && len(value) == 4 {
			n = binary.BigEndian.Uint32(value)
		}
	})
	return n
}

// nestedNumber is the value of one or four bytes that an attribute of data holds, 0 where there is none.
func nestedNumber(data []byte, want uint16, order binary.ByteOrder) (n uint32) {
	eachAttr(data, func(kind uint16, nested []byte) {
		if kind != want {
			return
		}
		eachAttr(nested, func(kind uint16, value []byte) {
			switch {
			case kind == nftaDataValue && len(value) == 1:
				n = uint32(value[0])
			case kind == nftaDataValue && len(value) == 4:
				n = order.Uint32(value)
			}
		})
	})
	return n
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
		case kind == nftaLimitBurst && len(value) == 4:
			r.burst = float64(binary.BigEndian.Uint32(value))
		case kind == nftaLimitType && len(value) == 4 && binary.BigEndian.Uint32(value) == 1:
			r.what = "bytes"
		}
	})
	if unit > 0 {
		r.rate = float64(rate) / float64(unit)
	}
}

// verdictOf names the verdicts NF_DROP and NF_ACCEPT; all others go on, or elsewhere.
func verdictOf(data []byte) (name string) {
	eachAttr(data, func(kind uint16, verdict []byte) {
		if kind != nftaDataVerdict {
			return
		}
		eachAttr(verdict, func(kind uint16, code []byte) {
			if kind != nftaVerdictCode || len(code) != 4 {
				return
			}
			switch binary.BigEndian.Uint32(code) {
			case nfDrop:
				name = "drop"
			case nfAccept:
				name = "accept"
			}
		})
	})
	return name
}

func cString(b []byte) string {
	s, _, _ := bytes.Cut(b, []byte{0})
	return string(s)
}
