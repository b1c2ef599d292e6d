# Counts up what was sold of one article for every request.
use strict;
use warnings;
use DBI;
require './web.pl';

my $db;

sub work {
    $db //= DBI->connect('DBI:MariaDB:database=shop;host=127.0.0.1', 'root', '', { RaiseError => 1, PrintError => 0 });
    $db->do('UPDATE stock SET sold = sold + 1 WHERE id = ?', undef, 50 * int(rand(100)) + 1 + int(rand(40)));
    return "sold\n";
}

serve(8000, \&work);
