package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

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
		runs := newRunShelf(dir, &site)
		defer runs.close()
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
			if err := printJSON(w.stdout, shelfDocument{server.URL(), dir, len(list)}); err != nil {
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

// runShelf is a directory of runs as a server shows it. It may be anybody's, who may exchange it and what is in it at any
// time; so it is held open from the first list on, and what is shown is read through that.
type runShelf struct {
	dir   string
	site  *siteFlags
	mu    sync.Mutex
	shelf *record.Shelf          // nil while there is no such directory
	known map[string]web.Entry   // of runs that change no more, by directory
	kept  map[string]record.Kept // by ID, of the last list
}

func newRunShelf(dir string, site *siteFlags) *runShelf {
	return &runShelf{dir: dir, site: site, known: map[string]web.Entry{}}
}

func (s *runShelf) close() {
	if s.shelf != nil {
		_ = s.shelf.Close() // it was only read
	}
}

// list lists the runs, the newest first. What cannot be read is left out: whoever asks
// for it by name is told why.
func (s *runShelf) list() (list []web.Entry, err error) {
	readsAnybodys()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shelf == nil {
		if s.shelf, err = record.OpenShelf(s.dir); errors.Is(err, fs.ErrNotExist) {
			s.shelf = nil
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	}
	kept, _, err := s.shelf.List()
	if err != nil {
		return nil, err
	}
	s.kept = map[string]record.Kept{}
	for _, k := range slices.Backward(kept) {
		if k.ID == "" { // the directory is a run itself
			k.ID = filepath.Base(filepath.Clean(s.dir))
		}
		s.kept[k.ID] = k
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

// open opens a run by its ID, which is one of the list.
func (s *runShelf) open(id string) (*record.Run, error) {
	s.mu.Lock()
	k, ok := s.kept[id]
	s.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("%s: the run is gone; load the list again", id)
	}
	return k.Open()
}

func (s *runShelf) report(out io.Writer, id string) error {
	run, err := s.open(id)
	if err != nil {
		return err
	}
	defer run.Close()
	var drawn *sheet.Run
	if _, err := judgedRun(run, s.site, drawnTo(&drawn, "")); err != nil {
		return err
	}
	return sheet.Write(out, onePage(drawn))
}

func (s *runShelf) compare(out io.Writer, a, b string) error {
	first, err := s.side(a)
	if err != nil {
		return err
	}
	defer first.close()
	second, err := s.side(b)
	if err != nil {
		return err
	}
	defer second.close()
	drawn, err := sheet.Compare(comparedSides(first, second), first.first, second.first)
	if err != nil {
		return err
	}
	return sheet.Write(out, sheet.Page{Title: "Plimsoll: " + a + ", " + b, Compared: []*sheet.Comparison{drawn}})
}

func (s *runShelf) side(id string) (side, error) {
	run, err := s.open(id)
	if err != nil {
		return side{}, err
	}
	return sideOf(run)
}

// shelfDocument is what serve prints with --json.
type shelfDocument struct {
	URL  string `json:"url"`
	Dir  string `json:"dir"`
	Runs int    `json:"runs"` // how many there are
}
