// Shows a page after 5 ms. /health asks all partners, one of which takes 0.4 s two times in three: app.js PORT.
const http = require('http');
http.createServer((request, response) => {
  const slow = Math.random() < 0.67 ? 400 : 20;
  setTimeout(() => response.end('well\n'), request.url === '/health' ? slow : 5);
}).listen(Number(process.argv[2]), '127.0.0.1', 1024);
