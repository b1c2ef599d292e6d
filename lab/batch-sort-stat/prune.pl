#!/usr/bin/perl
# prune.pl compare|once: finds the oldest of the scanned letters, to put them away, again and again; says how long it took.
use strict;
use warnings;
use Time::HiRes qw(time);

mkdir 'letters';
for my $n (1 .. 30_000) {
    my $name = sprintf 'letters/%05d.pdf', $n;
    open my $f, '>', $name or die "$name: $!";
    close $f;
    my $when = 1_700_000_000 + ($n * 7919) % 30_011;
    utime $when, $when, $name;
}

sub by_comparing {
    return sort { (stat $a)[9] <=> (stat $b)[9] } @_;
}

sub by_ages {
    my %age = map { $_ => (stat $_)[9] } @_;
    return sort { $age{$a} <=> $age{$b} } @_;
}

$| = 1;
while (1) {
    my $began = time;
    my @letters = glob 'letters/*.pdf';
    my @oldest = ($ARGV[0] eq 'compare' ? by_comparing(@letters) : by_ages(@letters))[0 .. 99];
    printf "%s is the oldest of %d, %.2f s\n", $oldest[0], scalar @letters, time - $began;
}
