// Pages at once; /news when there is something new, after 5 to 25 seconds.
const http = require('http');

http.createServer((request, response) => {
  if (request.url === '/news') {
    setTimeout(() => response.end('[]\n'), 5000 + 20000 * Math.random());
  } else {
    response.end('Hello World!\n');
  }
}).listen(8001, '127.0.0.1', 1024);
