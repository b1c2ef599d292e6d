(function () {
  var width = 1200, char = 6.6, frames = [].slice.call(document.querySelectorAll(".f"));
  frames.forEach(function (g) {
    g.x0 = +g.dataset.x; g.w0 = +g.dataset.w;
    g.rect = g.querySelector("rect"); g.label = g.querySelector("text");
    g.addEventListener("click", function () { zoom(g); });
  });
  function place(g, x, w) {
    g.style.display = w <= 0 ? "none" : "";
    if (w <= 0) return;
    g.rect.setAttribute("x", x); g.rect.setAttribute("width", w); g.label.setAttribute("x", x + 3);
    var room = Math.floor((w - 6) / char), name = g.dataset.n;
    g.label.textContent = room < 3 ? "" : name.length > room ? name.slice(0, room - 2) + ".." : name;
  }
  function zoom(to) {
    var y = +to.rect.getAttribute("y"), end = to.x0 + to.w0, tiny = 0.005;
    frames.forEach(function (g) {
      var above = +g.rect.getAttribute("y") < y, outside = g.x0 + g.w0 <= to.x0 + tiny || g.x0 >= end - tiny;
      g.classList.toggle("faded", above && !outside);
      if (outside) place(g, 0, 0);
      else if (above) place(g, 0, width);
      else place(g, (g.x0 - to.x0) / to.w0 * width, g.w0 / to.w0 * width);
    });
  }
  function search() {
    var text = prompt("Mark the functions whose name matches this expression"), re, hits = [];
    if (text === null) return;
    try { re = text ? new RegExp(text) : null; } catch (e) { alert(e.message); return; }
    frames.forEach(function (g) {
      var hit = re !== null && re.test(g.dataset.n);
      g.classList.toggle("hit", hit);
      if (hit) hits.push([g.x0, g.x0 + g.w0]);
    });
    hits.sort(function (a, b) { return a[0] - b[0]; });
    var sum = 0, end = 0;
    hits.forEach(function (h) { sum += Math.max(0, h[1] - Math.max(end, h[0])); end = Math.max(end, h[1]); });
    document.getElementById("found").textContent = re ? (sum / width * 100).toFixed(1) + " % matches" : "";
  }
  document.getElementById("reset").addEventListener("click", function () { zoom(frames[0]); });
  document.getElementById("search").addEventListener("click", search);
})();
