package main

import (
	"strings"
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	var out strings.Builder
	p := newProgress(&out, "r.json: tickets", 3)
	p.every = 0
	for range 2 {
		p.step()
	}
	p.every = time.Hour
	p.step()
	if want := "r.json: tickets: 1 of 3, 33 %\nr.json: tickets: 2 of 3, 66 %\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
