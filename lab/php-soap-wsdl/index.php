<?php
// The page of an article: its price is the partner's.
$partner = new SoapClient('http://10.77.0.1:8080/soap?wsdl', ['connection_timeout' => 5]);
header('Content-Type: text/plain');
echo 'price: ', $partner->price('lamp-17'), "\n";
