package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/capture"
	"plimsoll/internal/capture/filter"
	"plimsoll/internal/capture/live"
	"plimsoll/internal/host"
	"plimsoll/internal/layout"
)

// liveFlags are those of capture that say what to capture just now.
type liveFlags struct {
	iface    string
	duration time.Duration
	filter   string
	keep     string
	hosts    []string
}

func (f *liveFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVarP(&f.iface, "interface", "i", "", "capture on this `INTERFACE`, in place of reading files; any for all of them")
	durationFlag(fs, &f.duration, "duration", "d", 0, "how long to capture (default until ^C)")
	fs.Lookup("duration").DefValue = "" // its usage says what it is
	fs.StringVar(&f.filter, "filter", "", "capture only what this `EXPRESSION` takes, in tcpdump's words: host, net, port, portrange, with src or dst; ip, ip6, tcp, udp, sctp, icmp, icmp6, arp; and, or, not, parentheses")
	fs.StringVar(&f.keep, "keep", "all", "how much of each packet to take: all, headers (up to TCP's or UDP's; replies are not timed then), or a number of `BYTES`")
	fs.StringArrayVar(&f.hosts, "host", nil, "capture in that `HOST`'s network: netns:NAME, unit:NAME, container:NAME, pid:N, or NAME=SPEC; may be given again")
}

// onlyLive are the flags that mean nothing where files are read.
var onlyLive = []string{"duration", "filter", "keep", "host"}

// check says what of the flags contradicts the arguments.
func (f *liveFlags) check(c *cobra.Command, files []string) error {
	switch {
	case f.iface != "" && len(files) > 0:
		return usage(c.CommandPath(), "-i %s and %s: either an interface or files", f.iface, files[0])
	case f.iface == "" && len(files) == 0:
		return usage(c.CommandPath(), "it needs a capture file, - for standard input, or -i INTERFACE")
	case c.Flags().Changed("duration") && f.duration <= 0:
		return usage(c.CommandPath(), "-d 0: want more than 0")
	}
	for _, name := range onlyLive {
		if f.iface == "" && c.Flags().Changed(name) {
			return usage(c.CommandPath(), "--%s is for capturing; give -i INTERFACE, too", name)
		}
	}
	return nil
}

// snap is how many bytes are taken of each packet.
func (f *liveFlags) snap(command string) (int, error) {
	switch f.keep {
	case "all":
		return filter.Whole, nil
	case "headers":
		return filter.Headers, nil
	}
	n, err := strconv.Atoi(f.keep)
	if err != nil || n < 64 || n > filter.Whole {
		return 0, usage(command, "--keep %s: want all, headers, or a number of bytes from 64 to %d", f.keep, filter.Whole)
	}
	return n, nil
}

// open opens the captures, of all hosts before the first packet is read.
func (f *liveFlags) open(w *world, c *cobra.Command) (in *captures, err error) {
	o := live.Options{Interface: f.iface, Filter: f.filter}
	if o.Snap, err = f.snap(c.CommandPath()); err != nil {
		return nil, err
	}
	ctx, end := c.Context(), context.CancelFunc(func() {})
	if f.duration > 0 {
		ctx, end = context.WithTimeout(ctx, f.duration)
	}
	in = &captures{since: time.Now(), planned: f.duration, end: end}
	hosts, err := f.where()
	if err != nil {
		return nil, err
	}
	for _, h := range hosts {
		if err := in.capture(ctx, h, o); err != nil {
			in.close()
			return nil, err
		}
	}
	var names []string
	for _, s := range in.sources {
		names = append(names, s.Name)
	}
	length := "until ^C"
	if f.duration > 0 {
		length = "for " + f.duration.String()
	}
	fmt.Fprintf(w.stderr, "capturing on %s %s\n", strings.Join(names, ", "), length) // who sends now is seen
	return in, nil
}

// place is a host and what its packets are named after.
type place struct{ name, spec string }

// where lists the hosts; nobody named is here.
func (f *liveFlags) where() ([]place, error) {
	if len(f.hosts) == 0 {
		return []place{{"", "local"}}, nil
	}
	var named []string
	for _, v := range f.hosts {
		if kind, arg, _ := strings.Cut(v, ":"); !strings.Contains(kind, "=") && arg != "" {
			v = arg + "=" + v
		}
		named = append(named, v)
	}
	specs, err := parseHosts(named)
	if err != nil {
		return nil, fail(exitUsage, err)
	}
	var list []place
	for _, s := range specs {
		list = append(list, place{s.Name + ":", s.Spec})
	}
	return list, nil
}

// capture opens the capture in one host. The socket belongs to the network
// namespace of the thread that made it, so the host need not stay open.
func (in *captures) capture(ctx context.Context, at place, o live.Options) error {
	h, err := host.Open(cmp.Or(strings.TrimSuffix(at.name, ":"), "local"), at.spec)
	if err != nil {
		return err
	}
	defer h.Close()
	var ring *live.Ring
	err = h.Do(func() (err error) {
		ring, err = live.Open(ctx, o)
		return err
	})
	var wrong *filter.Error
	switch {
	case errors.As(err, &wrong):
		return fail(exitUsage, err)
	case errors.Is(err, fs.ErrPermission):
		if why := mayCapture(); why != nil {
			return why
		}
		return err
	case err != nil:
		return fail(exitMissing, err)
	}
	in.rings = append(in.rings, ring)
	in.sources = append(in.sources, capture.Source{Name: at.name + o.Interface, Packets: ring})
	return nil
}

// watching is the line of progress while packets are captured.
func (in *captures) watching(packets int64) string {
	text := layout.Count(packets) + " packets"
	dropped := int64(0)
	for _, r := range in.rings {
		dropped += r.Dropped()
	}
	if dropped > 0 {
		text += fmt.Sprintf(", %s dropped by the kernel", layout.Count(dropped))
	}
	text += fmt.Sprintf("   %.0f", time.Since(in.since).Seconds())
	if in.planned > 0 {
		text += fmt.Sprintf(" of %.0f", in.planned.Round(time.Second).Seconds())
	}
	return text + " s"
}

// captures are the files that are being read, or the interfaces.
type captures struct {
	sources []capture.Source
	files   []*os.File
	size    int64 // 0 where it is not known
	read    counted

	rings   []*live.Ring
	since   time.Time
	planned time.Duration      // 0: until ^C
	end     context.CancelFunc // of rings
}

func (in *captures) close() {
	for _, f := range in.files {
		f.Close()
	}
	for _, r := range in.rings {
		r.Close()
	}
	if in.end != nil {
		in.end()
	}
}
