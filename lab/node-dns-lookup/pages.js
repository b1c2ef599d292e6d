// Asks the stock service, by its name, for each page.
const http = require('http');
http.createServer((request, response) => {
  http.get({host: 'stock.example.internal', port: 8100, agent: false}, (stock) => stock.pipe(response)).on('error', (e) => {
    response.statusCode = 502;
    response.end(e.message);
  });
}).listen(8000, '0.0.0.0', 1024);
