# Adds up a cart of a hundred items, and logs what it does at level debug.
require 'logger'

LOG = Logger.new('shop.log', level: ENV.fetch('LEVEL'))

def total
  sum = 0
  100.times do |n|
    price = (n * 37) % 100
    LOG.debug("item #{n} costs #{price}")
    sum += price
    LOG.debug { "the sum is #{sum} after #{n + 1} items" }
  end
  LOG.info("cart of 100 items: #{sum}")
  "#{sum} euro\n"
end

run ->(env) { [200, {'Content-Type' => 'text/plain'}, [total]] }
