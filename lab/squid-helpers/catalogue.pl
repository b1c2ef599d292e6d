#!/usr/bin/perl
# Says whether an address may be fetched: asks the catalogue of sites, which takes its 40 ms.
$| = 1;
while (<STDIN>) {
    select(undef, undef, undef, 0.04);
    print "OK\n";
}
