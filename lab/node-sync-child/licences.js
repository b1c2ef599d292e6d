// Asks for a licence by a program, blocking or not.
const child = require("child_process");
const http = require("http");

const blocking = process.argv[2] === "execFileSync";

http.createServer((request, response) => {
  const done = () => response.end("licensed\n");
  if (blocking) {
    child.execFileSync("./licence.sh");
    done();
  } else {
    child.execFile("./licence.sh", done);
  }
}).listen(8000);
