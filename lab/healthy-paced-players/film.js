// Sends a film without end, as fast as the player takes it. film.js PORT
const part = require('crypto').randomBytes(65536);
require('http').createServer((request, reply) => {
  reply.writeHead(200, {'Content-Type': 'video/mp4'});
  const more = () => { while (!reply.destroyed && reply.write(part)); };
  reply.on('drain', more);
  more();
}).listen(Number(process.argv[2]));
