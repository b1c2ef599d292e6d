# Shows what the tills took today. It is read from the standby, so as not to burden the database that tills write to.
require 'pg'

def db
  Thread.current[:db] ||= PG.connect(host: '127.0.0.1', port: 5433, user: 'postgres', dbname: 'postgres')
end

REPORT = 'SELECT till, sum(total), count(*) FROM sales JOIN tills ON tills.id = till GROUP BY till ORDER BY till'

run lambda { |_env|
  begin
    [200, { 'Content-Type' => 'text/plain' }, ["#{db.exec(REPORT).ntuples} tills\n"]]
  rescue PG::Error => e
    Thread.current[:db] = nil if e.is_a?(PG::ConnectionBad)
    warn e.message
    [500, { 'Content-Type' => 'text/plain' }, ["the report could not be made\n"]]
  end
}
