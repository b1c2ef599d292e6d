package change

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// What is read of a journal is bounded, so what is written is, too: a change in a journal that
// is not read any more could not be taken back.
const (
	// maxEntry bounds one change: ten files before and after, in base64.
	maxEntry = 32 << 20
	// maxJournal bounds what is read of a journal.
	maxJournal = 128 << 20
	// An entry that stands may grow by what is noted while it is taken back: one by
	// growth, all of a journal by spare.
	growth = 1 << 20
	spare  = maxEntry
)

// ErrFull: the journal has no room for another change.
var ErrFull = errors.New("the journal is full")

// room says why a new entry of so many bytes would make a directory one that is not read.
func (f *folder) room(size int64) error {
	if size > maxEntry-growth {
		return fmt.Errorf("it needs %d bytes in the journal, and one change may have %d: %w", size, maxEntry-growth, ErrNotPossible)
	}
	names, err := f.names()
	if err != nil {
		return err
	}
	const more = 2 // under its name, and under that which it has while it is written
	if len(names)+more > maxNames {
		return f.full(fmt.Sprintf("%d files", len(names)), fmt.Sprint(maxNames-more))
	}
	var all int64
	for _, name := range names {
		var st unix.Stat_t
		if isEntry(name) && unix.Fstatat(int(f.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Size <= maxEntry {
			all += st.Size
		}
	}
	if all+size > maxJournal-spare {
		return f.full(fmt.Sprintf("%d bytes of changes", all), fmt.Sprintf("%d, this one included", maxJournal-spare))
	}
	return nil
}

func (f *folder) full(has, may string) error {
	return fmt.Errorf("%w: %s holds %s, and may hold %s; take back what stands in it (plimsoll undo --all), then move it away, or name another with --journal", ErrFull, f.path, has, may)
}

// isEntry says whether a file is read as a change.
func isEntry(name string) bool {
	return strings.HasSuffix(name, ".json") && name[0] >= '0' && name[0] <= '9'
}
