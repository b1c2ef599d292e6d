// Computes a price for each request.
package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
)

func price(w http.ResponseWriter, _ *http.Request) {
	sum := sha256.Sum256([]byte("offer"))
	for range 20000 {
		sum = sha256.Sum256(sum[:])
	}
	fmt.Fprintf(w, "%x\n", sum)
}

func main() {
	http.HandleFunc("/", price)
	panic(http.ListenAndServe(":8000", nil))
}
