# front.rb HOW: shows the day's offers, which it keeps for a second. "all": whoever finds them too old fetches them anew;
# "one": one thread does, and the others show the old ones meanwhile.
require 'net/http'
require 'socket'

HOW = ARGV[0]
$offers, $until = nil, 0.0
refreshing = Mutex.new

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

def fetch
  http = Net::HTTP.new('127.0.0.1', 8100)
  http.read_timeout = 30
  $offers = http.get('/').body
  $until = now + 1
end

listener = TCPServer.new('', 8000)
listener.listen(1024)
fetch
loop do
  Thread.new(listener.accept) do |c|
    c.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
    while (line = c.gets)
      line = c.gets until line.nil? || line == "\r\n"
      if now > $until
        if HOW == 'all'
          fetch
        elsif refreshing.try_lock
          begin
            fetch
          ensure
            refreshing.unlock
          end
        end
      end
      c.write("HTTP/1.1 200 OK\r\nContent-Length: #{$offers.bytesize}\r\n\r\n#{$offers}")
    end
  rescue SystemCallError
    nil
  ensure
    c.close
  end
end
