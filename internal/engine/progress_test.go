package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/musterhq/muster/internal/waittest"
)

// A caller that gives up leaves nothing behind: while a node makes no progress for hours, callers come and go.
func TestNothingIsLeftOfCallersThatGiveUp(t *testing.T) {
	var p progress
	stays := make(chan error)
	go func() { stays <- p.wait(t.Context(), 5, nil) }()
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		given := make(chan error)
		go func() { given <- p.wait(ctx, 7, nil) }()
		cancel()
		if err := <-given; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	waittest.Until(t, "the first caller to wait", func() bool { return p.count() > 0 })
	if n := p.count(); n != 1 {
		t.Errorf("%d callers wait, want 1", n)
	}
	p.reached.Store(5)
	p.wake(5)
	if err := <-stays; err != nil {
		t.Error(err)
	}
}

func (p *progress) count() int {
	p.lock.Lock()
	defer p.lock.Unlock()
	return len(p.waiting)
}
