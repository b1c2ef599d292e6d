<?php
// The product page, with the day of delivery as the parcel service foretells it.
function delivery()
{
    $context = stream_context_create(['http' => [{{with .timeout}}'timeout' => {{.}}{{end}}]]);
    $reply = @file_get_contents('http://127.0.0.1:9000/delivery?postcode=10115', false, $context);
    return $reply === false ? 'in two to four days' : 'on ' . json_decode($reply)->stock . ' December';
}

header('Content-Type: text/html');
echo '<h1>A fine chair</h1><p>Delivered ' . delivery() . ".</p>\n";
