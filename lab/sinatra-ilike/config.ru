# The catalogue's search: parts whose name has what was typed somewhere in it.
require "json"
require "pg"
require "sinatra/base"

class Catalogue < Sinatra::Base
  set :environment, :production
  set :logging, false

  DATABASES = SizedQueue.new(16)
  16.times { DATABASES << PG.connect(host: "127.0.0.1", user: "postgres", dbname: "postgres") }

  get "/search" do
    typed = format("%05x", rand(0x100000))
    database = DATABASES.pop
    begin
      rows = database.exec_params("SELECT id, name, price FROM parts WHERE name ILIKE $1 ORDER BY price LIMIT 20", ["%#{typed}%"]).to_a
    ensure
      DATABASES << database
    end
    content_type :json
    rows.to_json
  end
end

run Catalogue
