package loadtool

// known are the tools by name.
var known = map[string]*tool{
	"wrk":        {"wrk", wrkBegins, wrkLines, finishWrk},
	"wrk2":       {"wrk2", wrkBegins, wrkLines, finishWrk},
	"ab":         {"ab", abBegins, abLines, finishAB},
	"hey":        {"hey", heyBegins, heyLines, finishHey},
	"oha":        {"oha", ohaBegins, ohaLines, finishHey},
	"h2load":     {"h2load", h2loadBegins, h2loadLines, finishH2load},
	"k6":         {"k6", k6Begins, k6Lines, finishK6},
	"vegeta":     {"vegeta", vegetaBegins, vegetaLines, finishVegeta},
	"fortio":     {"fortio", fortioBegins, fortioLines, byOutcome},
	"siege":      {"siege", siegeBegins, siegeLines, finishSiege},
	"jmeter":     {"jmeter", jmeterBegins, jmeterLines, nil},
	"bombardier": {"bombardier", bombardierBegins, bombardierLines, byOutcome},
}
