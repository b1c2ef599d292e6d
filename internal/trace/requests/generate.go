package requests

//go:generate go tool bpf2go -tags linux -target bpfel -cflags "-O2 -mcpu=v3 -Wall -Werror -Wno-unused-function -Wno-unused-variable -I../bpf" -type place -type group -type sums -type arrivals -type peer -type asked -type at -type under_way -type holder -type role -type then -type failure -type exclusion bpf requests.bpf.c
