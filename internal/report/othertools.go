package report

import (
	"bytes"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"plimsoll/internal/model"
)

// FormatOf writes what a load gave as another load tool would ("wrk", "ab"), for scripts that read that tool's words. The
// figures are the same as everywhere; a line of the tool's for which there is no figure is left out, a column is "-".
func FormatOf(w io.Writer, tool string, plan model.LoadPlan, l model.Load) error {
	var b bytes.Buffer
	if tool == "ab" {
		abText(&b, plan, l)
	} else {
		wrkText(&b, plan, l)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// got are a load's outcomes as other tools sort them. What is no reply and has no place with them was not read.
type got struct {
	replies, notGood, connect, read, write, timeout int64
}

// sortedAs sorts a load's outcomes; timeouts are apart for wrk, and where they came for ab.
func sortedAs(tool string, outcomes map[string]int64) (g got) {
	for outcome, n := range outcomes {
		switch {
		case model.IsReply(outcome):
			g.replies += n
			if !strings.HasSuffix(outcome, "2xx") && !(tool == "wrk" && strings.HasSuffix(outcome, "3xx")) {
				g.notGood += n // by the status alone, whatever was expected
			}
		case tool == "wrk" && strings.HasSuffix(outcome, ":timeout"):
			g.timeout += n
		case model.IsAttempt(outcome):
			g.connect += n
		case strings.HasPrefix(outcome, "write:"):
			g.write += n
		default:
			g.read += n
		}
	}
	return g
}

func wrkText(w io.Writer, plan model.LoadPlan, l model.Load) {
	g := sortedAs("wrk", l.Outcomes)
	held := time.Duration(l.Seconds * float64(time.Second))
	fmt.Fprintf(w, "Running %v test @ %s\n  %d threads and %d connections\n", held.Round(time.Second), plan.URL, plan.Threads, plan.Connections)
	if q := l.Latency; q.Count > 0 {
		fmt.Fprintf(w, "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency   %7s        -   %7s        -\n", wrkTime(q.Mean), wrkTime(q.Max))
		fmt.Fprintf(w, "  Latency Distribution\n     50%%  %7s\n     90%%  %7s\n     99%%  %7s\n", wrkTime(q.P50), wrkTime(q.P90), wrkTime(q.P99))
	}
	read := ""
	if l.ReceivedBytes > 0 {
		read = ", " + wrkBytes(float64(l.ReceivedBytes)) + " read"
	}
	fmt.Fprintf(w, "  %d requests in %.2fs%s\n", g.replies, l.Seconds, read)
	if g.connect+g.read+g.write+g.timeout > 0 {
		fmt.Fprintf(w, "  Socket errors: connect %d, read %d, write %d, timeout %d\n", g.connect, g.read, g.write, g.timeout)
	}
	if g.notGood > 0 {
		fmt.Fprintf(w, "  Non-2xx or 3xx responses: %d\n", g.notGood)
	}
	fmt.Fprintf(w, "Requests/sec: %9.2f\n", l.RPS)
	if l.ReceivedBytes > 0 && l.Seconds > 0 {
		fmt.Fprintf(w, "Transfer/sec: %10s\n", wrkBytes(float64(l.ReceivedBytes)/l.Seconds))
	}
}

// wrkBytes writes bytes as wrk does.
func wrkBytes(n float64) string {
	units := []string{"B", "KB", "MB", "GB", "TB"}
	i := 0
	for ; n >= 1024 && i < len(units)-1; i++ {
		n /= 1024
	}
	return fmt.Sprintf("%.2f%s", n, units[i])
}

// wrkTime writes microseconds as wrk does.
func wrkTime(micros float64) string {
	switch {
	case micros < 1e3:
		return fmt.Sprintf("%.2fus", micros)
	case micros < 1e6:
		return fmt.Sprintf("%.2fms", micros/1e3)
	}
	return fmt.Sprintf("%.2fs", micros/1e6)
}

func abText(w io.Writer, plan model.LoadPlan, l model.Load) {
	g := sortedAs("ab", l.Outcomes)
	line := func(label, format string, v ...any) {
		fmt.Fprintf(w, "%-23s "+format+"\n", append([]any{label}, v...)...)
	}
	line("Server Software:", "%s", "") // not known, as where a server does not say it
	if u, err := url.Parse(plan.URL); err == nil {
		line("Server Hostname:", "%s", u.Hostname())
		if u.Port() != "" {
			line("Server Port:", "%s", u.Port())
		}
		fmt.Fprintln(w)
		line("Document Path:", "%s", u.RequestURI())
	}
	fmt.Fprintln(w)
	line("Concurrency Level:", "%d", plan.Connections)
	line("Time taken for tests:", "%.3f seconds", l.Seconds)
	line("Complete requests:", "%d", g.replies)
	line("Failed requests:", "%d", g.connect+g.read)
	if g.connect+g.read > 0 {
		fmt.Fprintf(w, "   (Connect: %d, Receive: %d, Length: 0, Exceptions: 0)\n", g.connect, g.read)
	}
	if g.write > 0 {
		line("Write errors:", "%d", g.write)
	}
	if g.notGood > 0 {
		line("Non-2xx responses:", "%d", g.notGood)
	}
	if l.ReceivedBytes > 0 {
		line("Total transferred:", "%d bytes", l.ReceivedBytes)
	}
	line("Requests per second:", "%.2f [#/sec] (mean)", l.RPS)
	q := l.Latency
	if q.Count == 0 {
		return
	}
	line("Time per request:", "%.3f [ms] (mean)", q.Mean/1e3)
	line("Time per request:", "%.3f [ms] (mean, across all concurrent requests)", l.Seconds*1e3/float64(g.replies))
	if l.ReceivedBytes > 0 && l.Seconds > 0 {
		line("Transfer rate:", "%.2f [Kbytes/sec] received", float64(l.ReceivedBytes)/1024/l.Seconds)
	}
	fmt.Fprintf(w, "\nPercentage of the requests served within a certain time (ms)\n  50%% %6.0f\n  90%% %6.0f\n  99%% %6.0f\n 100%% %6.0f (longest request)\n",
		q.P50/1e3, q.P90/1e3, q.P99/1e3, q.Max/1e3)
}
