# Shows an article: two queries by primary key, over a connection that the thread keeps.
require 'pg'

def db
  Thread.current[:db] ||= PG.connect(host: '127.0.0.1', user: 'postgres', dbname: 'postgres')
end

def article
  id = rand(1..20_000)
  name = db.exec_params('SELECT name, price FROM articles WHERE id = $1', [id]).getvalue(0, 0)
  pieces = db.exec_params('SELECT pieces FROM stock WHERE article = $1', [id]).getvalue(0, 0)
  "#{name}: #{pieces}\n"
end

run ->(_env) { [200, { 'Content-Type' => 'text/plain' }, [article]] }
