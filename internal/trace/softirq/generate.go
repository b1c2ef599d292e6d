package softirq

//go:generate go tool bpf2go -tags linux -target bpfel -cflags "-O2 -mcpu=v3 -Wall -Werror -Wno-unused-function -Wno-unused-variable -I../bpf" -type vector -type handler -type irq_name bpf softirq.bpf.c
