package flame

import (
	"bytes"
	"io"
	"testing"
)

func FuzzRead(f *testing.F) {
	for _, stacks := range []map[string]int64{nil, {"nginx;main;work": 10, "php;main": 20}} {
		var packed bytes.Buffer
		p := made(10, stacks)
		if err := p.Write(&packed); err != nil {
			f.Fatal(err)
		}
		f.Add(packed.Bytes())
		var plain bytes.Buffer
		if err := p.WriteUncompressed(&plain); err != nil {
			f.Fatal(err)
		}
		f.Add(plain.Bytes())
	}
	f.Add([]byte{0x12, 0, 0x12, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := Read(data)
		if (tree == nil) == (err == nil) {
			t.Fatalf("%v and %v", tree, err)
		}
		if err != nil {
			return
		}
		tree.Text(80)
		if ends, err := tree.Inverted(); (ends == nil) == (err == nil) {
			t.Errorf("from its ends it is %v and %v", ends, err)
		}
		if err := tree.SVG(io.Discard, "a title"); err != nil {
			t.Error(err)
		}
		other, _ := Read(data)
		if err := tree.Compare(other); err != nil {
			t.Error(err)
		}
		tree.Text(80)
	})
}
