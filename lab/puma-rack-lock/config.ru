# Asks the stock service for each page, over a connection that the thread keeps.
require 'socket'

def stock
  Thread.current[:stock] ||= TCPSocket.new('127.0.0.1', 8100).tap { |c| c.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1) }
end

def ask
  stock.write("GET / HTTP/1.1\r\nHost: stock\r\n\r\n")
  stock.readpartial(4096)
  "three left\n"
end

# Lets one request at a time into the application, as Rack::Lock does.
class OneAtATime
  def initialize(app)
    @app = app
    @lock = Mutex.new
  end

  def call(env)
    @lock.synchronize { @app.call(env) }
  end
end

{{.lock}}
run ->(env) { [200, {'Content-Type' => 'text/plain'}, [ask]] }
