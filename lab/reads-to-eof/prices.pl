# Asks the partner for each request, and reads to the end.
use strict;
use warnings;
use FindBin;
use IO::Socket::INET;
require "$FindBin::Bin/web.pl";

serve(8000, sub {
    my $partner = IO::Socket::INET->new('127.0.0.1:8100') or die "partner: $!\n";
    print $partner "GET /price HTTP/1.1\r\nHost: partner\r\nConnection: $ARGV[0]\r\n\r\n";
    local $/;
    my $reply = <$partner>;
    return ($reply =~ /\r\n\r\n(.*)/s)[0];
});
