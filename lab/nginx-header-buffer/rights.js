// Greets, and sends the visitor's rights in a cookie: three in ten have many.
const http = require('http');
http.createServer((request, response) => {
  const many = Math.random() < 0.3;
  response.setHeader('Set-Cookie', 'rights=' + 'r'.repeat(many ? 6000 : 200));
  response.end('Hello!\n');
}).listen(8100, '127.0.0.1', 1024);
