package remote

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// tries is how often a question is asked of a server that has no time for it.
const tries = 5

// The pauses between two tries: the first, and the longest, also of those that a server asks for.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// busyError is that of a server that would answer at another time.
type busyError struct {
	error
	// after is how long it wants us to wait; negative when it does not say.
	after time.Duration
}

func (b busyError) Unwrap() error { return b.error }

// errTooMuch is that of a server that will not answer for so many series at once.
var errTooMuch = errors.New("it is asked for too much at once")

// unwilling gives an error its kind by the status and the type with which a server refuses: another
// time, or less of it.
func unwilling(res *http.Response, errorType string, err error) error {
	switch status := res.StatusCode; {
	case status == http.StatusUnprocessableEntity, errorType == "timeout":
		return fmt.Errorf("%w: %w", errTooMuch, err)
	case status == http.StatusTooManyRequests, status == http.StatusBadGateway, status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		return busyError{err, retryAfter(res.Header.Get("Retry-After"))}
	}
	return err
}

// retryAfter reads the header of that name in seconds, -1 when there is none. A date, which
// it may be as well, is what no such server sends.
func retryAfter(text string) time.Duration {
	if n, err := strconv.ParseUint(text, 10, 16); err == nil {
		return time.Duration(n) * time.Second
	}
	return -1
}

// pauseBefore is how long to wait before the try of that number, counted from 1: twice as long each
// time, and by chance up to half less, so that those who were refused together do not come back together.
func pauseBefore(try int, asked time.Duration) time.Duration {
	if asked >= 0 {
		return min(asked, longestPause)
	}
	d := min(firstPause<<(try-1), longestPause)
	return d/2 + rand.N(d/2)
}

// patiently asks again while the server has no time.
func patiently(ctx context.Context, ask func() (answer, error)) (answer, error) {
	for try := 1; ; try++ {
		got, err := ask()
		var busy busyError
		if !errors.As(err, &busy) {
			return got, err
		}
		if try == tries {
			return got, fmt.Errorf("%w (asked %d times)", err, tries)
		}
		select {
		case <-time.After(pauseBefore(try, busy.after)):
		case <-ctx.Done():
			return got, fmt.Errorf("%w; %w", err, context.Cause(ctx))
		}
	}
}
