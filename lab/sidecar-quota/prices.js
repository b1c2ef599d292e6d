// Computes a price for each request.
const crypto = require('crypto');
const http = require('http');
http.createServer((request, response) => {
  response.end(crypto.pbkdf2Sync('offer', 'salt', 2000, 32, 'sha256').toString('hex') + '\n');
}).listen(8000, '0.0.0.0', 1024);
