package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/layout"
	"plimsoll/internal/live"
	"plimsoll/internal/model"
	sheet "plimsoll/internal/page"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
	web "plimsoll/internal/serve"
	"plimsoll/internal/session"
)

const (
	// judgeEvery is the least time between two verdicts on a run that lasts; judgeShare is
	// how many times longer than it took in CPU time we wait after each: less than 5 % of a CPU.
	judgeEvery = 2 * time.Second
	judgeShare = 20
	// judgeTries is after how many failures in a row the run is not judged any more while it lasts.
	judgeTries = 3
	// judgeFrom is how many seconds of hold there are before the first.
	judgeFrom = 2
	// paintEvery is the least time between two pictures of a run.
	paintEvery = time.Second
	// farewell is how long viewers are waited for at the end.
	farewell = 5 * time.Second
)

// anyPort stands for a port that is free.
const anyPort = "any"

// liveFlag adds --live and returns where its value lands.
func liveFlag(c *cobra.Command) *string {
	port := c.Flags().String("live", "", "show the run in a browser of this machine while it lasts, at this `PORT` (any that is free, if none is named)")
	c.Flags().Lookup("live").NoOptDefVal = anyPort
	return port
}

// stage shows runs in a browser while they are made.
type stage struct {
	page *web.Live
	ours uint32 // the socket that is listened on
	stop context.CancelFunc
	done chan error
}

// liveStage opens the page and says where it is; nil if port is "".
func liveStage(command string, w *world, port string) (*stage, error) {
	if port == "" {
		return nil, nil
	}
	if port == anyPort {
		port = "0"
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return nil, usage(command, "--live=%s: want a port of this machine, like 8080", port)
	}
	s := &stage{page: web.NewLive("sentence", "figures", "line", "charts"), done: make(chan error, 1)}
	server, err := web.Listen(web.Options{Listen: net.JoinHostPort("127.0.0.1", port)}, s.page.Handler())
	if err != nil {
		return nil, usage(command, "%v", err)
	}
	s.ours = server.Socket()
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() { s.done <- server.Serve(ctx) }()
	fmt.Fprintln(w.stderr, "plimsoll: live:", server.URL())
	return s, nil
}

// close lets viewers take what was shown last, and ends the page.
func (s *stage) close() {
	if s == nil {
		return
	}
	select {
	case <-s.page.End():
	case <-time.After(farewell):
	}
	s.stop()
	<-s.done
}

// follow shows the course of the session to who waits at the terminal, judged by the rules of site, and on a
// page if there is one; end takes it off the terminal.
func (w *world) follow(opt *session.Options, shown *stage, site *siteFlags) (end func()) {
	line := w.progress()
	if scr := w.screen(); scr != nil {
		return w.play(opt, shown, scr, site)
	}
	if line != nil {
		opt.Progress = line.show
	}
	leave := w.play(opt, shown, nil, site)
	return func() {
		leave()
		line.end()
	}
}

// play listens to what a session records, and shows it: on a page, on the terminal, on
// both; nil is neither. end draws the page for the last time.
func (w *world) play(opt *session.Options, shown *stage, scr *screen, site *siteFlags) (end func()) {
	if shown == nil && scr == nil {
		return func() {}
	}
	p := &playing{stage: shown, screen: scr, run: live.New(opt.Interval.Milliseconds())}
	ctx, stop := context.WithCancel(context.Background())
	news := make(chan struct{}, 1)
	opt.Listen = func(l *writer.Listener) {
		p.run.Follow(ctx, l, func() {
			select {
			case news <- struct{}{}:
			default:
			}
		})
	}
	before := opt.Progress
	opt.Progress = func(now session.Progress) {
		p.mu.Lock()
		p.progress = now
		p.mu.Unlock()
		if before != nil {
			before(now)
		}
	}
	if shown != nil {
		opt.Ours = []uint32{shown.ours}
	}
	judge, err := startTeller(w, opt.Dir, site)
	if err != nil {
		p.verdict.lost = err.Error() // it is judged at its end
	} else {
		opt.Aside = []int{judge.cmd.Process.Pid}
		go p.judge(ctx, judge)
	}
	var painting sync.WaitGroup
	painting.Go(func() { p.paint(ctx, news) })
	return func() {
		stop()
		if judge != nil {
			judge.end()
		}
		painting.Wait()
		p.draw(true)
		scr.clear()
	}
}

// playing is a run that is shown.
type playing struct {
	*stage
	screen *screen
	run    *live.Run

	mu       sync.Mutex
	progress session.Progress
	verdict  verdictSoFar
}

// paint draws what is new, but not more often than somebody can look.
func (p *playing) paint(ctx context.Context, news <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-news:
		}
		p.draw(p.stage != nil && p.page.Watched())
		if !sleep(ctx, paintEvery) {
			return
		}
	}
}

// sleep waits for d, and says whether ctx lasts.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// draw draws the screen, and the page if somebody sees it.
func (p *playing) draw(seen bool) {
	if p.screen == nil && !seen {
		return
	}
	v := p.run.View()
	p.mu.Lock()
	progress, verdict := p.progress, p.verdict
	p.mu.Unlock()
	if p.screen != nil {
		p.screen.draw(v, progress, verdict, time.Now())
	}
	if p.stage == nil || !seen {
		return
	}
	parts := []web.Part{{ID: "sentence", HTML: sentenceHTML(verdict, progress, time.Now())}, {ID: "figures", HTML: figuresHTML(v)}, {ID: "line", HTML: lineHTML(verdict.said.way())}}
	if charts, err := sheet.Live(v.Recent, v.Seconds); err == nil { // a chart that cannot be drawn is drawn the next time
		var b strings.Builder
		for _, c := range charts {
			b.WriteString(string(c))
		}
		parts = append(parts, web.Part{ID: "charts", HTML: b.String()})
	}
	p.page.Show(parts...)
}

// sentenceHTML is the verdict so far, and how far the run is.
func sentenceHTML(v verdictSoFar, p session.Progress, now time.Time) string {
	class := ""
	if v.said != nil {
		class = string(v.said.Answer)
	}
	return fmt.Sprintf(`<h1 class="%s">%s</h1><p>%s</p>`, html.EscapeString(class), html.EscapeString(layout.Line(v.text(now))), html.EscapeString(layout.Line(courseText(p))))
}

// figuresHTML are the load's numbers in its last whole second.
func figuresHTML(v live.View) string {
	s, ok := v.Last()
	if !ok {
		return ""
	}
	var b strings.Builder
	fact := func(name, value string) {
		fmt.Fprintf(&b, "<div><dt>%s</dt><dd><b>%s</b></dd></div>", html.EscapeString(name), html.EscapeString(value))
	}
	fact("good replies", layout.Count(s.Good)+"/s")
	fact("other replies", layout.Count(s.Replies-s.Good)+"/s")
	fact("no reply", layout.Count(s.Failed)+"/s")
	if s.P99 > 0 {
		fact("latency p50", layout.Micros(s.P50))
		fact("latency p99", layout.Micros(s.P99))
	}
	text := `<dl class="facts">` + b.String() + "</dl>"
	if v.Missed > 0 {
		text += fmt.Sprintf("<p><small>%d rounds were recorded faster than they are shown.</small></p>", v.Missed)
	}
	return text
}

// judge has it named, now and then, what would be said of the run if it ended now, while somebody looks on.
func (p *playing) judge(ctx context.Context, judge *teller) {
	failures := 0
	for pause := judgeEvery; sleep(ctx, pause); {
		pause = judgeEvery
		if held, ok := p.run.View().Held(model.Hold); !ok || held < judgeFrom || p.screen == nil && !p.page.Watched() {
			continue
		}
		at := time.Now()
		s, err := judge.now()
		if ctx.Err() != nil {
			return // the process is ended, as the run is
		}
		if err == nil && s.Failed != "" {
			err = errors.New(s.Failed)
			if failures++; failures < judgeTries {
				continue
			}
		}
		p.mu.Lock()
		if err != nil {
			p.verdict.lost = err.Error()
		} else {
			p.verdict, failures = verdictSoFar{said: &s, at: at}, 0
		}
		p.mu.Unlock()
		if err != nil {
			judge.end() // it keeps what it has read
			return
		}
		pause = max(judgeEvery, judgeShare*s.CPU)
	}
}

// lineHTML draws the way of a request.
func lineHTML(list []sheet.Stage) string {
	drawn, err := sheet.DrawWay(list)
	if err != nil || drawn == "" {
		return ""
	}
	return "<h2>The line <small>the way of a request, and how far each place on it is loaded</small></h2>" + string(drawn)
}

// ended shows what was found in the end.
func (s *stage) ended(r model.Report, name string) {
	if s == nil {
		return
	}
	s.page.Show(web.Part{ID: "sentence", HTML: fmt.Sprintf(`<h1 class="%s">%s: %s</h1><p>The whole report: <code>plimsoll serve</code>, or <code>%s</code></p>`,
		html.EscapeString(string(r.Verdict.Answer)), strings.ToUpper(html.EscapeString(string(r.Verdict.Answer))), html.EscapeString(layout.Line(r.Verdict.Sentence)),
		html.EscapeString(layout.Line("plimsoll report "+layout.Quote(name)+" -o report.html")))})
	if run, err := record.Open(r.Dir); err == nil { // else the line stays as it was last seen
		defer run.Close()
		s.page.Show(web.Part{ID: "line", HTML: lineHTML(wayOf(run, r.Verdict))})
	}
}
