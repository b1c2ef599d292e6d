// Keeps sessions in memory; each request replaces some of them.
const http = require('http');
const KEPT = 400000;
const session = (n) => ({ id: n, name: 'visitor ' + n, seen: [n, n + 1, n + 2, n + 3], cart: { items: [], total: n * 1.5 } });
const sessions = [];
for (let i = 0; i < KEPT; i++) sessions.push(session(i));
let next = 0;
http.createServer((request, response) => {
  for (let i = 0; i < 40; i++) {
    next = (next + 7919) % KEPT;
    sessions[next] = session(next);
  }
  response.end(sessions[next].name + '\n');
}).listen(8000);
