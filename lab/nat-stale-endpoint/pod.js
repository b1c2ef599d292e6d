// pod.js ADDRESS: one pod of the shop.
const http = require('http');
http.createServer((question, reply) => {
  setTimeout(() => reply.end('basket\n'), 5);
}).listen(8080, process.argv[2], 1024);
