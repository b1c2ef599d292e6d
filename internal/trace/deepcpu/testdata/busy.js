function busy(n) {
  let x = 0; for (let i = 0; i < n; i++) x += Math.sin(i); return x;
}
function outer(n) { return busy(n); }
for (const end = Date.now() + 60000; Date.now() < end; ) outer(100000);
