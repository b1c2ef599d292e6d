# A small HTTP server with a process for each connection: serve(PORT, WORK) answers every request
# with what WORK returns; with 500, and a line in its own log, where it dies.
use strict;
use warnings;
use IO::Socket::INET;

sub answer {
    my ($c, $work) = @_;
    while (sysread($c, my $request, 4096)) {
        my $body = eval { $work->() };
        my $status = defined $body ? '200 OK' : '500 Internal Server Error';
        if (!defined $body) {
            $body = $@;
            print STDERR $body;
        }
        syswrite($c, "HTTP/1.1 $status\r\nContent-Length: " . length($body) . "\r\n\r\n$body") or last;
    }
    exit 0;
}

sub serve {
    my ($port, $work) = @_;
    my $listener = IO::Socket::INET->new(LocalPort => $port, Listen => 1024, ReuseAddr => 1) or die "listen on port $port: $!\n";
    $SIG{CHLD} = 'IGNORE';
    while (1) {
        my $c = $listener->accept or next;
        if (!fork) {
            close $listener;
            answer($c, $work);
        }
        close $c;
    }
}

1;
