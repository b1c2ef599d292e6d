# Takes lines from meters and answers each with OK: gateway.pl PORT
use strict;
use warnings;
use IO::Socket::INET;
use IO::Select;

my $listener = IO::Socket::INET->new(LocalPort => shift, Listen => 1024, ReuseAddr => 1) or die "listen: $!";
my $all = IO::Select->new($listener);
$SIG{PIPE} = 'IGNORE';
while (1) {
    for my $s ($all->can_read) {
        if ($s == $listener) {
            if (my $c = $listener->accept) {
                $all->add($c);
            } else {
                print STDERR "accept: $!\n";
                select undef, undef, undef, 0.01;
            }
        } elsif (sysread $s, my $line, 1000) {
            syswrite $s, "OK\n";
        } else {
            $all->remove($s);
            close $s;
        }
    }
}
