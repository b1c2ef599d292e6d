vcl 4.1;

import std;

backend app {
    .host = "127.0.0.1";
    .port = "8001";
}

sub vcl_recv {
    # Stands for many visitors: nearly all look at one of a hundred pages, and one in fifty digs in the archive.
    if (req.url == "/") {
        if (std.random(0, 50) < 1) {
            set req.url = "/page/" + std.integer(real=std.random(100, 2999.99));
        } else {
            set req.url = "/page/" + std.integer(real=std.random(0, 99.99));
        }
    }
}
