<?php
// Takes an order, and sends a mail about it.
$number = mt_rand(100000, 999999);
$mail = fsockopen('{{.mailhost}}', 25, $code, $error, 5);
$said = fgets($mail);
foreach ([
    'EHLO shop.example',
    'MAIL FROM:<shop@shop.example>',
    'RCPT TO:<customer@mail.example>',
    'DATA',
    "Subject: Your order $number\r\n\r\nThank you!\r\n.",
    'QUIT',
] as $line) {
    fwrite($mail, "$line\r\n");
    $said = fgets($mail);
}
fclose($mail);
echo "Order $number: ", $said;
