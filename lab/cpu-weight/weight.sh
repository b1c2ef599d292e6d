#!/bin/sh
# Gives the control group that this runs in a weight in shares, of which 1024 is the usual: weight.sh SHARES
set -e
cgroup=$(sed -n 's/^[0-9]*:\([^:]*,\)\{0,1\}cpu\(,[^:]*\)\{0,1\}://p' /proc/self/cgroup)
if [ -n "$cgroup" ]; then
    echo "$1" >"/sys/fs/cgroup/cpu$cgroup/cpu.shares"
else
    echo $((1 + ($1 - 2) * 9999 / 262142)) >"/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/cpu.weight"
fi
