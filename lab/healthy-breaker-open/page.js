// An article's page with recommendations. Their service is down: the breaker is open, and the bestsellers stand in.
const http = require('http');

let open = false;
const agent = new http.Agent({ keepAlive: true });

// Ten times a second the breaker tries again.
function probe() {
    http.get({ host: '127.0.0.1', port: 9100, path: '/health', agent, timeout: 500 }, (reply) => {
        reply.resume();
        open = false;
    }).on('error', (e) => {
        open = true;
        console.error(`ERROR recommendations are unavailable: ${e.message}; retrying`);
    });
}

setInterval(probe, 100);

http.createServer((request, response) => {
    if (open) {
        console.error('WARN circuit breaker "recommendations" is open: fallback to bestsellers');
    }
    const body = '<h1>A fine chair</h1><p>Others bought: a table.</p>\n';
    response.writeHead(200, { 'Content-Type': 'text/html', 'Content-Length': body.length });
    response.end(body);
}).listen(8000, '127.0.0.1');
