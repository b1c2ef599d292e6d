package offcpu

//go:generate go tool bpf2go -tags linux -target bpfel -cflags "-O2 -mcpu=v3 -Wall -Werror -Wno-unused-function -Wno-unused-variable -I../bpf -I../wait/reason" -type wait_key -type wait -type lock_key -type lasting -type frames bpf offcpu.bpf.c
