package flame

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/google/pprof/profile"
)

// The bounds of a profile. One of a minute takes some hundred kB packed, and has
// some thousand samples, locations, functions and names.
const (
	maxPlain = 16 << 20
	maxParts = 1_000_000
)

// Read builds the tree of a profile in pprof's form, packed with gzip or not.
func Read(data []byte) (*Tree, error) {
	p, err := Parse(data)
	if err != nil {
		return nil, err
	}
	return New(p)
}

// Parse reads a profile in pprof's form, packed with gzip or not. It may come from
// anybody, so nothing is unpacked or made room for beyond these bounds.
func Parse(data []byte) (*profile.Profile, error) {
	plain, err := unpack(data)
	if err != nil {
		return nil, err
	}
	if err := countParts(plain); err != nil {
		return nil, err
	}
	p, err := profile.ParseUncompressed(plain)
	if err == nil {
		err = p.CheckValid()
	}
	if err != nil {
		return nil, fmt.Errorf("want a file in pprof's format: %w", err)
	}
	return p, nil
}

func unpack(data []byte) ([]byte, error) {
	if len(data) >= 2 && data[0] == 0x1f && data[1] == 0x8b {
		packed, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("unpack: %w", err)
		}
		if data, err = io.ReadAll(io.LimitReader(packed, maxPlain+1)); err != nil {
			return nil, fmt.Errorf("unpack: %w", err)
		}
	}
	if len(data) > maxPlain {
		return nil, fmt.Errorf("more than %d bytes when unpacked; these are no stacks", maxPlain)
	}
	return data, nil
}

// The types of protocol buffers' fields.
const (
	protoVarint  = 0
	protoFixed64 = 1
	protoBytes   = 2
	protoFixed32 = 5
)

// The fields of a profile whose parts are counted, too: samples and their labels,
// locations and their lines.
const (
	sampleField   = 2
	locationField = 4
)

// countParts goes through the fields of a profile: an empty sample, label or line
// takes two bytes there and hundreds in memory.
func countParts(data []byte) error {
	left := maxParts
	return eachField(data, func(field uint64, data []byte) error {
		if left--; left < 0 {
			return errParts
		}
		if field != sampleField && field != locationField {
			return nil
		}
		return eachField(data, func(uint64, []byte) error {
			if left--; left < 0 {
				return errParts
			}
			return nil
		})
	})
}

var errParts = fmt.Errorf("more than %d samples, labels, locations, functions and names; these are no stacks", maxParts)

// eachField calls back for each field of a message; the bytes are nil of a number.
func eachField(data []byte, call func(field uint64, data []byte) error) error {
	for len(data) > 0 {
		key, used := binary.Uvarint(data)
		if used <= 0 {
			return errMessage
		}
		data = data[used:]
		var size uint64
		var inner []byte
		switch key & 7 {
		case protoVarint:
			_, used = binary.Uvarint(data)
			size = uint64(max(used, 0))
		case protoFixed64:
			size = 8
		case protoFixed32:
			size = 4
		case protoBytes:
			if size, used = binary.Uvarint(data); used > 0 {
				data = data[used:]
				inner = data[:min(size, uint64(len(data)))]
			}
		default:
			return errMessage
		}
		if used <= 0 || size > uint64(len(data)) {
			return errMessage
		}
		data = data[size:]
		if err := call(key>>3, inner); err != nil {
			return err
		}
	}
	return nil
}

var errMessage = errors.New("want a file in pprof's format: it is cut short or something else")
