# tickets.pl WORKERS: a server with WORKERS processes for a connection each request, which take turns to accept by a lock.
# With "inside" the worker reads the request before it gives the turn away; with "outside" it does so afterwards.
use strict;
use warnings;
use Fcntl ':flock';
use IO::Socket::INET;

my ($workers, $where) = @ARGV;
my $listener = IO::Socket::INET->new(LocalPort => 8000, Listen => 1024, ReuseAddr => 1) or die "listen on port 8000: $!\n";

sub request {
    my $c = shift;
    my $request = '';
    while ($request !~ /\r\n\r\n/) {
        sysread($c, $request, 4096, length $request) or return 0;
    }
    return 1;
}

sub worker {
    open my $turn, '>>', 'accept.lock' or die "accept.lock: $!\n";
    while (1) {
        flock($turn, LOCK_EX);
        my $c = $listener->accept;
        my $good = $where eq 'inside' ? request($c) : 1;
        flock($turn, LOCK_UN);
        $good = request($c) if $where ne 'inside';
        syswrite($c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\na ticket\n") if $good;
        close $c;
    }
}

for (1 .. $workers) {
    fork or worker();
}
1 while wait > 0;
