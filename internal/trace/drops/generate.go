package drops

//go:generate go tool bpf2go -tags linux -target bpfel -cflags "-O2 -mcpu=v3 -Wall -Werror -Wno-unused-function -Wno-unused-variable -I../bpf" -type fate -type port_fate -type delayed bpf drops.bpf.c
