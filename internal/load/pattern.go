package load

import "bytes"

// pattern is a text to be found in a body that comes in pieces, of which none is kept
// (Knuth, Morris and Pratt).
type pattern struct {
	text []byte
	// back[i] is how much of the text's beginning text[:i] ends with, itself left out.
	back []int32
}

func newPattern(text string) *pattern {
	p := &pattern{text: []byte(text), back: make([]int32, len(text)+1)}
	for i, k := 1, int32(0); i < len(text); i++ {
		for k > 0 && text[i] != text[k] {
			k = p.back[k]
		}
		if text[i] == text[k] {
			k++
		}
		p.back[i+1] = k
	}
	return p
}

// search goes on through b, with have bytes of the text found at the end of what came before, and
// returns how many there are now; all of them stay found.
func (p *pattern) search(have int32, b []byte) int32 {
	for i := 0; i < len(b) && int(have) < len(p.text); i++ {
		if have == 0 {
			next := bytes.IndexByte(b[i:], p.text[0])
			if next < 0 {
				return 0
			}
			i += next
		}
		for have > 0 && b[i] != p.text[have] {
			have = p.back[have]
		}
		if b[i] == p.text[have] {
			have++
		}
	}
	return have
}
