package disk

import (
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"plimsoll/internal/trace/tracetest"
)

const workload = "PLIMSOLL_TEST_WORKLOAD"

const (
	block  = 4096
	writes = 1009
	reads  = 503
	syncs  = 211
	many   = crowded + 64
)

func TestMain(m *testing.M) {
	switch os.Getenv(workload) {
	case "":
		os.Exit(tracetest.Main(m, Tracer()))
	case "sync":
		os.Exit(sync(os.Args[1]))
	case "aio":
		os.Exit(aio(os.Args[1]))
	default:
		os.Exit(manyFiles(os.Args[1]))
	}
}

// sync writes and syncs, and prints how long its syncs took by its own clock.
func sync(path string) int {
	file, err := os.Create(path)
	if err != nil {
		return 1
	}
	var took time.Duration
	for range syncs {
		if _, err := file.WriteString("x"); err != nil {
			return 1
		}
		begin := time.Now()
		if err := unix.Fdatasync(int(file.Fd())); err != nil {
			return 1
		}
		took += time.Since(begin)
	}
	fmt.Println(took.Nanoseconds())
	return 0
}

// iocb is the kernel's struct of that name, as on every machine whose bytes are
// ordered as ours.
type iocb struct {
	data           uint64
	key, rwFlags   uint32
	opcode         uint16
	priority       int16
	file           uint32
	buffer, length uint64
	offset         int64
	reserved       uint64
	flags, event   uint32
}

// aio reads blocks past the page cache into shared memory, one after the other.
func aio(path string) int {
	memory, err := unix.Mmap(-1, 0, block, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANON)
	if err != nil {
		return 1
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECT, 0)
	if err != nil {
		return 1
	}
	var context uintptr
	if _, _, errno := unix.Syscall(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&context)), 0); errno != 0 {
		return 2
	}
	var done [4]uint64
	for i := range reads {
		one := &iocb{file: uint32(fd), buffer: uint64(uintptr(unsafe.Pointer(&memory[0]))), length: block, offset: int64(i) * block}
		list := [1]*iocb{one}
		if n, _, _ := unix.Syscall(unix.SYS_IO_SUBMIT, context, 1, uintptr(unsafe.Pointer(&list))); n != 1 {
			return 1
		}
		n, _, errno := unix.Syscall6(unix.SYS_IO_GETEVENTS, context, 1, 1, uintptr(unsafe.Pointer(&done)), 0, 0)
		for errno == unix.EINTR { // Go's runtime stops its threads by a signal
			n, _, errno = unix.Syscall6(unix.SYS_IO_GETEVENTS, context, 1, 1, uintptr(unsafe.Pointer(&done)), 0, 0)
		}
		if n != 1 {
			return 1
		}
	}
	return 0
}

// manyFiles writes a block to each of many files.
func manyFiles(dir string) int {
	memory, err := unix.Mmap(-1, 0, block, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return 1
	}
	for i := range many {
		fd, err := unix.Open(filepath.Join(dir, strconv.Itoa(i)), unix.O_CREAT|unix.O_WRONLY|unix.O_DIRECT, 0o600)
		if err != nil {
			return 1
		}
		if _, err := unix.Write(fd, memory); err != nil {
			return 1
		}
		_ = unix.Close(fd) // it is written
	}
	return 0
}

// run runs a command and returns what it says, and how long it took.
func run(t *testing.T, what string, args ...string) (string, time.Duration) {
	t.Helper()
	c := osexec.Command(args[0], args[1:]...)
	c.Env = append(os.Environ(), workload+"="+what)
	c.Stderr = os.Stderr
	begin := time.Now()
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return string(out), time.Since(begin)
}

func begin(t *testing.T) *Trace {
	t.Helper()
	tracetest.Need(t, Tracer())
	tr, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	return tr
}

// scratch is a folder on a disk that does direct I/O.
func scratch(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	fd, err := unix.Open(filepath.Join(dir, "probe"), unix.O_CREAT|unix.O_WRONLY|unix.O_DIRECT, 0o600)
	if err != nil {
		t.Skipf("%s does no direct I/O: %v", dir, err)
	}
	unix.Close(fd)
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	if st.Type == unix.TMPFS_MAGIC {
		t.Skip("the folder for scratch files is in memory")
	}
	return dir
}

// unseen is how much has begun, and its end may have been hidden from us by the
// kernel; see lost_ends in disk.bpf.c. On most it is what just now is under way.
func unseen(t *testing.T, tr *Trace) uint64 {
	t.Helper()
	lost, err := tr.Lost()
	if err != nil {
		t.Fatal(err)
	}
	n := lost["ends"]
	for name, size := range map[string]int{bpfVarRequests: maxRequests, bpfVarBios: 4 * maxRequests} {
		slots := make([]bpfUnderWay, size)
		if err := tr.Maps.Variables[name].Get(slots); err != nil {
			t.Fatal(err)
		}
		for i := range slots {
			if slots[i].Address != 0 {
				n++
			}
		}
	}
	return n
}

// ended says whether of what began all has ended, but for what was hidden from us.
func ended(t *testing.T, tr *Trace, got, want uint64) bool {
	t.Helper()
	hidden := unseen(t, tr)
	if got < want && want-got <= hidden {
		t.Logf("%d of %d ends were seen, %d were hidden", got, want, hidden)
	}
	return got <= want && want-got <= hidden
}

func look(t *testing.T, tr *Trace) Snapshot {
	t.Helper()
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	tracetest.NothingLost(t, s.Lost, "ends")
	return s
}

// process returns what processes of a name did, on all disks.
func process(s Snapshot, name, operation string, direct bool) Process {
	var sum Process
	for _, p := range s.Processes {
		if p.Name == name && p.Operation == operation && p.Direct == direct {
			sum.Requests += p.Requests
			sum.Bytes += p.Bytes
			sum.Completed += p.Completed
			sum.Time += p.Time
		}
	}
	return sum
}

// file returns the I/O of a file whose path ends so.
func file(s Snapshot, name, syscall string, direct bool, end string) uint64 {
	var n uint64
	for _, f := range s.Files {
		if f.Name == name && f.Syscall == syscall && f.Direct == direct && strings.HasSuffix(f.File, end) {
			n += f.Requests
		}
	}
	return n
}

// end is what the path of a file ends with, as far as it is kept.
func end(path string) string {
	parts := strings.Split(path, "/")
	return "/" + strings.Join(parts[max(len(parts)-8, 1):], "/")
}

func TestDirect(t *testing.T) {
	dir := scratch(t)
	tr := begin(t)
	tracetest.AllAttached(t, Tracer(), tr)
	me := "direct" + strconv.Itoa(os.Getpid())
	dd, path := tracetest.Copy(t, "/bin/dd", me), filepath.Join(dir, "some file")
	_, wrote := run(t, "", dd, "if=/dev/zero", "of="+path, "bs="+strconv.Itoa(block), "count="+strconv.Itoa(writes), "oflag=direct", "status=none")
	_, read := run(t, "", dd, "if="+path, "of=/dev/null", "bs="+strconv.Itoa(block), "count="+strconv.Itoa(reads), "iflag=direct", "status=none")
	s := look(t, tr)
	for _, want := range []struct {
		operation string
		requests  uint64
		within    time.Duration
	}{{"write", writes, wrote}, {"read", reads, read}} {
		p := process(s, me, want.operation, true)
		t.Logf("%s: %d, %v at the disk, %v by our clock", want.operation, p.Requests, p.Time, want.within)
		if p.Requests != want.requests || p.Bytes != want.requests*block || !ended(t, tr, p.Completed, want.requests) {
			t.Errorf("%s: %+v, want %d of %d bytes", want.operation, p, want.requests, block)
		}
		if p.Completed > 0 && p.Time <= 0 || p.Time > want.within { // one after the other
			t.Errorf("%s: %v at the disk, %v by our clock", want.operation, p.Time, want.within)
		}
		if n := file(s, me, want.operation, true, end(path)); n != want.requests {
			t.Errorf("%s: %d of the file %s, want %d; files are %+v", want.operation, n, end(path), want.requests, s.Files)
		}
	}
	samples := tracetest.Sink{}
	if err := tr.Read(samples); err != nil {
		t.Fatal(err)
	}
	found := 0
	for series, got := range samples {
		_, name, inside := strings.Cut(series, "@")
		if inside && strings.HasPrefix(name, "plimsoll_disk_file_requests_total{"+me+",write,yes,") && got == writes {
			found++
		}
	}
	if found != 1 {
		t.Errorf("%d series of the file's %d writes", found, writes)
	}
}

func TestAIO(t *testing.T) {
	dir := scratch(t)
	tr := begin(t)
	me := "aio" + strconv.Itoa(os.Getpid())
	path := filepath.Join(dir, "file")
	run(t, "", "/bin/dd", "if=/dev/zero", "of="+path, "bs="+strconv.Itoa(block), "count="+strconv.Itoa(reads), "conv=fsync", "status=none")
	run(t, "aio", tracetest.Copy(t, "/proc/self/exe", me), path)
	s := look(t, tr)
	if p := process(s, me, "read", true); p.Requests != reads || !ended(t, tr, p.Completed, reads) {
		t.Errorf("%d reads, %d ended, want %d", p.Requests, p.Completed, reads)
	}
	if n := file(s, me, "io_submit", true, end(path)); n != reads {
		t.Errorf("%d reads of the file, want %d; files are %+v", n, reads, s.Files)
	}
}

func TestCached(t *testing.T) {
	dir := scratch(t)
	tr := begin(t)
	me := "cached" + strconv.Itoa(os.Getpid())
	dd, path := tracetest.Copy(t, "/bin/dd", me), filepath.Join(dir, "file")
	run(t, "", dd, "if=/dev/zero", "of="+path, "bs="+strconv.Itoa(block), "count="+strconv.Itoa(writes), "conv=fsync", "status=none")
	run(t, "", dd, "if="+path, "iflag=nocache", "count=0", "status=none") // out of the page cache
	run(t, "", dd, "if="+path, "of=/dev/null", "bs="+strconv.Itoa(block), "status=none")
	s := look(t, tr)
	if n := file(s, me, "fsync", false, end(path)); n == 0 {
		t.Errorf("no writes of the file by fsync; files are %+v", s.Files)
	}
	if p := process(s, me, "write", false); p.Bytes < writes*block {
		t.Errorf("%d bytes were written, want at least %d", p.Bytes, writes*block)
	}
	if n := file(s, me, "read", false, end(path)); n == 0 {
		t.Errorf("no reads of the file; files are %+v", s.Files)
	}
	for _, operation := range []string{"read", "write"} {
		if p := process(s, me, operation, true); p.Requests > 0 {
			t.Errorf("%s: %d went past the page cache", operation, p.Requests)
		}
	}
}

func TestSyncs(t *testing.T) {
	dir := scratch(t)
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	if st.Type != unix.EXT4_SUPER_MAGIC {
		t.Skip("only of ext4 do we see syncs")
	}
	tr := begin(t)
	me := "sync" + strconv.Itoa(os.Getpid())
	said, _ := run(t, "sync", tracetest.Copy(t, "/proc/self/exe", me), filepath.Join(dir, "file"))
	took, err := strconv.ParseInt(strings.TrimSpace(said), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	var sum Sync
	for _, y := range look(t, tr).Syncs {
		if y.Name == me {
			sum = y
		}
	}
	t.Logf("%d took %v; %v by the program's clock", sum.Count, sum.Time, time.Duration(took))
	if sum.Count != syncs || sum.Times.Count() != syncs {
		t.Errorf("%d syncs, want %d", sum.Count, syncs)
	}
	if sum.Time <= 0 || sum.Time > time.Duration(took) {
		t.Errorf("they took %v, %v by the program's clock", sum.Time, time.Duration(took))
	}
}

// What a pause hides is hidden, and what comes after it is not.
func TestPause(t *testing.T) {
	dir := scratch(t)
	tr := begin(t)
	me := "pause" + strconv.Itoa(os.Getpid())
	dd := tracetest.Copy(t, "/bin/dd", me)
	write := func(n int) {
		t.Helper()
		run(t, "", dd, "if=/dev/zero", "of="+filepath.Join(dir, "file"), "bs="+strconv.Itoa(block), "count="+strconv.Itoa(n), "oflag=direct", "status=none")
	}
	write(101)
	if err := tr.Pause(); err != nil {
		t.Fatal(err)
	}
	write(53)
	if err := tr.Resume(); err != nil {
		t.Fatal(err)
	}
	write(103)
	p := process(look(t, tr), me, "write", true)
	if p.Requests != 204 || !ended(t, tr, p.Completed, 204) {
		t.Errorf("%d writes, %d ended, want those of before and after the pause, 204", p.Requests, p.Completed)
	}
}

func TestOnly(t *testing.T) {
	dir := scratch(t)
	tr := begin(t)
	if err := tr.Only(os.Getpid()); err != nil { // the child is another
		t.Fatal(err)
	}
	me := "only" + strconv.Itoa(os.Getpid())
	run(t, "", tracetest.Copy(t, "/bin/dd", me), "if=/dev/zero", "of="+filepath.Join(dir, "file"), "bs="+strconv.Itoa(block), "count=11", "oflag=direct", "status=none")
	s := look(t, tr)
	if p, n := process(s, me, "write", true), file(s, me, "write", true, ""); p.Requests > 0 || n > 0 {
		t.Errorf("of another: %+v, %d", p, n)
	}
	if len(s.Devices) == 0 {
		t.Error("the devices are nobody's, and must be there")
	}
}

// Of very many files those that matter little make room, and no I/O is lost; that
// somebody looks now and then, as in a run, leaves room for what others do meanwhile.
func TestManyFiles(t *testing.T) {
	dir := scratch(t)
	tr := begin(t)
	me := "many" + strconv.Itoa(os.Getpid())
	program, wrote, looked := tracetest.Copy(t, "/proc/self/exe", me), make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-wrote:
				close(looked)
				return
			case <-time.After(10 * time.Millisecond):
				if _, err := tr.Snapshot(); err != nil {
					looked <- err
				}
			}
		}
	}()
	run(t, "files", program, dir)
	close(wrote)
	for err := range looked {
		t.Error(err)
	}
	for range 2 { // when room is made, and thereafter
		s := look(t, tr)
		if n := file(s, me, "write", true, ""); n != many {
			t.Errorf("%d writes, want %d", n, many)
		}
		if n := len(s.Files); n > crowded {
			t.Errorf("%d files", n)
		}
	}
}

func TestLossIsCounted(t *testing.T) {
	dir := scratch(t)
	spec, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	tracetest.Need(t, Tracer())
	spec.Maps[bpfMapTargets].MaxEntries, spec.Maps[bpfMapOwners].MaxEntries, spec.Maps[bpfMapDevices].MaxEntries = 1, 1, 1
	tr, err := start(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	dd, path := tracetest.Copy(t, "/bin/dd", "loss"+strconv.Itoa(os.Getpid())), filepath.Join(dir, "file")
	// Of writes and reads one kind has the room. The kernel may skip our programs now
	// and then (see lost_ends), so that not each of the others need be counted.
	tracetest.Eventually(t, "some file, process and device find no room", func() bool {
		run(t, "", dd, "if=/dev/zero", "of="+path, "bs="+strconv.Itoa(block), "count=11", "oflag=direct", "status=none")
		run(t, "", dd, "if="+path, "of=/dev/null", "bs="+strconv.Itoa(block), "iflag=direct", "status=none")
		lost, err := tr.Lost()
		if err != nil {
			t.Fatal(err)
		}
		t.Log(lost)
		return lost["files"] > 0 && lost["processes"] > 0 && lost["devices"] > 0
	})
}

func TestDetaches(t *testing.T) {
	tracetest.Need(t, Tracer())
	tracetest.Detaches(t, Tracer())
}
