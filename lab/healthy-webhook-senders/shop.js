// The shop: asks for a price for each page, over connections that it keeps.
const http = require('http');
const agent = new http.Agent({ keepAlive: true });

http.createServer((request, response) => {
  http.get({ host: '127.0.0.1', port: 9000, path: '/price', agent }, (price) => {
    let body = '';
    price.on('data', (part) => { body += part; });
    price.on('end', () => response.end(body));
  }).on('error', (e) => { response.statusCode = 502; response.end(e.message); });
}).listen(8000, '0.0.0.0', 1024);
