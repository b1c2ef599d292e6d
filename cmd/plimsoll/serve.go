package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/compare"
	"plimsoll/internal/layout"
	sheet "plimsoll/internal/page"
	"plimsoll/internal/record"
	web "plimsoll/internal/serve"
)

const serveLong = `Shows runs in a browser: those of DIR, or those that are kept (plimsoll runs),
the newest first. Each opens as its report, and any two can be compared.
It prints the address to open, which holds a token that is new each time; who has
it not sees nothing. Nothing can be changed there, and nothing is loaded from
elsewhere. A run that is made meanwhile appears when the list is loaded again.

It listens on this machine alone. --listen with another address wants TLS
(--cert and --key), or --insecure: the token and all that is shown then pass the
network in clear. ^C ends it.`

const serveExample = `  plimsoll serve
  plimsoll serve lab-results --listen 127.0.0.1:8080
  plimsoll serve --listen 0.0.0.0:8443 --cert cert.pem --key key.pem
  ssh -L 8080:127.0.0.1:8080 server plimsoll serve --listen 127.0.0.1:8080`

// serverFlags say where pages are shown.
type serverFlags struct{ web.Options }

func (f *serverFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVar(&f.Listen, "listen", "127.0.0.1:0", "listen on this `HOST:PORT`; port 0 is one that is free")
	fs.StringVar(&f.Cert, "cert", "", "speak TLS with the certificate (PEM) in `FILE`")
	fs.StringVar(&f.Key, "key", "", "its private key (PEM), from `FILE`")
	fs.BoolVar(&f.Insecure, "insecure", false, "listen for other machines without TLS, too")
}

func serveCommand(w *world) *cobra.Command {
	c := &cobra.Command{Use: "serve [DIR]", Short: "show runs in a browser, and compare them there", Long: serveLong, Example: serveExample,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(c.CommandPath(), "%q is too much; it takes one directory of runs", args[1])
			}
			return nil
		}}
	var where serverFlags
	where.add(c)
	var site siteFlags
	site.add(c)
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		dir := w.runsDir()
		if len(args) > 0 {
			dir = args[0]
			if info, err := os.Stat(dir); err != nil || !info.IsDir() {
				return fail(exitRunDir, fmt.Errorf("serve %s: want a directory of runs, or one run's: %w", dir, cmp.Or(err, error(syscall.ENOTDIR))))
			}
		}
		if _, err := site.set(w); err != nil {
			return err
		}
		runs := runShelf{dir: dir, site: &site, known: map[string]web.Entry{}}
		list, err := runs.list()
		if err != nil {
			return fail(exitRunDir, err)
		}
		shelf := web.Shelf{Name: dir, List: runs.list, Report: runs.report, Compare: runs.compare}
		server, err := web.Listen(where.Options, shelf.Handler())
		if err != nil {
			return usage(c.CommandPath(), "%v", err)
		}
		if *asJSON {
			if err := printJSON(w.stdout, map[string]any{"url": server.URL(), "dir": dir, "runs": len(list)}); err != nil {
				return err
			}
		} else {
			fmt.Fprintln(w.stdout, server.URL())
			fmt.Fprintf(w.stderr, "plimsoll: shows %d runs of %s; open the address in a browser; ^C ends it\n", len(list), layout.Line(dir))
		}
		return server.Serve(c.Context())
	}
	return withExits(c, exitOK, exitUsage, exitRunDir, exitRules)
}

// runShelf is a directory of runs as a server shows it.
type runShelf struct {
	dir   string
	site  *siteFlags
	mu    sync.Mutex
	known map[string]web.Entry // of runs that change no more, by directory
	dirs  map[string]string    // by ID, of the last list
}

// list lists the runs, the newest first. What cannot be read is left out: whoever asks
// for it by name is told why.
func (s *runShelf) list() ([]web.Entry, error) {
	readsAnybodys()
	kept, _, err := record.Shelf(s.dir)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []web.Entry{}
	s.dirs = map[string]string{}
	for _, k := range slices.Backward(kept) {
		if k.ID == "" { // the directory is a run itself
			k.ID = filepath.Base(filepath.Clean(s.dir))
		}
		s.dirs[k.ID] = k.Dir
		list = append(list, s.entry(k))
	}
	return list, nil
}

func (s *runShelf) entry(k record.Kept) web.Entry {
	started := time.UnixMilli(k.Meta.Started)
	if e, ok := s.known[k.Dir]; ok && e.Started.Equal(started) {
		return e
	}
	r, err := summarize(k)
	e := web.Entry{ID: k.ID, Started: started, What: r.What, Answer: r.Answer, Says: r.said, Took: layout.Micros(r.Seconds * 1e6), Whole: r.Closed}
	if err != nil {
		e.Says = err.Error()
	}
	if e.Whole && e.Answer != "" {
		s.known[k.Dir] = e
	}
	return e
}

// where is the directory of a run by its ID, which is one of the list.
func (s *runShelf) where(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dirs[id]
}

func (s *runShelf) report(out io.Writer, id string) error {
	p, err := pageOfAll([]string{s.where(id)}, s.site)
	if err != nil {
		return err
	}
	return sheet.Write(out, p)
}

func (s *runShelf) compare(out io.Writer, a, b string) error {
	first, err := readSide(s.where(a))
	if err != nil {
		return err
	}
	second, err := readSide(s.where(b))
	if err != nil {
		return err
	}
	one := compare.Compare(first, second)
	if why := compare.Comparable(first, second); why != nil {
		one.NotComparable = why.Error()
	}
	drawn, err := comparedPage(one)
	if err != nil {
		return err
	}
	return sheet.Write(out, sheet.Page{Title: "Plimsoll: " + a + ", " + b, Compared: []*sheet.Comparison{drawn}})
}
