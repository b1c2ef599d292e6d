// Asks the price service for many articles at once: for 64, or for those that came within so many ms.
const http = require('http');
const agent = new http.Agent({keepAlive: true});
const most = 64, patience = Number(process.argv[2]);
let batch = [], timer = null;

function send() {
  clearTimeout(timer);
  const waiting = batch;
  batch = [];
  timer = null;
  http.get({host: '127.0.0.1', port: 8100, path: '/?articles=' + waiting.length, agent}, (prices) => {
    prices.resume();
    prices.on('end', () => waiting.forEach((response) => response.end('12 euro\n')));
  }).on('error', (e) => waiting.forEach((response) => {
    response.statusCode = 502;
    response.end(e.message);
  }));
}

http.createServer((request, response) => {
  batch.push(response);
  if (batch.length >= most) {
    send();
  } else if (!timer) {
    timer = setTimeout(send, patience);
  }
}).listen(8000, '0.0.0.0', 1024);
