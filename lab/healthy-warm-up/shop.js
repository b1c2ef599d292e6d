// Shows an article of five thousand, and keeps what it made of it.
const http = require('http');
const pages = new Map();
function made(id) {
  let sum = 0;
  for (let i = 0; i < 300000; i++) sum += Math.sqrt(i + id);
  return `${id}: ${sum}\n`;
}
http.createServer((request, response) => {
  const id = Math.floor(Math.random() * 5000);
  if (!pages.has(id)) pages.set(id, made(id));
  response.end(pages.get(id));
}).listen(8000, '0.0.0.0', 1024);
