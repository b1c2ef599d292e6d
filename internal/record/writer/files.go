package writer

import (
	"errors"
	"fmt"
	"os"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// Packets appends to the file with the packets of a host (pcapng, in pieces of any
// size). It is begun with the first of them.
func (w *Writer) Packets(host string, part []byte) (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return fmt.Errorf("record the packets of %s: %w", host, os.ErrClosed)
	}
	f := w.packets[host]
	if f == nil {
		if f, err = w.open.create(model.PacketsFile(host)); err == nil {
			w.packets[host] = f
		}
	}
	if err == nil {
		_, err = f.Write(part)
	}
	if err != nil {
		err = w.explain(fmt.Errorf("write the packets of %s: %w", host, err))
	}
	return err
}

func (w *Writer) closePackets() error {
	var errs []error
	for _, f := range w.packets {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Profile writes stacks, in pprof's gzipped form, under their name ("cpu").
func (w *Writer) Profile(name string, data []byte) error {
	if err := replace(w.open.root, name+record.ProfileEnd, data, false); err != nil {
		return w.explain(fmt.Errorf("write the stacks of %s: %w", name, err))
	}
	return nil
}
