package main

import (
	"context"
	"net"
	"net/netip"
	"slices"

	"plimsoll/internal/load"
	"plimsoll/internal/model"
)

// nobodys are the addresses, besides those that netip knows for private, at which no stranger is: of carriers'
// own networks (RFC 6598), of benchmarks (RFC 2544) and of examples (RFC 5737, RFC 3849).
var nobodys = []netip.Prefix{
	netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("2001:db8::/32"),
}

// isStranger says whether an address may be somebody else's: it is neither private nor among this machine's own.
func isStranger(a netip.Addr, own []netip.Addr) bool {
	a = a.Unmap().WithZone("")
	switch {
	case a.IsLoopback(), a.IsPrivate(), a.IsLinkLocalUnicast(), a.IsUnspecified(), slices.Contains(own, a):
		return false
	}
	return !slices.ContainsFunc(nobodys, func(p netip.Prefix) bool { return p.Contains(a) })
}

// ownAddresses are those of this machine's interfaces, as far as they can be read.
func ownAddresses() (own []netip.Addr) {
	list, _ := net.InterfaceAddrs()
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			own = append(own, p.Addr().Unmap())
		}
	}
	return own
}

// spareStrangers refuses to load what a slip of the finger may have named. A name that is not known
// is for others to tell.
func spareStrangers(ctx context.Context, plan model.LoadPlan) error {
	if plan.UnixSocket != "" {
		return nil // nobody else's machine is at its other end
	}
	name, _, err := load.Address(plan)
	if err != nil {
		return err // load.Check said it better, before
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return nil
	}
	own := ownAddresses()
	for _, a := range found {
		if isStranger(a, own) {
			at := a.Unmap().String()
			if at != name {
				at = name + " is at " + at + ", which"
			}
			return fail(exitUsage, stranger(at))
		}
	}
	return nil
}

// stranger is an address that may be somebody else's.
type stranger string

func (s stranger) Error() string {
	return string(s) + " is neither an address of this machine nor a private one: a load slows down a service, or brings it down, for all who use it. If you may do that to it, say so with --yes-i-may"
}
