package host

import (
	"errors"
	"io/fs"

	"plimsoll/internal/model"
)

// StatusOf says what an error makes of a signal: nil means read, fs.ErrNotExist
// absent, fs.ErrPermission denied, any other error failed, with its text as the sentence.
func StatusOf(err error) model.Status {
	switch {
	case err == nil:
		return model.Status{State: model.Read}
	case errors.Is(err, fs.ErrNotExist):
		return model.Status{State: model.Absent, Why: err.Error()}
	case errors.Is(err, fs.ErrPermission):
		return model.Status{State: model.Denied, Why: err.Error()}
	}
	return model.Status{State: model.Failed, Why: err.Error()}
}

// Absent makes an error out of a sentence that says what does not exist on
// this host; it matches fs.ErrNotExist.
func Absent(sentence string) error { return absent(sentence) }

type absent string

func (a absent) Error() string        { return string(a) }
func (a absent) Is(target error) bool { return target == fs.ErrNotExist }
