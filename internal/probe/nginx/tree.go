package nginx

import (
	"path/filepath"
	"time"

	"plimsoll/internal/host"
)

// Span is a piece of a file: the bytes from Begin up to End.
type Span struct{ Begin, End int }

// Directive is one directive of an nginx's configuration and where it stands,
// for who wants to edit it.
type Directive struct {
	Name string
	Args []string
	// File is as nginx names it; "" for a directive of the option -g.
	File string
	Line int
	// Words are the name and the arguments, with their quotes.
	Words []Span
	// End is behind the ";" or "}"; Open is behind the "{" of a block.
	Open, End int
	IsBlock   bool
	// Block are the directives in a block, those of included files among them.
	Block []*Directive
}

// Running is an nginx that runs, and its configuration as the files say now.
type Running struct {
	Master host.Proc
	// Conf and Prefix are absolute, as nginx sees them; Options is what of its
	// command line decides which configuration is in effect.
	Conf, Prefix string
	Options      []string
	// AccessLog is where nginx writes when no access_log is given.
	AccessLog string
	// Newest is when the last of its files was changed.
	Newest time.Time
	// Files are those that make up the configuration, as nginx calls them, and
	// Dirs the directories in which a further file would belong to it.
	Files, Dirs []string
	Tree        []*Directive
}

// optionG is the "file" of the directives that stand on the command line.
const optionG = "the option -g"

// Find lists the nginx processes of a host; each has its configuration read,
// or the error that came of it in errs, by the master's PID.
func Find(h *host.Host) (list []*Running, errs map[int]error, err error) {
	procs, err := h.Services()
	if err != nil {
		return nil, nil, err
	}
	errs = map[int]error{}
	masters, _ := split(h, procs)
	for _, m := range masters {
		in := &instance{host: h, master: m, root: filepath.Clean(h.ServicePath(m.PID, "/"))}
		r := &Running{Master: m}
		list = append(list, r)
		if err := r.read(in); err != nil {
			errs[m.PID] = err
		}
	}
	return list, errs, nil
}

func (r *Running) read(in *instance) error {
	tree, l, err := in.parse()
	r.Conf, r.Prefix, r.AccessLog = in.paths.conf, in.paths.prefix, in.build.accessLog
	if err != nil {
		return err
	}
	o := parseTitle(title(&in.master))
	for _, kv := range [][2]string{{"-p", o.prefix}, {"-c", o.conf}, {"-e", o.errorLog}, {"-g", o.directives}} {
		if kv[1] != "" {
			r.Options = append(r.Options, kv[0], kv[1])
		}
	}
	r.Tree = export(tree)
	r.Newest, r.Files, r.Dirs = l.newest, l.files, l.dirs
	return nil
}

// Read says whether processes that began at start (clock ticks after boot) have
// read the files as they are now.
func (r *Running) Read(h *host.Host, start uint64) bool {
	begun, ok := wallTime(h, start)
	return !ok || !r.Newest.After(begun.Add(editedAfter))
}

func export(list []*directive) []*Directive {
	var all []*Directive
	for _, d := range list {
		e := &Directive{Name: d.name, Args: d.args, File: d.file, Line: d.line, Words: d.words,
			Open: d.open, End: d.end, IsBlock: d.isBlock, Block: export(d.block)}
		if d.file == optionG {
			e.File = ""
		}
		all = append(all, e)
	}
	return all
}

// ListenAddresses are the addresses of a listen directive's first argument, as
// the socket signals write them.
func ListenAddresses(arg string) []string { return listenAddresses(arg) }

// IsWorker says whether a process's title is that of a worker that takes requests.
func IsWorker(title string) bool { return title == workerTitle }

// Parse parses the text of one file; includes stay what they are.
func Parse(src []byte, file string) ([]*Directive, error) {
	list, err := parseConf(src, file)
	return export(list), err
}
