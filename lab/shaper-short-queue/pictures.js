// Serves one picture of 90 kB under every name. pictures.js PORT
const picture = require('crypto').randomBytes(90000);
require('http').createServer((request, reply) => {
  reply.writeHead(200, {'Content-Type': 'image/webp', 'Content-Length': picture.length});
  reply.end(picture);
}).listen(Number(process.argv[2]));
