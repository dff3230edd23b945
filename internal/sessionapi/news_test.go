package sessionapi

import (
	"testing"

	"github.com/musterhq/muster/internal/engine"
)

// Every call that waits looks again when this node has missed events.
func TestNewsBehindAGap(t *testing.T) {
	n := &news{unfollow: func() {}, waiting: map[any]map[chan struct{}]struct{}{}}
	calls := []chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)}
	n.add("placement", calls[0])
	n.add("placement", calls[1])
	n.add("another", calls[2])
	n.committed(engine.Committed{Gap: true})
	for i, woken := range calls {
		select {
		case <-woken:
		default:
			t.Errorf("call %d was not woken", i)
		}
	}
}
