package main

import (
	"fmt"
	"io"
	"time"
)

// progressEvery is the interval between progress messages of a long computation.
const progressEvery = 5 * time.Second

// progress reports how many parts of a computation are done.
type progress struct {
	to        io.Writer
	what      string
	done, all int
	every     time.Duration
	told      time.Time
}

func newProgress(to io.Writer, what string, all int) *progress {
	return &progress{to: to, what: what, all: all, every: progressEvery, told: time.Now()}
}

// step counts one finished part.
func (p *progress) step() {
	p.done++
	if now := time.Now(); now.Sub(p.told) >= p.every {
		p.told = now
		fmt.Fprintf(p.to, "%s: %d of %d, %d %%\n", p.what, p.done, p.all, 100*p.done/p.all)
	}
}
