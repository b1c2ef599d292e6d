// Checks a name for each request; one in twenty is a long one.
const http = require('http');
const pattern = new RegExp(process.argv[2]);
let n = 0;
http.createServer((request, response) => {
  const name = ++n % 20 ? 'Ada Lovelace' : 'Wolfeschlegelsteinhausener!';
  response.end(pattern.test(name) ? 'ok\n' : 'no\n');
}).listen(8000, '0.0.0.0', 1024);
