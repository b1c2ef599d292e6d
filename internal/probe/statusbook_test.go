package probe

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
)

// lastStatus keeps what became of each signal.
type lastStatus struct{ of map[string]model.State }

func (l lastStatus) Sample(string, int64, *model.Signal, float64, ...string) {}
func (l lastStatus) Event(model.Event)                                       {}
func (l lastStatus) Note(string)                                             {}
func (l lastStatus) Status(_, signal string, st model.Status)                { l.of[signal] = st.State }

// What failed in the time before counts no more; what fails still does.
func TestStatusesBeginAnew(t *testing.T) {
	rec := lastStatus{map[string]model.State{}}
	b := NewStatusBook(rec)
	mended, broken, left := &model.Signal{Name: "mended"}, &model.Signal{Name: "broken"}, &model.Signal{Name: "left"}
	at := time.UnixMilli(0)
	set := func(s *model.Signal, err error) { b.Set([]string{"web"}, s, host.StatusOf(err), at, time.Second) }
	for _, s := range []*model.Signal{mended, broken, left} {
		set(s, nil)
	}
	at = at.Add(time.Minute)
	set(mended, errors.New("no answer"))
	set(broken, errors.New("no answer"))
	set(left, fs.ErrNotExist)
	at = at.Add(time.Minute)
	set(mended, nil)
	want := func(of string, state model.State) {
		t.Helper()
		if rec.of[of] != state {
			t.Errorf("%s is %s, want %s", of, rec.of[of], state)
		}
	}
	want("mended", model.Failed)
	want("left", model.Failed)
	b.Anew()
	want("mended", model.Read)
	want("broken", model.Failed)
	set(left, fs.ErrNotExist)
	want("left", model.Absent)
}
