// Package host is a machine, network namespace or container as the others find
// it: entering its namespaces, its processes, the kernel's small files, what an
// error makes of a signal; package rooted, the files of another root directory, and
// package netlink. Probes, tracers, changes and the lab ask it alike.
package host
