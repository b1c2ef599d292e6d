# Signs a ticket for each request.
use strict;
use warnings;
use Digest::SHA qw(sha256);
require './web.pl';

serve(8000, sub {
    my $sum = 'ticket';
    $sum = sha256($sum) for 1 .. 4000;
    return unpack('H*', $sum) . "\n";
});
