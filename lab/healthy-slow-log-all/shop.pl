# Shows three articles for every request.
use strict;
use warnings;
use DBI;
require './web.pl';

my $db;

sub work {
    $db //= DBI->connect('DBI:MariaDB:database=shop;host=127.0.0.1', 'root', '', { RaiseError => 1, PrintError => 0 });
    return join '', map { $db->selectrow_array('SELECT note FROM stock WHERE id = ?', undef, 1 + int(rand(20000))) . "\n" } 1 .. 3;
}

serve(8000, \&work);
