package record

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
)

// maxChunk is the most bytes of one chunk.
const maxChunk = 1 << 20

// chunkFiles are files of chunks, of a block or of all.
type chunkFiles [][]byte

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// chunk returns the chunk that a series refers to: its length, its
// encoding, its data, and a sum over the latter two.
func (c chunkFiles) chunk(ref chunks.ChunkRef) (chunkenc.Chunk, error) {
	file, at := chunks.BlockChunkRef(ref).Unpack()
	if file >= len(c) || at >= len(c[file]) {
		return nil, fmt.Errorf("chunk %x lies outside the block", uint64(ref))
	}
	rest := c[file][at:]
	size, n := binary.Uvarint(rest)
	if n <= 0 || size > maxChunk || n+1+int(size)+crc32.Size > len(rest) {
		return nil, fmt.Errorf("chunk %x is cut short", uint64(ref))
	}
	data := rest[n : n+1+int(size)]
	if binary.BigEndian.Uint32(rest[n+len(data):]) != crc32.Checksum(data, castagnoli) {
		return nil, fmt.Errorf("chunk %x: the sum is not that of its data", uint64(ref))
	}
	// What a chunk of floats alone can hold is what a run records.
	if chunkenc.Encoding(data[0]) != chunkenc.EncXOR || size < 2 {
		return nil, fmt.Errorf("chunk %x: want one of floats", uint64(ref))
	}
	return chunkenc.FromData(chunkenc.EncXOR, data[1:])
}
