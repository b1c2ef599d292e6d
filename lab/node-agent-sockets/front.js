// Asks the stock service for each page, over connections that it keeps.
const http = require('http');
const agent = new http.Agent({keepAlive: true, maxSockets: Number(process.argv[2])});
http.createServer((request, response) => {
  http.get({host: '127.0.0.1', port: 8001, agent}, (stock) => stock.pipe(response)).on('error', (e) => {
    response.statusCode = 502;
    response.end(e.message);
  });
}).listen(8000, '0.0.0.0', 1024);
