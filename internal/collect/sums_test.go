package collect

import (
	"fmt"
	"testing"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
)

// Of names that came and went nothing is kept; of those that are still there all.
func TestSumsForgetWhatIsGone(t *testing.T) {
	h, err := host.Open("local", "local")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	s := newSums([]*host.Host{h})
	signal := &model.Signal{Name: "a_total", Labels: []string{"groupname"}}
	for round := range 10 {
		s.begin()
		for i := range 10_000 {
			s.Put(signal, 1, fmt.Sprint(round, "/", i))
			s.In(uint32(round*10_000+i+1)).Put(signal, 1, "steady")
		}
	}
	met := 0
	s.each(func(*sum) { met++ })
	if met != 10_001 || len(s.series) > manySums+10_001 || len(s.procs) > manyNamespaces+10_000 {
		t.Errorf("%d met, %d kept, %d namespaces", met, len(s.series), len(s.procs))
	}
}
