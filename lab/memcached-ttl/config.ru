# Shows a product: from memcached, or else from the database, and then it is kept for SECONDS.
require 'socket'

SECONDS = Integer(ENV.fetch('SECONDS'))

def connection(name, port)
  Thread.current[name] ||= TCPSocket.new('127.0.0.1', port).tap { |c| c.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1) }
end

def kept(key)
  c = connection(:cache, 11211)
  c.write("get #{key}\r\n")
  size = c.gets[/\AVALUE \S+ \d+ (\d+)/, 1] or return nil
  value = c.read(size.to_i)
  2.times { c.gets }
  value
end

def keep(key, value)
  c = connection(:cache, 11211)
  c.write("set #{key} 0 #{SECONDS} #{value.bytesize}\r\n#{value}\r\n")
  c.gets
end

def found(key)
  TCPSocket.open('127.0.0.1', 8100) do |c|
    c.write("GET /#{key} HTTP/1.1\r\nHost: database\r\n\r\n")
    c.read
  end
  "#{key}: " + 'lamp ' * 400
end

def product
  key = "product:#{rand(200)}"
  kept(key) || found(key).tap { |value| keep(key, value) }
end

run ->(env) { [200, {'Content-Type' => 'text/plain'}, [product]] }
