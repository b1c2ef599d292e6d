// Asks the price service for each request, all of them over one connection of HTTP/2.
const http = require('http');
const http2 = require('http2');
const prices = http2.connect('http://10.77.0.1:8100');
http.createServer((request, response) => {
  const asked = prices.request({ ':path': '/price' });
  let price = '';
  asked.setEncoding('utf8');
  asked.on('data', (text) => { price += text; });
  asked.on('end', () => response.end(price));
  asked.on('error', () => { response.statusCode = 502; response.end('no price\n'); });
}).listen(8000, '0.0.0.0', 1024);
