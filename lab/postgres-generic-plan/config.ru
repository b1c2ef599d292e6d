# Shows the orders that are still open, by a prepared statement, over a connection that the thread keeps.
require 'pg'

def db
  Thread.current[:db] ||= PG.connect(host: '127.0.0.1', user: 'postgres', dbname: 'postgres').tap do |c|
    c.prepare('orders_by_status', 'SELECT id, total FROM orders WHERE status = $1 ORDER BY id LIMIT 100')
  end
end

def orders
  "#{db.exec_prepared('orders_by_status', ['open']).ntuples} orders are open\n"
end

run ->(_env) { [200, { 'Content-Type' => 'text/plain' }, [orders]] }
