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

// Read builds the tree of a profile in pprof's form, packed with gzip or not. It may
// come from anybody, so nothing is unpacked or made room for beyond these bounds.
func Read(data []byte) (*Tree, error) {
	plain, err := unpack(data)
	if err != nil {
		return nil, err
	}
	if err := countParts(plain); err != nil {
		return nil, err
	}
	p, err := profile.ParseUncompressed(plain)
	if err != nil {
		return nil, fmt.Errorf("want a file in pprof's format: %w", err)
	}
	return New(p)
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

// countParts goes through the outermost fields: an empty sample takes two bytes
// there and a hundred in memory.
func countParts(data []byte) error {
	for n := 1; len(data) > 0; n++ {
		if n > maxParts {
			return fmt.Errorf("more than %d samples, locations, functions and names; these are no stacks", maxParts)
		}
		key, used := binary.Uvarint(data)
		if used <= 0 {
			return errMessage
		}
		data = data[used:]
		var size uint64
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
			}
		default:
			return errMessage
		}
		if used <= 0 || size > uint64(len(data)) {
			return errMessage
		}
		data = data[size:]
	}
	return nil
}

var errMessage = errors.New("want a file in pprof's format: it is cut short or something else")
