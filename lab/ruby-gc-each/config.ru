# Shows a product out of three hundred thousand, all of which are kept in memory.
PRODUCTS = Array.new(300_000) { |i| "product #{i}" }
COLLECT = ENV.fetch('COLLECT') == 'yes'

run(lambda do |_env|
  body = "#{PRODUCTS.sample}\n"
  GC.start if COLLECT # against the leak
  [200, { 'Content-Type' => 'text/plain' }, [body]]
end)
