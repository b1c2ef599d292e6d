package change

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ring is how many descriptors a ring of a network card has: "eth0 rx".
type ring struct {
	net  netns
	name string
}

// ringParam is struct ethtool_ringparam, linux/ethtool.h.
type ringParam struct {
	cmd                               uint32
	rxMost, miniMost, jumboMost, most uint32
	rx, mini, jumbo, tx               uint32
}

const (
	getRing = 0x10 // ETHTOOL_GRINGPARAM
	setRing = 0x11 // ETHTOOL_SRINGPARAM
)

func (r ring) get() (v string, err error) {
	err = r.net.do(func() error {
		p := ringParam{cmd: getRing}
		err := r.ioctl(&p)
		now, _ := r.of(&p)
		v = strconv.FormatUint(uint64(*now), 10)
		return err
	})
	if err != nil {
		return "", r.explain(err)
	}
	return v, nil
}

func (r ring) set(v string) error {
	n, err := strconv.ParseUint(v, 10, 31)
	if err != nil {
		return fmt.Errorf("ring %s: want a whole number, got %q", r.name, v)
	}
	return r.explain(r.net.do(func() error {
		p := ringParam{cmd: getRing}
		if err := r.ioctl(&p); err != nil {
			return err
		}
		now, most := r.of(&p)
		if uint32(n) > most {
			return fmt.Errorf("it has at most %d: %w", most, ErrNotPossible)
		}
		*now, p.cmd = uint32(n), setRing
		return r.ioctl(&p)
	}))
}

func (r ring) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENODEV):
		return fmt.Errorf("ring %s: no such interface: %w", r.name, fs.ErrNotExist)
	case errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("ring %s: the interface has none that can be set (virtual ones seldom have): %w", r.name, ErrNotPossible)
	}
	return fmt.Errorf("ring %s: %w", r.name, err)
}

func (r ring) of(p *ringParam) (now *uint32, most uint32) {
	if strings.HasSuffix(r.name, " tx") {
		return &p.tx, p.most
	}
	return &p.rx, p.rxMost
}

func (r ring) ioctl(p *ringParam) error {
	iface, _, _ := strings.Cut(r.name, " ")
	var request struct { // struct ifreq with a pointer in its union
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	copy(request.name[:unix.IFNAMSIZ-1], iface)
	request.data = unsafe.Pointer(p)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	runtime.KeepAlive(p)
	if e != 0 {
		return e
	}
	return nil
}
