package live

import (
	"sync"
	"testing"
)

// A reader sees one value or the other, and never parts of both.
func TestValueIsReplacedAsAWhole(t *testing.T) {
	type pair struct{ a, b int }
	if got := (*Value[pair])(nil).Get(); got != (pair{}) {
		t.Errorf("a nil Value has %v", got)
	}
	if got := new(Value[pair]).Get(); got != (pair{}) {
		t.Errorf("the zero Value has %v", got)
	}
	v := Of(pair{})
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for range 1000 {
				if got := v.Get(); got.a != got.b {
					t.Errorf("got parts of two values: %v", got)
				}
			}
		})
	}
	for i := range 1000 {
		v.Set(pair{i, i})
	}
	work.Wait()
	if got := v.Get(); got != (pair{999, 999}) {
		t.Errorf("got %v, want the last value", got)
	}
}
