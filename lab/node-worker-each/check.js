// Checks what it is sent, and says whether it is good.
const { parentPort } = require('worker_threads');
const { createHmac } = require('crypto');

parentPort.on('message', ({ id, text }) => {
  let digest = text;
  for (let i = 0; i < 100; i++) digest = createHmac('sha256', 'secret').update(digest).digest('hex');
  parentPort.postMessage({ id, good: digest.length === 64 });
});
