package disk

//go:generate go tool bpf2go -tags linux -target bpfel -cflags "-O2 -mcpu=v3 -Wall -Werror -Wno-unused-function -Wno-unused-variable -I../bpf" -type device_op -type device -type disk_name -type owner -type owned -type target -type target_file -type syncer -type syncs bpf disk.bpf.c
