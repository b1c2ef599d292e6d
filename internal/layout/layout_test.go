package layout

import "testing"

func TestUnits(t *testing.T) {
	for _, c := range []struct{ want, got string }{
		{"0 µs", Micros(0)},
		{"850 µs", Micros(850)},
		{"1 ms", Micros(999.7)},
		{"1.2 ms", Micros(1200)},
		{"12.3 ms", Micros(12_340)},
		{"858 ms", Micros(858_000)},
		{"1 s", Micros(999_900)},
		{"2 s", Micros(2_000_100)},
		{"60 s", Micros(60e6)},
		{"3 min 20 s", Micros(200e6)},
		{"10 min", Micros(600e6)},
		{"0", Count(0)},
		{"999", Count(999)},
		{"1,000", Count(1000)},
		{"-12,345,678", Count(-12_345_678)},
		{"49", Rate(48.7)},
		{"4.87", Rate(4.87)},
		{"0 %", Share(0)},
		{"under 0.1 %", Share(0.0004)},
		{"over 99.9 %", Share(0.99999)},
		{"100 %", Share(1)},
		{"0.88 %", Share(0.0088)},
		{"41 MiB", Bytes(41 << 20)},
		{"512 bytes", Bytes(512)},
	} {
		if c.want != c.got {
			t.Errorf("want %q, got %q", c.want, c.got)
		}
	}
}
