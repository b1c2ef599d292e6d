# ship.pl again|wait: ships what comes out of a pipe whose other end is closed; at its end it tries again at once, or waits.
use strict;
pipe(my $from, my $to) or die "pipe: $!";
close $to;
while (1) {
    my $set = '';
    vec($set, fileno($from), 1) = 1;
    select($set, undef, undef, 10);
    my $got = sysread($from, my $line, 4096);
    sleep 1 if !$got && $ARGV[0] eq 'wait';
}
