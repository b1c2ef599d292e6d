package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"plimsoll/internal/export"
	"plimsoll/internal/load"
	"plimsoll/internal/model"
	"plimsoll/internal/record/writer"
)

// loadHost is the name under which a load's readings are written: it comes from here.
const loadHost = "local"

// loadFile is a file into which a load's numbers are written. Its ending says in which form.
type loadFile struct {
	path  string
	to    *writer.Draft    // what is kept goes there at once, so that a long load needs no more memory than a short one
	rows  *export.Readings // .csv
	begun bool             // .hlog: its head is written
	last  load.Record      // .prom
	err   error
}

// openLoadFile begins a file before the load, so that one that cannot be written is told then.
func openLoadFile(path string) (*loadFile, error) {
	f := &loadFile{path: path}
	ext := filepath.Ext(path)
	if ext != ".csv" && ext != ".hlog" && ext != ".prom" {
		return nil, errors.New("the ending says what is written: want .csv (a line for each reading), .hlog (an HdrHistogram log) or .prom (Prometheus' text format); --json prints JSON")
	}
	folder := filepath.Dir(path)
	if err := unix.Access(folder, unix.W_OK|unix.X_OK); err != nil {
		return nil, fmt.Errorf("no file can be made in %s: %w", folder, err)
	}
	var err error
	if f.to, err = writer.Begin(path); err != nil {
		return nil, err
	}
	if ext == ".csv" {
		f.rows, f.err = export.NewReadings(f.to)
	}
	return f, nil
}

// keep takes a record of the load.
func (f *loadFile) keep(r load.Record) {
	f.last = r
	switch filepath.Ext(f.path) {
	case ".csv":
		r.Samples(func(s *model.Signal, v float64, labels ...string) { f.rows.Put(r.Time, loadHost, s, v, labels...) })
	case ".hlog":
		if !f.begun {
			f.begun, f.err = true, writer.LatencyHead(f.to, r.Time)
		}
		for _, i := range r.Intervals {
			if i.Phase == model.Hold && f.err == nil {
				f.err = writer.LatencyLine(f.to, i.Start, i.End, i.Kind, i.Histogram)
			}
		}
	}
}

// close puts the file in its place.
func (f *loadFile) close() error {
	switch filepath.Ext(f.path) {
	case ".csv":
		f.err = errors.Join(f.err, f.rows.Close())
	case ".prom":
		var list []export.Reading
		f.last.Samples(func(s *model.Signal, v float64, labels ...string) {
			list = append(list, export.Reading{Signal: s, Labels: labels, Value: v})
		})
		f.err = export.Prometheus(f.to, list)
	}
	if err := f.to.End(f.err); err != nil {
		return fail(exitRunDir, fmt.Errorf("-o %s: %w", f.path, err))
	}
	return nil
}

// loadFiles are all that were asked for.
type loadFiles []*loadFile

func openLoadFiles(command string, paths []string) (list loadFiles, err error) {
	for _, path := range paths {
		f, err := openLoadFile(path)
		if err != nil {
			list.drop()
			return nil, usage(command, "-o %s: %v", path, err)
		}
		list = append(list, f)
	}
	return list, nil
}

// drop leaves none of them, as nothing was loaded.
func (l loadFiles) drop() {
	for _, f := range l {
		_ = f.to.End(errors.New("nothing was loaded"))
	}
}

func (l loadFiles) keep(r load.Record) {
	for _, f := range l {
		f.keep(r)
	}
}

func (l loadFiles) close() (err error) {
	for _, f := range l {
		err = errors.Join(err, f.close())
	}
	return err
}
