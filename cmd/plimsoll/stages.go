package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"plimsoll/internal/model"
)

// addCourse says when the requests of a plan are due.
func addCourse(plan *model.LoadPlan, arrivals string, stages []string) (err error) {
	if plan.Arrivals, plan.ArrivalsSeed, err = parseArrivals(arrivals); err != nil {
		return fmt.Errorf("--arrivals %w", err)
	}
	return addStages(plan, stages)
}

// maxSeed is the largest seed that is chosen where nobody says: one that can be typed.
const maxSeed = 1_000_000

// parseArrivals returns what --arrivals stands for, with a seed of our choice where none is given.
func parseArrivals(text string) (kind string, seed uint64, err error) {
	kind, digits, given := strings.Cut(text, ":")
	switch {
	case text == "constant":
		return "", 0, nil
	case kind == model.Poisson && !given:
		return kind, rand.Uint64N(maxSeed) + 1, nil
	case kind == model.Poisson:
		if seed, err = strconv.ParseUint(digits, 10, 53); err == nil { // JSON's numbers are exact up to there
			return kind, seed, nil
		}
	}
	return "", 0, fmt.Errorf("%s: want constant, poisson, or poisson:SEED with a whole number", text)
}

// addStages puts what the --stage flags say into a plan. The stage at 0 is the rate with which it begins.
func addStages(plan *model.LoadPlan, stages []string) error {
	for _, text := range stages {
		s, err := parseStage(text)
		switch {
		case err != nil:
			return fmt.Errorf("--stage %s: %w", text, err)
		case s.AtMS > 0:
			plan.Stages = append(plan.Stages, s)
		case plan.Rate > 0 || len(plan.Stages) > 0:
			return fmt.Errorf("--stage %s: how the load begins is said already: give one stage at 0, first, or -R in its place", text)
		case s.Rate == 0:
			return fmt.Errorf("--stage %s: want more than 0 requests per second to begin with", text)
		default:
			plan.Rate = s.Rate
		}
	}
	if len(stages) > 0 && plan.Rate == 0 {
		return errors.New("--stage: the rate until the first of them is not said: give -R, or a stage at 0, like --stage 0:100/s")
	}
	return nil
}

// parseStage reads a moment and a rate: "30s:2000/s", "1m:2k".
func parseStage(text string) (s model.Stage, err error) {
	at, text, ok := strings.Cut(text, ":")
	if !ok {
		return s, errors.New("want a moment and a rate, like 30s:2000/s")
	}
	moment, err := parseSeconds(at)
	if err != nil {
		return s, fmt.Errorf("moment %q: %w", at, err)
	}
	s.AtMS = moment.Milliseconds()
	if moment > 0 && s.AtMS == 0 {
		return s, fmt.Errorf("moment %q: want 0, or at least 1ms", at)
	}
	if err := (rate{&s.Rate}).Set(text); err != nil {
		return s, fmt.Errorf("rate %q: %w (requests per second)", text, err)
	}
	return s, nil
}
