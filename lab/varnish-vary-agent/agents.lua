-- Visitors with the browsers that people have: each in some build of its own, on some system.
local systems = {"Windows NT 10.0; Win64; x64", "Macintosh; Intel Mac OS X 10_15_7", "X11; Linux x86_64", "Linux; Android 13; SM-A546B", "Linux; Android 12; Pixel 6", "Linux; Android 14; M2101K6G"}

math.randomseed(os.time())

function request()
   local agent = string.format("Mozilla/5.0 (%s) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.%d.%d Safari/537.36",
      systems[math.random(#systems)], math.random(90, 131), math.random(4400, 6770), math.random(0, 200))
   return wrk.format("GET", "/", {["User-Agent"] = agent})
end
