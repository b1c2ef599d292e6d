-- Pairs of threads hand a byte to and fro through two pipes: each hand-over is
-- a sleep of one and a wake-up of the other, and almost nothing else.
local ffi = require("ffi")
ffi.cdef[[
int pipe(int fds[2]);
int dup2(int from, int to);
long read(int fd, void *buf, unsigned long n);
long write(int fd, const void *buf, unsigned long n);
]]
local first = 200 -- descriptors: thread t reads from first+2t, and first+2t+1 writes to it

function init()
  local fds = ffi.new("int[2]")
  for t = 0, sysbench.opt.threads - 1 do
    assert(ffi.C.pipe(fds) == 0)
    ffi.C.dup2(fds[0], first + 2 * t)
    ffi.C.dup2(fds[1], first + 2 * t + 1)
  end
end

local byte = ffi.new("char[1]")

function thread_init()
  mine = first + 2 * sysbench.tid
  other = first + 2 * (sysbench.tid % 2 == 0 and sysbench.tid + 1 or sysbench.tid - 1)
  if sysbench.tid % 2 == 0 then ffi.C.write(other + 1, byte, 1) end
end

function event()
  ffi.C.read(mine, byte, 1)
  ffi.C.write(other + 1, byte, 1)
end
