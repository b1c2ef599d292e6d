package requests

import "maps"

// servers are threads that had a request in hand, and at which look they had one last. A thread that now and then has
// one serves, and asks for the request that it has, also where another (a server's reactor) has read this one.
type servers struct {
	look uint64
	last map[uint32]uint64
}

// servedLooks is for how many looks it is remembered who had a request; at one a second about half a minute, within which
// each thread of a service in use has one. A thread's number may be given to another later.
const servedLooks = 32

// next begins a look, and forgets who had no request for long.
func (s *servers) next() {
	s.look++
	maps.DeleteFunc(s.last, func(_ uint32, look uint64) bool { return look+servedLooks < s.look })
}

func (s *servers) note(tid uint32) {
	if s.last == nil {
		s.last = map[uint32]uint64{}
	}
	s.last[tid] = s.look
}

// lately tells whether it had a request in one of the last looks.
func (s *servers) lately(tid uint32) bool {
	_, did := s.last[tid]
	return did
}
