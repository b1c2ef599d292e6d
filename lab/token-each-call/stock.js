// stock.js call|keep: knows what is in stock, for it asks the warehouse, which wants a token of the identity service's: a new one for each call, or one for as long as it is good.
const http = require('http');
const keep = process.argv[2] === 'keep';
const agent = new http.Agent({ keepAlive: true });

function get(port, path, headers) {
  return new Promise((resolve, reject) => {
    http.get({ host: '127.0.0.1', port, path, headers, agent }, (reply) => {
      let body = '';
      reply.on('data', (part) => { body += part; });
      reply.on('end', () => (reply.statusCode === 200 ? resolve(body) : reject(new Error(`${port}: ${reply.statusCode}`))));
    }).on('error', reject);
  });
}

let token = null;
let until = 0;
async function authorization() {
  if (!token || !keep || Date.now() > until) {
    token = get(8200, '/token?grant_type=client_credentials').then(JSON.parse);
    until = Date.now() + 3000000;
  }
  return `Bearer ${(await token).access_token}`;
}

http.createServer(async (request, reply) => {
  try {
    reply.end(await get(8300, '/stock', { Authorization: await authorization() }));
  } catch (e) {
    reply.writeHead(502);
    reply.end(`${e.message}\n`);
  }
}).listen(8100, '127.0.0.1', 1024);
