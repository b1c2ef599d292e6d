// A listing of 150 articles, whose prices are in Redis.
const http = require('http');
const { createClient } = require('redis');

const store = createClient({ url: 'redis://127.0.0.1:6379' });

async function fill() {
    for (let i = 0; i < 5000; i++) {
        await store.set(`article:${i}`, JSON.stringify({ id: i, name: `Article ${i}`, price: i % 900 }));
    }
}

async function articles(keys) {
{{- if eq .at_once "yes"}}
    return store.mGet(keys);
{{- else}}
    const found = [];
    for (const key of keys) {
        found.push(await store.get(key));
    }
    return found;
{{- end}}
}

async function listing(request, response) {
    const first = Math.floor(Math.random() * 4800);
    const keys = Array.from({ length: 150 }, (_, i) => `article:${first + i}`);
    const body = '[' + (await articles(keys)).join(',') + ']\n';
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length });
    response.end(body);
}

store.connect().then(fill).then(() => http.createServer(listing).listen(8000, '127.0.0.1'));
