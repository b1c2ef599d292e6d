package main

import (
	"errors"
	"fmt"
	"strings"

	"plimsoll/internal/input"
	"plimsoll/internal/load"
	"plimsoll/internal/model"
)

// addTargets reads what --targets and --speed stand for into a plan. Notes are for the user.
func addTargets(plan model.LoadPlan, path, speed string, asked func(string) bool) (_ model.LoadPlan, notes []string, err error) {
	if path == "" && plan.Variables != nil {
		if err := load.Check(plan); err != nil {
			return plan, nil, fmt.Errorf("--vars: %w", err)
		}
	}
	if path == "" {
		if speed != "" {
			return plan, nil, fmt.Errorf("--speed is that of a recording: name an access log or a HAR export (--targets FILE)")
		}
		return plan, nil, nil
	}
	if asked("method") || asked("body") {
		return plan, nil, fmt.Errorf("-X and --body are about one request; with --targets each line says its own")
	}
	text, err := input.Read(path, load.MaxRecording)
	if err != nil {
		return plan, nil, fmt.Errorf("--targets %s: %w", path, err)
	}
	file, err := load.ReadTargetFile(text, plan)
	if err != nil {
		return plan, nil, fmt.Errorf("--targets %s: %w", path, err)
	}
	for _, note := range file.Notes {
		notes = append(notes, path+": "+note)
	}
	plan.Targets = file.Targets
	if file.Recorded != nil {
		plan.Recorded = &model.Recording{From: file.Recorded.From, Requests: file.Recorded.Requests}
	}
	if speed != "" {
		if plan, err = replay(plan, file, speed, asked); err != nil {
			return plan, nil, fmt.Errorf("--targets %s, --speed %s: %w", path, speed, err)
		}
	}
	if plan.Variables != nil {
		if err := load.Check(plan); err != nil {
			return plan, nil, fmt.Errorf("--targets %s and --vars: %w", path, err)
		}
	}
	return plan, notes, nil
}

// readVariables reads what --vars names, nil for nothing.
func readVariables(path string) (*model.Variables, error) {
	if path == "" {
		return nil, nil
	}
	text, err := input.Read(path, load.MaxVariablesFile)
	if err != nil {
		return nil, err
	}
	return load.ReadVariables(text)
}

// replay has a plan send a recording at its own pace. Without -d it lasts as long as that.
func replay(plan model.LoadPlan, file load.TargetFile, text string, asked func(string) bool) (model.LoadPlan, error) {
	var speed float64
	if err := (quantity[float64]{&speed}).Set(strings.TrimSuffix(text, "x")); err != nil {
		return plan, errors.New("want how much faster than it was recorded, like 2x or 0.5x")
	}
	if !asked("duration") {
		plan.DurationMS = 0
	}
	plan, err := file.Replay(plan, speed)
	if err != nil {
		return plan, err
	}
	return plan, load.Check(plan)
}
