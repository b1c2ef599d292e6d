package wait

const long = `A thread is blocked from the moment it leaves its CPU asleep until it is woken;
the wait for a CPU that follows is the runqueue tracer's. What it waits for is
told by the system call that it is in, and by the file that the call is about.

The first table is of what holds threads up: disks, locks, answers of other
services. The second is of threads that most often have nothing to do: in poll,
accept, sleep, waiting for a child, or for the next request of a client
(towards clients@…). Whether a sleep is idleness or part of a request's work,
only the program knows.`

const cost = "0.42 µs of BPF run time a switch, 0.5 µs together with runqueue, whose program it shares (Linux 6.18, 2 CPUs, threads on pipes), " +
	"and 0.2 to 0.8 µs a thread for each look at the waits that last"

var blind = []string{
	"of a wait that began before the tracer, the part before is not counted; it is in no count of waits and no histogram",
	"on Linux 6.18 programs do not run for about one event in a thousand; a wait whose beginning was so not seen is in lost_total{what=\"switches\"}",
	"where the kernel was built without sched_info, the wait for a CPU is part of the wait before it",
	"a lock may also be a pool's idle thread that waits for work, or a join: all are the futex call",
	"a sleep may be a part of a request's work, as usleep in PHP; it is listed with those who are idle",
	"a thread that polls at most four files and waits for one that is connected counts as reading from (writing to, connecting to) the first such; a server that polls so few is therefore no event server here",
	"of a poll that was there before the tracer, the files are not known",
	"whom an epoll waits for is not known: event servers (nginx, Node) wait in poll, whatever they wait for",
	"a close of a file, or a page of a mapped one, that a program's file system (FUSE) has to answer is not told from other ones; virtiofs is one of these, and a stat that seccomp hands to a supervisor looks like one",
	"a program of 32 bits is told apart by its state alone: disk, uninterruptible_other, other",
	"kernel threads are not counted: they mostly wait for work",
	"a connect() that does not sleep but burns CPU looking for a port is in the tcp tracer's latency, not here",
	"of a connection that was accepted, the peer is not told; towards is our own address, as clients@ADDRESS. A listener whose queue has the length 0 makes its connections look like our own",
	"threads are told apart by the command of their process, not one by one; at most 1,536 sums are kept, 512 of them of targets: the first that come",
	"who has the other end of a pipe is searched for in one hundredth of the time, at most, and in vain ever more rarely; of a pipe with a name (mkfifo), and where several processes have it, it is not told",
	"in a PID namespace of our own (a container), our own process is not recognised, and is counted with the others",
}
