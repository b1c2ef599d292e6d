// The page of a cart: its lines, with what the catalogue says about each article.
const http = require('http');

const catalogue = Array.from({ length: 300 }, (_, i) => ({ number: `lamp-${i * 7919 % 10007}`, name: `Lamp ${i}`, price: i % 90 + 1 }));

function byNumber(articles) {
{{- if eq .copy "yes"}}
    return articles.reduce((table, article) => ({ ...table, [article.number]: article }), {});
{{- else}}
    const table = {};
    for (const article of articles) {
        table[article.number] = article;
    }
    return table;
{{- end}}
}

function total(lines, table) {
    return lines.reduce((sum, line) => sum + table[line.number].price * line.pieces, 0);
}

function cart(request, response) {
    const table = byNumber(catalogue);
    const lines = Array.from({ length: 12 }, (_, i) => ({ number: catalogue[i * 20].number, pieces: i + 1 }));
    const body = JSON.stringify({ lines: lines.map((line) => ({ ...line, name: table[line.number].name })), total: total(lines, table) });
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) });
    response.end(body);
}

http.createServer(cart).listen(8000, '127.0.0.1');
