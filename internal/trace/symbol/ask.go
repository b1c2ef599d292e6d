package symbol

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/cilium/ebpf"

	"plimsoll/internal/lazy"
)

// maxAsked is how many addresses' names are remembered.
const maxAsked = 1 << 14

// kernelNames names the kernel's functions. From Linux 5.14 on it asks the kernel
// about each address. To list them all instead takes a hundred milliseconds and five
// megabytes, and a few hundred are all that is ever seen.
type kernelNames struct {
	list  *kernelTable // nil where the kernel can be asked
	users int          // resolvers that have it open; under the lock of shared

	mu     sync.Mutex // goroutines share it, and there is room for one answer
	ask    *ebpf.Program
	answer *ebpf.Variable
	known  map[uint64]kernelName
}

// kernelName is a function and the module that it is in ("[nf_conntrack]"), "" for
// the kernel itself.
type kernelName struct{ function, module string }

// shared is what the resolvers of this process use, nil while there are none.
var shared struct {
	sync.Mutex
	names *kernelNames
}

// openKernel returns what all share. The caller closes it.
func openKernel() *kernelNames {
	shared.Lock()
	defer shared.Unlock()
	if shared.names == nil {
		k, err := newAsker()
		if err != nil { // an older kernel, or we have not the privilege: there is the list
			k = &kernelNames{list: readKernel()}
		}
		shared.names = k
	}
	shared.names.users++
	return shared.names
}

// close gives it back; what it holds in the kernel goes with the last user.
func (k *kernelNames) close() error {
	shared.Lock()
	defer shared.Unlock()
	if k.users--; k.users > 0 {
		return nil
	}
	shared.names = nil
	if k.ask == nil {
		return nil
	}
	return k.ask.Close()
}

// newAsker returns kernelNames that ask.
func newAsker() (*kernelNames, error) {
	spec, err := loadBpf()
	if err != nil {
		return nil, err
	}
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, fmt.Errorf("load the program that names the kernel's functions: %w", err)
	}
	defer coll.Close()
	k := &kernelNames{ask: coll.DetachProgram(bpfProgNameFunction), answer: coll.Variables[bpfVarAnswer], known: map[uint64]kernelName{}}
	if _, err := k.run(0); err != nil {
		return nil, errors.Join(err, k.ask.Close())
	}
	return k, nil
}

// err says why functions cannot be named; nil if they can.
func (k *kernelNames) err() error {
	if k.list == nil {
		return nil
	}
	return k.list.err
}

// find returns the name of the function that holds an address, and the module that
// it is in; "" if none does.
func (k *kernelNames) find(addr uint64) (name, module string) {
	if k.list != nil {
		return k.list.find(addr)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	n, known := k.known[addr]
	if !known {
		text, err := k.run(addr)
		if err == nil {
			n = parseKernelName(text)
		}
		if len(k.known) >= maxAsked {
			clear(k.known)
		}
		k.known[addr] = n
	}
	return n.function, n.module
}

// run has the kernel print a name.
func (k *kernelNames) run(addr uint64) (string, error) {
	if _, err := k.ask.Run(&ebpf.RunOptions{Context: bpfQuestion{Address: addr}}); err != nil {
		return "", fmt.Errorf("ask the kernel for a function's name: %w", err)
	}
	text := make([]byte, k.answer.Size())
	if err := k.answer.Get(text); err != nil {
		return "", fmt.Errorf("read a function's name: %w", err)
	}
	text, _, _ = bytes.Cut(text, []byte{0})
	return string(text), nil
}

// ofBPF are BPF's own programs.
var ofBPF = lazy.Regexp(`^bpf_(prog_[0-9a-f]{16}|trampoline_[0-9]+)(_|$)`)

// parseKernelName takes apart what the kernel prints for %ps: "nf_confirm
// [nf_conntrack]", or the address itself where there is no function.
func parseKernelName(text string) kernelName {
	function, module, _ := strings.Cut(text, " ")
	if strings.HasPrefix(function, "0x") || len(function) > maxName {
		return kernelName{}
	}
	if module == "" && ofBPF().MatchString(function) {
		module = "[bpf]" // as in the kernel's list; %ps leaves it out
	}
	return kernelName{function, module}
}
