vcl 4.1;

backend app {
    .host = "127.0.0.1";
    .port = "8001";
    .max_connections = {{.most}};
}

sub vcl_recv {
    return (pass);
}
