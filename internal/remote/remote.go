package remote

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/lazy"
	"plimsoll/internal/model"
	"plimsoll/internal/record"
	"plimsoll/internal/secret"
)

// Query says what to take from which server.
type Query struct {
	URL   string
	Token string // a bearer token, "" for none
	// Tenant is whose series are asked for, where a server has several tenants (Mimir); "" for none.
	Tenant string
	// At is the end of the window that is judged.
	At     time.Time
	Window time.Duration
	// Baseline is the time right before the window in which all was well, 0
	// when nobody knows of such a time.
	Baseline time.Duration
	// Match are label matchers of the server's own labels, like env="prod".
	// "host" is ours: the address without its port.
	Match []string
}

// ErrNoSeries says that the server answers and has nothing that a rule looks at.
var ErrNoSeries = errors.New("no series that a rule looks at")

// namesAtOnce is for how many signals one query asks.
const namesAtOnce = 40

// reach is how long before the first window readings are taken: what was last
// read before it begins.
const reach = 5 * time.Minute

// maxHosts is of how many hosts series are taken.
const maxHosts = 1000

// matcherForm is a label matcher; the quotes may be left out.
var matcherForm = lazy.Regexp(`^([a-zA-Z_][a-zA-Z0-9_]*)(=~|!~|!=|=)"?([^"]*)"?$`)

// Fetch takes the series of these signals and returns a run of them, with the
// status of each signal on each host.
func Fetch(ctx context.Context, q Query, signals []*model.Signal) (*record.Run, error) {
	c, err := q.client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, allTime, fmt.Errorf("not all was answered after %v; narrow it with --match, or take a shorter --window", allTime))
	defer cancel()
	all, err := q.take(ctx, c, signals)
	if err != nil {
		return nil, err
	}
	found := relabelled(all.series, signals)
	return q.made(c, found, all, signals)
}

// made is the run of what was found.
func (q Query) made(c *client, found *found, all *taken, signals []*model.Signal) (*record.Run, error) {
	start := q.At.Add(-q.Window - q.Baseline).UnixMilli()
	interval := found.interval()
	if half := q.Window.Milliseconds() / 2; interval > half {
		return nil, fmt.Errorf("the server's readings are %v apart; want a --window of at least %v",
			time.Duration(interval)*time.Millisecond, 2*time.Duration(interval)*time.Millisecond)
	}
	meta := q.run(interval)
	if meta.Hosts = found.hosts(all.hosts); len(meta.Hosts) > maxHosts {
		return nil, fmt.Errorf("%s: series of %d hosts; want at most %d, --match narrows them", c.base.Redacted(), len(meta.Hosts), maxHosts)
	}
	meta.Status = found.status(signals, start, all)
	meta.Notes = append(found.notes, all.notes()...)
	return record.InMemory(meta, found.memory()), nil
}

// client is one that asks for this query.
func (q Query) client() (*client, error) {
	c, err := newClient(q.URL, q.Token)
	if err == nil {
		c.tenant = q.Tenant
	}
	return c, err
}

// Check finds what is wrong with a query before a server is asked.
func (q Query) Check() error {
	if _, err := newClient(q.URL, ""); err != nil {
		return err
	}
	_, _, err := q.matchers(false)
	return err
}

// Plan is the query as a run and a fleet tell of it.
func (q Query) Plan() model.RemotePlan {
	address := q.URL
	if u, err := url.Parse(q.URL); err == nil {
		address = u.Redacted()
	}
	return model.RemotePlan{URL: secret.Text(address), At: q.At.UnixMilli(), Window: q.Window.Milliseconds(), Baseline: q.Baseline.Milliseconds(), Match: q.Match}
}

// run is the manifest, without what the series tell.
func (q Query) run(interval int64) model.Run {
	plan := q.Plan()
	at := plan.At
	begin := at - q.Window.Milliseconds()
	meta := model.Run{
		Started: begin - q.Baseline.Milliseconds(), Closed: true,
		Plan: model.Plan{Mode: "prometheus", Interval: interval, Remote: &plan},
	}
	if q.Baseline > 0 {
		meta.Windows = append(meta.Windows, model.Window{Name: model.Baseline, Start: meta.Started, End: begin})
	}
	meta.Windows = append(meta.Windows, model.Window{Name: model.Hold, Start: begin, End: at})
	return meta
}

// taken is what a server has of a query.
type taken struct {
	series []series
	// states and hosts are what exporters of ours say of their signals and hosts.
	states, hosts []series
	// partial has, by signal, in what the answer with its series was not whole.
	partial map[string]string
}

// notes says once what answers were not whole.
func (t *taken) notes() []string {
	why := map[string]int{}
	for _, w := range t.partial {
		why[w]++
	}
	var notes []string
	for _, w := range slices.Sorted(maps.Keys(why)) {
		notes = append(notes, fmt.Sprintf("the server's answer for %d signals was not whole, so that hosts and series may be missing: %s", why[w], w))
	}
	return notes
}

// take asks for the readings of all signals that exporters give, and for what exporters of ours
// say of theirs.
func (q Query) take(ctx context.Context, c *client, signals []*model.Signal) (*taken, error) {
	names := collected(signals)
	for _, ours := range []bool{false, true} {
		match, usesHost, err := q.matchers(ours)
		if err != nil {
			return nil, err
		}
		all := &taken{partial: map[string]string{}}
		if err = q.readings(ctx, c, names, match, all); err != nil {
			return nil, err
		}
		if len(all.series) > 0 {
			return all, q.takeOurs(ctx, c, signals, match, all)
		}
		if !usesHost {
			break
		}
	}
	return nil, q.nothing(ctx, c)
}

// collected are the names of what exporters give.
func collected(signals []*model.Signal) []string {
	var names []string
	for _, s := range signals {
		if Collected(s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}

// readings asks for those of all series of these names, and adds them.
func (q Query) readings(ctx context.Context, c *client, names []string, match string, to *taken) error {
	for some := range slices.Chunk(names, namesAtOnce) {
		expr := fmt.Sprintf(`{__name__=~%q%s}[%dms]`, strings.Join(some, "|"), match, (q.Window+q.Baseline+reach).Milliseconds()+1)
		got, err := c.query(ctx, expr, q.At)
		if err != nil {
			return err
		}
		to.series = append(to.series, got.series...)
		if got.partial != "" {
			for _, name := range some {
				to.partial[name] = got.partial
			}
		}
	}
	return nil
}

// takeOurs asks for what only Plimsoll reads, where exporters of ours are scraped, and for the
// state of each of their signals.
func (q Query) takeOurs(ctx context.Context, c *client, signals []*model.Signal, match string, to *taken) error {
	said, err := c.query(ctx, fmt.Sprintf(`{__name__=~"%s|%s"%s}`, signalState, hostInfo, match), q.At)
	if err != nil || len(said.series) == 0 {
		return err
	}
	exporters := map[string]bool{}
	for _, s := range said.series {
		exporters[s.Metric["instance"]] = true
		if s.Metric["__name__"] == hostInfo {
			to.hosts = append(to.hosts, s)
		} else {
			to.states = append(to.states, s)
		}
	}
	var names []string
	for _, s := range signals {
		if !Collected(s.Name) {
			names = append(names, s.Name)
		}
	}
	collected := len(to.series)
	if err := q.readings(ctx, c, names, match, to); err != nil {
		return err
	}
	own := slices.DeleteFunc(to.series[collected:], func(s series) bool { return !exporters[s.Metric["instance"]] })
	to.series = to.series[:collected+len(own)]
	return nil
}

// matchers writes the matchers for a selector, each behind a comma. host is the
// server's own label of that name where ours says so, else what its instance
// says.
func (q Query) matchers(ours bool) (text string, usesHost bool, err error) {
	var b strings.Builder
	for _, m := range q.Match {
		part := matcherForm().FindStringSubmatch(m)
		if part == nil {
			return "", false, fmt.Errorf(`--match %q: want LABEL=VALUE (or != =~ !~), like host=web1`, m)
		}
		label, op, value := part[1], part[2], part[3]
		if label == "host" && !ours {
			usesHost = true
			label = "instance"
			if !strings.HasSuffix(op, "~") {
				op, value = map[string]string{"=": "=~", "!=": "!~"}[op], regexp.QuoteMeta(value)
			}
			value = "(" + value + ")(:[0-9]+)?"
		}
		fmt.Fprintf(&b, ",%s%s%q", label, op, value)
	}
	return b.String(), usesHost, nil
}

// nothing is the error of a server that has none of it, with what it has.
func (q Query) nothing(ctx context.Context, c *client) error {
	when := q.At.UTC().Format(time.RFC3339)
	up, err := c.query(ctx, "count by (instance) (up)", q.At)
	if err != nil {
		return err
	}
	if len(up.series) == 0 {
		return fmt.Errorf("%s: %w in the %v before %s, and nothing was scraped then; is --at right", c.base.Redacted(), ErrNoSeries, q.Window, when)
	}
	var have []string
	for _, s := range up.series {
		have = append(have, s.Metric["instance"])
	}
	slices.Sort(have)
	if n := len(have); n > 8 {
		have = append(have[:8], fmt.Sprintf("and %d more", n-8))
	}
	return fmt.Errorf("%s: %w in the %v before %s; node_exporter gives most of them, and --match narrows them; what was scraped then: %s",
		c.base.Redacted(), ErrNoSeries, q.Window, when, strings.Join(have, ", "))
}

// hostPart is an instance without its port.
func hostPart(instance string) string {
	if host, _, err := net.SplitHostPort(instance); err == nil && host != "" {
		return host
	}
	return instance
}
