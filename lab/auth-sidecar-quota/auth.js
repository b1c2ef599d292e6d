// Checks the signature of a request, for a millisecond or two.
const http = require('http');
const crypto = require('crypto');
const secret = crypto.randomBytes(32);

http.createServer((request, response) => {
  crypto.pbkdf2Sync(request.url, secret, 4000, 32, 'sha256');
  response.statusCode = 204;
  response.end();
}).listen(9001, '127.0.0.1', 1024);
