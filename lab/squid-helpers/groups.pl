#!/usr/bin/perl
# Says whether an address may go to a place: asks a directory, which takes its 40 ms.
$| = 1;
while (<STDIN>) {
    select(undef, undef, undef, 0.04);
    print "OK\n";
}
