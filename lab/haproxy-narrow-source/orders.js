// Takes orders: each waits 150 ms, as for a payment. orders.js PORT
const server = require('http').createServer((request, reply) => {
  setTimeout(() => reply.end('{"order":"accepted"}\n'), 150);
});
server.keepAliveTimeout = 60000;
server.listen({port: Number(process.argv[2]), host: '127.0.0.1', backlog: 2048});
