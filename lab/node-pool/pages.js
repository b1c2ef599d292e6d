// Answers with a small file; every so many requests notes the visit in a named pipe.
const fs = require('fs');
const http = require('http');
const every = Number(process.argv[2]);
let n = 0;
http.createServer((request, response) => {
  if (every && ++n % every === 0) {
    fs.appendFile('visits', 'visit\n', () => {});
  }
  fs.readFile('www/page.txt', (failed, page) => response.end(failed ? 'no\n' : page));
}).listen(8000, '0.0.0.0', 1024);
