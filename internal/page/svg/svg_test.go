package svg

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
)

func chart(lines ...Line) *Chart {
	return &Chart{Title: "t", From: 0, To: 3_600_000, Lines: lines, Height: 100, Format: func(v float64) string { return fmt.Sprint(v) }}
}

// A second that was slow, or in which nothing came, is seen in the picture of an hour.
func TestExtremesAreKept(t *testing.T) {
	var points []Point
	for i := range int64(3600) {
		points = append(points, Point{Time: 1000 * i, Value: 50 + float64(i%3)})
	}
	points[1801].Value = 900
	points[2502].Value = 0
	c := chart(Line{Points: points})
	thin := c.thinned(points)
	least, most := math.Inf(1), 0.0
	for i, p := range thin {
		least, most = min(least, p.Value), max(most, p.Value)
		if i > 0 && p.Time <= thin[i-1].Time {
			t.Fatalf("point %d is not in the order of time", i)
		}
	}
	if least != 0 || most != 900 || thin[0] != points[0] || thin[len(thin)-1] != points[3599] {
		t.Errorf("of 0 to 900 there are %g to %g left", least, most)
	}
	if len(thin) > 4*c.columns()+4 {
		t.Errorf("%d points are left of 3600", len(thin))
	}
}

// What was not read is a gap, and neither a zero nor a bridge.
func TestGapsStayGaps(t *testing.T) {
	points := []Point{{0, 5}, {1000, 5}, {60_000, 5}, {61_000, 5}}
	c := chart(Line{Points: points, Gap: 2500})
	if d := c.path(c.Lines[0], c.scale()); strings.Count(d, "M") != 2 {
		t.Errorf("path %s has %d pieces, want 2", d, strings.Count(d, "M"))
	}
	c.Lines[0].Gap = 0
	if d := c.path(c.Lines[0], c.scale()); strings.Count(d, "M") != 1 {
		t.Errorf("path %s without a gap is in pieces", d)
	}
	lone := chart(Line{Points: []Point{{60_000, 5}}})
	if d := lone.path(lone.Lines[0], lone.scale()); !strings.Contains(d, "h") {
		t.Errorf("a reading by itself is not drawn: %q", d)
	}
}

func TestScales(t *testing.T) {
	for _, test := range []struct {
		high, top float64
		binary    bool
	}{{high: 0, top: 1}, {high: 1, top: 1}, {high: 7, top: 8}, {high: 243, top: 250}, {high: 101, top: 120}, {high: 0.003, top: 0.003}, {high: 3 << 30, top: 3 << 30, binary: true}, {high: 3<<30 + 1<<29, top: 4 << 30, binary: true}} {
		if s := linearScale(0, test.high, test.binary); math.Abs(s.high-test.top) > 1e-9*test.top || s.low != 0 {
			t.Errorf("up to %g the scale goes from %g to %g, want 0 to %g", test.high, s.low, s.high, test.top)
		}
	}
	if s := logScale(80, 1500); s.low != 10 || s.high != 10000 || len(s.ticks) != 4 {
		t.Errorf("a logarithmic scale of 80 to 1500 is %+v", s)
	}
}

// TestColors holds the colours of lines against the contrast that WCAG 2 wants of
// graphics (3:1), on white and on black, and tells neighbours apart as eyes without
// red or green cones see them (Machado et al., 2009).
func TestColors(t *testing.T) {
	white, dark := [3]float64{1, 1, 1}, linear("#121212")
	for _, c := range append([]string{Alarm}, Colors...) {
		for name, ground := range map[string][3]float64{"white": white, "dark": dark} {
			if r := contrast(linear(c), ground); r < 3 {
				t.Errorf("%s on %s has a contrast of %.2f, want 3", c, name, r)
			}
		}
	}
	eyes := map[string][3][3]float64{
		"usual":        {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
		"protanopia":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
		"deuteranopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
		"tritanopia":   {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
	}
	for name, eye := range eyes {
		for i := range 4 { // most charts have no more lines, and areas have no dashes
			for j := range i {
				if d := distance(seen(eye, linear(Colors[i])), seen(eye, linear(Colors[j]))); d < 0.07 {
					t.Errorf("%s: %s and %s are %.3f apart, want 0.07", name, Colors[i], Colors[j], d)
				}
			}
		}
	}
}

func linear(hex string) (c [3]float64) {
	for i := range c {
		v, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		if err != nil {
			panic(err) // a constant of ours
		}
		s := float64(v) / 255
		c[i] = s / 12.92
		if s > 0.04045 {
			c[i] = math.Pow((s+0.055)/1.055, 2.4)
		}
	}
	return c
}

func contrast(a, b [3]float64) float64 {
	light := func(c [3]float64) float64 { return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2] + 0.05 }
	return max(light(a)/light(b), light(b)/light(a))
}

func seen(eye [3][3]float64, c [3]float64) (out [3]float64) {
	for i := range out {
		for j := range c {
			out[i] += eye[i][j] * c[j]
		}
	}
	return out
}

// distance is that of Oklab.
func distance(a, b [3]float64) float64 {
	lab := func(c [3]float64) (out [3]float64) {
		m := [3][3]float64{{0.4122214708, 0.5363325363, 0.0514459929}, {0.2119034982, 0.6806995451, 0.1073969566}, {0.0883024619, 0.2817188376, 0.6299787005}}
		n := [3][3]float64{{0.2104542553, 0.7936177850, -0.0040720468}, {1.9779984951, -2.4285922050, 0.4505937099}, {0.0259040371, 0.7827717662, -0.8086757660}}
		var l [3]float64
		for i := range l {
			for j := range c {
				l[i] += m[i][j] * c[j]
			}
			l[i] = math.Cbrt(l[i])
		}
		return seen(n, l)
	}
	x, y := lab(a), lab(b)
	return math.Sqrt(math.Pow(x[0]-y[0], 2) + math.Pow(x[1]-y[1], 2) + math.Pow(x[2]-y[2], 2))
}

func TestTextIsEscaped(t *testing.T) {
	c := chart(Line{Points: []Point{{0, 1}, {1000, 2}}})
	c.Title = "<script>\u202e</title>"
	c.Limits = []Limit{{Value: 1, Text: "</svg><b>"}}
	if s := c.String(); strings.Contains(s, "<script") || strings.Contains(s, "<b>") || strings.Contains(s, "\u202e") {
		t.Errorf("a text became part of the drawing: %s", s)
	}
}
