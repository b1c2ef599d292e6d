%% A small web service: a process for each connection, a line for each request.
-module(status).
-export([start/0]).

start() ->
    {ok, Listener} = gen_tcp:listen(8000, [binary, {packet, http_bin}, {active, false}, {reuseaddr, true}, {nodelay, true}, {backlog, 1024}]),
    accept(Listener).

accept(Listener) ->
    {ok, Visitor} = gen_tcp:accept(Listener),
    Pid = spawn(fun() -> receive go -> visitor(Visitor) end end),
    ok = gen_tcp:controlling_process(Visitor, Pid),
    Pid ! go,
    accept(Listener).

visitor(Visitor) ->
    case gen_tcp:recv(Visitor, 0) of
        {ok, http_eoh} ->
            ok = gen_tcp:send(Visitor, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nup\n"),
            visitor(Visitor);
        {ok, _} ->
            visitor(Visitor);
        {error, _} ->
            gen_tcp:close(Visitor)
    end.
