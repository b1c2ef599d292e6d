<?php
// A price list of 300 articles, each of which goes through a few small functions.

final class Article
{
    public function __construct(private int $id)
    {
    }

    public function name(): string
    {
        return 'Lamp ' . $this->id;
    }

    public function net(): int
    {
        return 1000 + $this->id * 7 % 900;
    }

    public function gross(): int
    {
        return intdiv($this->net() * 119, 100);
    }
}

function escape(string $text): string
{
    return htmlspecialchars($text);
}

function money(int $cents): string
{
    return number_format($cents / 100, 2, ',', '.') . ' EUR';
}

function cell(string $text): string
{
    return '<td>' . escape($text) . '</td>';
}

function row(Article $a): string
{
    $cells = [];
    foreach ([$a->name(), money($a->net()), money($a->gross())] as $text) {
        $cells[] = cell($text);
    }
    return '<tr>' . implode('', $cells) . "</tr>\n";
}

$page = '';
for ($id = 1; $id <= 300; $id++) {
    $page .= row(new Article($id));
}
echo '<table>', $page, "</table>\n";
