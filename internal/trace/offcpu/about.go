package offcpu

const long = `A thread is blocked from the moment it leaves its CPU asleep until it is woken;
the wait for a CPU that follows is the runqueue tracer's. For each wait the
stacks of the kernel and of the process are kept, and who woke it: the process
whose thread did, or "interrupt" for a device or the time.

Threads that wait for a disk, a lock, a peer, a pipe or a page are held up;
those in poll, accept, sleep or wait for a child most often have nothing to do,
and come last. A lock is named by its variable where it has one; one on the
heap has only an address.`

const cost = "1.8 to 2 µs a switch and 2.3 to 4.4 µs a wake-up, for the stacks of who sleeps and of who wakes, in BPF run time " +
	"(pipe and socket ping-pong, Linux 6.18, 2 CPUs, busy); reading takes 1 to 10 ms"

var blind = []string{
	"a wait that began before the tracer was switched on is not counted; one that lasts when it is switched off counts as far as it has come, without a waker",
	"waits shorter than 1 µs are left out",
	"the process's half of a stack is found by frame pointers: where it was built without, it is one or two functions, or wrong; whoever calls a C library without them is missing",
	"on Linux 6.18 programs do not run for about one event in a thousand, of wake-ups by a timer up to three in a hundred: such a wait is not seen, or has no waker",
	"a lock may also be a pool's idle thread that waits for work, or a join: all are the futex call",
	"a lock on the heap has no name, only its address",
	"who wakes for a connection on the same machine is the sender; across a network it is an interrupt, and who sent is not known",
	"kernel threads are not counted: they mostly wait for work",
	"at most 8,192 kinds of waits (process, stacks, waker) between two readings, 16,384 in all, 1,024 locks, 4,096 stacks of the kernel and 8,192 of living processes are kept: the first that come",
	"before Linux 5.14, where the kernel's addresses are hidden (kernel.kptr_restrict), functions have no names, and who runs when an interrupt comes is taken for the waker",
	"in a PID namespace of our own (a container), our own process is not recognised, and is counted with the others",
}
