# Asks the database for each page, over one of the connections of a pool.
require 'socket'

POOL = Queue.new
Integer(ENV.fetch('POOL')).times do
  c = TCPSocket.new('127.0.0.1', 8100)
  c.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
  POOL << c
end

def ask
  c = POOL.pop
  c.write("GET / HTTP/1.1\r\nHost: database\r\n\r\n")
  c.readpartial(4096)
  "found\n"
ensure
  POOL << c if c
end

run ->(env) { [200, {'Content-Type' => 'text/plain'}, [ask]] }
