package load

import (
	"testing"
	"unsafe"
)

// What is kept of each connection, idle or not, in both loops: itself, and its place in each list that it can be in.
func TestAConnectionIsSmall(t *testing.T) {
	const most, lists = 300, 4 // sleepers, free, waiting, reserves
	if got := unsafe.Sizeof(conn{}) + lists*unsafe.Sizeof((*conn)(nil)); got > most {
		t.Errorf("a connection takes %d bytes, want %d at most", got, most)
	}
}
