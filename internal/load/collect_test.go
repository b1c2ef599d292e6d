package load

import (
	"testing"
	"time"
)

// Whoever takes its time to read a record keeps the collector waiting: that is not the process standing still.
func TestAReaderThatTakesItsTimeIsNotStandingStill(t *testing.T) {
	e := &engine{shared: shared{job: &job{}, base: time.Now().Add(-time.Minute)}}
	c := newCollector(e, func(Record) error { return nil })
	if err := c.record(Record{}); err != nil {
		t.Fatal(err)
	}
	if c.told < int64(time.Minute) {
		t.Fatalf("the record was taken at %d ns: want a minute and more", c.told)
	}
	due := c.told - 5*int64(time.Second)
	c.woke(due, c.told+stoodStill)
	if c.stood != 0 {
		t.Errorf("stood still for %d ns after a record that was taken late: want 0", c.stood)
	}
	c.woke(due, c.told+stoodStill+1)
	if c.stood != stoodStill+1 {
		t.Errorf("stood still for %d ns: want %d, from when the record was taken", c.stood, stoodStill+1)
	}
	c.stood = 0
	c.woke(c.told+10, c.told+10+2*stoodStill)
	if c.stood != 2*stoodStill {
		t.Errorf("stood still for %d ns: want %d, from when it was to wake", c.stood, 2*stoodStill)
	}
}
