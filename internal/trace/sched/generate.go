package sched

//go:generate go tool bpf2go -tags linux -target bpfel -cflags "-O2 -mcpu=v3 -Wall -Werror -Wno-unused-function -Wno-unused-variable -I../bpf -I../wait/reason" -type command -type queued -type pair -type reason -type call -type peer -type cause -type group -type sum -type path bpf sched.bpf.c
