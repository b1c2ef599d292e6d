// Shows a product of a catalogue that it keeps in memory.
package main

import (
	"fmt"
	"math/rand"
	"net/http"
)

type product struct {
	name  string
	price int
	next  *product
}

var catalogue = map[int]*product{}

func show(w http.ResponseWriter, _ *http.Request) {
	var row *product
	for range 4000 {
		p := catalogue[rand.Intn(len(catalogue))]
		row = &product{name: p.name, price: p.price + 1, next: row}
	}
	fmt.Fprintln(w, row.name)
}

func main() {
	for i := range 1_300_000 {
		catalogue[i] = &product{name: fmt.Sprintf("product %d of the catalogue, in blue, with a long description", i), price: i}
	}
	http.HandleFunc("/", show)
	panic(http.ListenAndServe(":8000", nil))
}
