// Answers with the price of an article out of the catalogue, which it reads for each request or once.
const fs = require('fs');
const http = require('http');

function catalogue() {
  return JSON.parse(fs.readFileSync('catalogue.json', 'utf8'));
}

const kept = process.argv[2] === 'once' ? catalogue() : null;
let n = 0;
http.createServer((request, response) => {
  const articles = kept || catalogue();
  n = (n + 7919) % 12000;
  response.end(articles['a' + n].price + '\n');
}).listen(8000, '0.0.0.0', 1024);
