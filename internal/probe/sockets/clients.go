package sockets

import (
	"maps"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/host"
)

const (
	// anotherOwner is how long after an owner was found the next is looked for:
	// several processes may connect to one destination.
	anotherOwner = 20 * time.Second
	// ownersEach bounds the owners that are told of one destination.
	ownersEach = 8
	// clientShare is the part of one core that these searches may use.
	clientShare = 0.001
)

// clients finds the processes that connect to destinations, by one established
// socket of each at a time.
type clients struct {
	owners *owners
	known  map[endpoint]*clientOf
}

type clientOf struct {
	comms map[string]bool
	looks int
	next  time.Time // when to look for another
}

func newClients(h *host.Host, without map[int]uint64) *clients {
	return &clients{owners: newOwners(h, clientShare, without), known: map[endpoint]*clientOf{}}
}

// find looks for an owner of each destination that has none yet, or may have another.
// The first look is for the oldest socket, which is found soonest.
func (c *clients) find(list []destination, now time.Time) error {
	due := map[uint32]endpoint{}
	for _, d := range list {
		k := c.known[d.dst]
		if k == nil {
			k = &clientOf{comms: map[string]bool{}}
			c.known[d.dst] = k
		}
		if d.inode == 0 || now.Before(k.next) || len(k.comms) >= ownersEach {
			continue
		}
		inode := d.inode
		if k.looks == 0 {
			inode = d.oldest
		}
		k.looks++
		due[inode] = d.dst
	}
	if err := c.owners.find(slices.Collect(maps.Keys(due)), now); err != nil {
		return err
	}
	for inode, dst := range due {
		if comm := c.owners.comm(inode); comm != "" {
			k := c.known[dst]
			k.comms[strings.ToValidUTF8(comm, "\uFFFD")] = true
			k.next = now.Add(anotherOwner)
		}
	}
	return nil
}

// of lists the owners that were found, sorted.
func (c *clients) of(dst endpoint) []string {
	k := c.known[dst]
	if k == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(k.comms))
}
