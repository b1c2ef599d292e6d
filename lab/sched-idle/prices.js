// Computes a price for every request, for about a millisecond.
const http = require('http');

function price() {
  let sum = 0;
  for (let i = 0; i < 400000; i++) {
    sum = (sum * 31 + i) % 1000003;
  }
  return sum;
}

http.createServer((request, response) => response.end(price() + ' cents\n')).listen(8000, '0.0.0.0', 1024);
