package cpu

//go:generate go tool bpf2go -tags linux -target bpfel -cflags "-O2 -mcpu=v3 -Wall -Werror -Wno-unused-function -Wno-unused-variable -I../bpf" -type sample -type stack_key -type stack -type php -type script bpf cpu.bpf.c
