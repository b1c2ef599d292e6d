package wait

//go:generate go tool bpf2go -tags linux -target bpfel -cflags "-O2 -mcpu=v3 -Wall -Werror -Wno-unused-function -Wno-unused-variable -I../bpf -Ireason" -type reason -type call -type peer -type cause -type group -type sum -type path bpf wait.bpf.c
