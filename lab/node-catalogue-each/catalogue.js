// Makes a catalogue of 12,000 articles.
const articles = {};
for (let n = 0; n < 12000; n++) {
  articles['a' + n] = { name: 'Lamp no. ' + n, price: 1000 + ((n * 7) % 900), stock: n % 13, tags: ['lamp', 'desk', 'oak ' + (n % 7)], weight: n / 8 };
}
require('fs').writeFileSync('catalogue.json', JSON.stringify(articles));
