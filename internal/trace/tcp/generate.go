package tcp

//go:generate go tool bpf2go -tags linux -target bpfel -cflags "-O2 -mcpu=v3 -Wall -Werror -Wno-unused-function -Wno-unused-variable -I../bpf" -type event -type kind -type retransmit -type route -type connects -type failure bpf tcp.bpf.c
