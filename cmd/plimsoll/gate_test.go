package main

import "testing"

func TestAnnotationsCannotBeBrokenOutOf(t *testing.T) {
	if got := annotated("a:b,c\n::error::x 5 %", true); got != "a%3Ab%2Cc%0A%3A%3Aerror%3A%3Ax 5 %25" {
		t.Errorf("property: %q", got)
	}
	if got := annotated("a:b\r\n5 %", false); got != "a:b%0D%0A5 %25" {
		t.Errorf("message: %q", got)
	}
}
