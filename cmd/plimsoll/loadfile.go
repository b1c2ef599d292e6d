package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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
	path string
	text bytes.Buffer
	rows *export.Readings // .csv
	last load.Record      // .prom
	err  error
}

// openLoadFile prepares a file, and makes sure before the load that it can be written.
func openLoadFile(path string) (*loadFile, error) {
	f := &loadFile{path: path}
	switch filepath.Ext(path) {
	case ".csv":
		f.rows, f.err = export.NewReadings(&f.text)
	case ".hlog", ".prom":
	default:
		return nil, errors.New("the ending says what is written: want .csv (a line for each reading), .hlog (an HdrHistogram log) or .prom (Prometheus' text format); --json prints JSON")
	}
	folder := filepath.Dir(path)
	if err := unix.Access(folder, unix.W_OK|unix.X_OK); err != nil {
		return nil, fmt.Errorf("no file can be made in %s: %w", folder, err)
	}
	return f, f.err
}

// keep takes a record of the load.
func (f *loadFile) keep(r load.Record) {
	f.last = r
	switch filepath.Ext(f.path) {
	case ".csv":
		r.Samples(func(s *model.Signal, v float64, labels ...string) { f.rows.Put(r.Time, loadHost, s, v, labels...) })
	case ".hlog":
		if f.text.Len() == 0 {
			f.err = writer.LatencyHead(&f.text, r.Time)
		}
		for _, i := range r.Intervals {
			if i.Phase == model.Hold {
				f.err = errors.Join(f.err, writer.LatencyLine(&f.text, i.Start, i.End, i.Kind, i.Histogram))
			}
		}
	}
}

// close writes the file.
func (f *loadFile) close() error {
	switch filepath.Ext(f.path) {
	case ".csv":
		f.err = errors.Join(f.err, f.rows.Close())
	case ".prom":
		var list []export.Reading
		f.last.Samples(func(s *model.Signal, v float64, labels ...string) {
			list = append(list, export.Reading{Signal: s, Labels: labels, Value: v})
		})
		f.err = export.Prometheus(&f.text, list)
	}
	if f.err == nil {
		f.err = writer.Stream(f.path, func(out io.Writer) error {
			_, err := out.Write(f.text.Bytes())
			return err
		})
	}
	if f.err != nil {
		return fail(exitRunDir, fmt.Errorf("-o %s: %w", f.path, f.err))
	}
	return nil
}

// loadFiles are all that were asked for.
type loadFiles []*loadFile

func openLoadFiles(command string, paths []string) (list loadFiles, err error) {
	for _, path := range paths {
		f, err := openLoadFile(path)
		if err != nil {
			return nil, usage(command, "-o %s: %v", path, err)
		}
		list = append(list, f)
	}
	return list, nil
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
