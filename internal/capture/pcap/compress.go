package pcap

import (
	"bufio"
	"bytes"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds what a zstd file may make us hold.
const maxWindow = 128 << 20

// decompress looks for a compression and takes it off. Nothing but the capture's
// own format is asked for beneath it: a capture compressed twice is none.
func decompress(in *bufio.Reader) (*bufio.Reader, func(), error) {
	b, err := in.Peek(4)
	switch {
	case len(b) < 4:
		return nil, nil, short(b, err)
	case b[0] == 0x1f && b[1] == 0x8b:
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil, &Damage{What: "gzip", Err: err}
		}
		return bufio.NewReaderSize(z, bufferLen), nil, nil
	case bytes.Equal(b, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nil, &Damage{What: "zstd", Err: err}
		}
		return bufio.NewReaderSize(z, bufferLen), z.Close, nil
	}
	return in, nil, nil
}
