package diagnose

import "testing"

// A rule's "refused" counts events; what it counted before the load is not the load's.
func TestEventsBeforeTheLoad(t *testing.T) {
	const full = `
    - 'limit_size{host="s"} 100x14'
    - 'used_size{host="s"} 96x14'
`
	for name, c := range map[string]struct{ windows, refused, want string }{
		"none before":                   {"{baseline: [0s, 4s], hold: [4s, 14s]}", "0x4 2+2x9", "s|confirmed|"},
		"as many a second":              {"{baseline: [0s, 4s], hold: [4s, 14s]}", "0+2x14", "s|near|"},
		"more than a tenth more":        {"{baseline: [0s, 5s], hold: [5s, 15s]}", "0 10 20 30 40 50 62 74 86 98 110 122 134 146 158 170", "s|confirmed|"},
		"less than a tenth more":        {"{baseline: [0s, 5s], hold: [5s, 15s]}", "0 10 20 30 40 50 60.9 71.8 82.7 93.6 104.5 115.4 126.3 137.2 148.1 159", "s|near|"},
		"without a baseline":            {"{hold: [4s, 14s]}", "0+2x14", "s|confirmed|"},
		"a baseline that saw no series": {"{baseline: [0s, 4s], hold: [4s, 14s]}", "_x4 2+2x9", "s|confirmed|"},
	} {
		t.Run(name, func(t *testing.T) {
			rs := goodSet(t)
			v := written(t, "  windows: "+c.windows+"\n  series:"+full+"    - 'refused_total{host=\"s\",cpu=\"0\"} "+c.refused+"'\n")
			findings, err := Findings(over(v), rs.Get("x.good"))
			if err != nil || len(findings) != 1 {
				t.Fatal(findings, err)
			}
			if got := "s|" + string(findings[0].Answer) + "|"; got != c.want {
				t.Errorf("got %s, want %s; %+v", got, c.want, findings[0].Clues)
			}
		})
	}
}
