package change

import (
	"net/netip"
	"slices"
)

// candidate is a service that a change may be about; it is of is.
type candidate[T any] struct {
	is T
	service
	configuration
	name string // for people
}

// meant are the candidates that a change can be about: those that listen where it
// says, if any do, and of several of these the ones that are what they call
// themselves. So nobody keeps a service from being found by calling himself one.
func meant[T any](all []candidate[T], listensAt string) []candidate[T] {
	if len(all) > 1 && listensAt != "" {
		all = listening(all, listensAt)
	}
	if len(all) > 1 {
		trusted := slices.DeleteFunc(slices.Clone(all), func(c candidate[T]) bool { return c.trustWith(c.configuration) != nil })
		if len(trusted) > 0 {
			all = trusted
		}
	}
	return all
}

// listening are the candidates that listen at an address: at that very one; or
// else at all of the host's with that port; or else at that port of some other,
// since what a client calls an address may be translated on the way.
func listening[T any](all []candidate[T], address string) []candidate[T] {
	wanted, err := netip.ParseAddrPort(address)
	fits := []func(string) bool{
		func(a string) bool { return a == address },
		func(a string) bool {
			p, e := netip.ParseAddrPort(a)
			return err == nil && e == nil && p.Port() == wanted.Port() && p.Addr().IsUnspecified()
		},
		func(a string) bool {
			p, e := netip.ParseAddrPort(a)
			return err == nil && e == nil && p.Port() == wanted.Port()
		},
	}
	for _, fit := range fits {
		found := slices.DeleteFunc(slices.Clone(all), func(c candidate[T]) bool { return !slices.ContainsFunc(c.listens, fit) })
		if len(found) > 0 {
			return found
		}
	}
	return all
}

func names[T any](all []candidate[T]) (list []string) {
	for _, c := range all {
		list = append(list, c.name)
	}
	return list
}
