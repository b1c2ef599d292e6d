// Sells a basket of five and shows what is left: shop.js leak|once, whether a page ever stops listening for changes.
const http = require('http');
const { EventEmitter } = require('events');
const once = process.argv[2] === 'once';
const stock = new EventEmitter();
stock.setMaxListeners(0); // "it warned all the time"
const left = new Array(100).fill(1e9);
http.createServer((request, response) => {
  const shown = Math.floor(Math.random() * 100);
  let page = '';
  const refresh = (item) => {
    if (item === shown) page = `${left[item]} left\n`;
  };
  stock.on('change', refresh);
  for (const item of [shown, 1, 2, 3, 4]) {
    left[item]--;
    stock.emit('change', item);
  }
  if (once) stock.off('change', refresh);
  response.end(page);
}).listen(8000, '0.0.0.0', 1024);
