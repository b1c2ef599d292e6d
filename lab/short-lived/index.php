<?php
// Measures the disk for each visitor with a load test that may not write
// here. It fails each time, and the page greets as if nothing had happened.
{{- if .helper}}
exec('cd {{.dir}}/www && {{.helper}} -t 1 -d 1 2>&1 || echo no disk speed', $output);
{{- end}}
echo "It works!\n";
