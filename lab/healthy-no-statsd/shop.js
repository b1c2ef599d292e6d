// A shop that tells a statsd on its own host about each page; the statsd was taken away years ago.
const dgram = require('dgram');
const http = require('http');
const statsd = dgram.createSocket('udp4');
statsd.on('error', () => {});
const metrics = ['page:1|c', 'basket:1|c', 'db:3|ms', 'render:2|ms', 'users:17|g'];
http.createServer((question, reply) => {
  for (const m of metrics) statsd.send(m, 8125, '127.0.0.1');
  setTimeout(() => reply.end('shop\n'), 4);
}).listen(8000, '127.0.0.1', 1024);
