// Answers each request, and remembers it: pages.js BYTES.
const http = require('http');
const bytes = Number(process.argv[2]);
const remembered = [];
http.createServer((request, response) => {
  remembered.push(Buffer.alloc(bytes, 1));
  setTimeout(() => response.end('page\n'), 20);
}).listen(8000);
