package main

import (
	"errors"
	"math"
	"strconv"
	"time"
)

// seconds is a duration on the command line: "10s", "1m30s", or a bare number of seconds.
type seconds time.Duration

func (s *seconds) String() string { return time.Duration(*s).String() }

// Type names the value in help texts.
func (*seconds) Type() string { return "duration" }

// Set parses one value; negative ones and what nobody can wait for are refused.
func (s *seconds) Set(text string) error {
	d, err := parseSeconds(text)
	if err == nil {
		*s = seconds(d)
	}
	return err
}

const longestDuration = 365 * 24 * time.Hour

func parseSeconds(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if n, numErr := strconv.ParseFloat(text, 64); numErr == nil {
		if math.IsNaN(n) || math.Abs(n) > longestDuration.Seconds() {
			return 0, errors.New("want at most a year")
		}
		d, err = time.Duration(n*float64(time.Second)), nil
	}
	if err != nil {
		return 0, errors.New("want something like 10s, 1m30s, 500ms, or a number of seconds")
	}
	if d < 0 || d > longestDuration {
		return 0, errors.New("want at least 0 and at most a year")
	}
	return d, nil
}
