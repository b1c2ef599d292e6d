// shop.js WORKERS: has each request checked by a worker of its own (each), or by one of WORKERS that stay.
const http = require('http');
const { Worker } = require('worker_threads');

const kept = [];
const waiting = new Map();
let number = 0;

function start() {
  const worker = new Worker('./check.js');
  worker.on('message', ({ id, good }) => {
    waiting.get(id)(good);
    waiting.delete(id);
    if (!kept.includes(worker)) worker.terminate();
  });
  return worker;
}

if (process.argv[2] !== 'each') {
  for (let i = 0; i < Number(process.argv[2]); i++) kept.push(start());
}

http.createServer((request, response) => {
  const id = number++;
  waiting.set(id, (good) => response.end(good ? 'good\n' : 'bad\n'));
  const worker = kept.length ? kept[id % kept.length] : start();
  worker.postMessage({ id, text: request.url });
}).listen(8000, '0.0.0.0', 1024);
