// Says a price over HTTP/2, 40 ms after it was asked: prices.js STREAMS, how many questions a connection may have under way at a time.
const http2 = require('http2');
http2.createServer({ settings: { maxConcurrentStreams: Number(process.argv[2]) } }).on('stream', (stream) => {
  stream.on('error', () => {});
  setTimeout(() => {
    if (!stream.destroyed) {
      stream.respond({ ':status': 200 });
      stream.end('12 euro\n');
    }
  }, 40);
}).listen(8100, '0.0.0.0', 1024);
