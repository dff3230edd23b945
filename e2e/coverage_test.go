package e2e

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/musterhq/muster/internal/gamelift"
)

// calls counts a client's calls to a service.
type calls struct {
	mu   sync.Mutex
	done map[string]*outcomes // by operation
}

type outcomes struct {
	answered int
	refused  []string // the errors
}

func newCalls() *calls { return &calls{done: map[string]*outcomes{}} }

// note counts a call. An empty code means success.
func (c *calls) note(operation, code string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.done[operation]
	if o == nil {
		o = &outcomes{}
		c.done[operation] = o
	}
	if code == "" {
		o.answered++
	} else if !slices.Contains(o.refused, code) {
		o.refused = append(o.refused, code)
	}
}

// neverAnswered are operations that only refuse in the stories. A success needs `muster agent` on a host: TestSessionLogs in cmd/muster.
var neverAnswered = []string{"GetGameSessionLogUrl"}

// everyOperation checks that a client has had an answer and an error from every operation that is served.
func (c *calls) everyOperation(t *testing.T, client string) {
	t.Helper()
	if t.Failed() || strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		return // some were left out
	}
	served := gamelift.Served()
	for _, operation := range served {
		o := c.done[operation]
		switch {
		case o == nil:
			t.Errorf("%s is served, and %s never calls it: add it to a story in e2e/stories", operation, client)
		case o.answered == 0 && !slices.Contains(neverAnswered, operation):
			t.Errorf("%s never has an answer for %s, only %v", operation, client, o.refused)
		case len(o.refused) == 0:
			t.Errorf("%s never has an error for %s", operation, client)
		}
	}
	t.Logf("%s: %s", client, c.summary())
}

// summary reports how many of the served operations a client has called.
func (c *calls) summary() string {
	served, called, refused := gamelift.Served(), 0, 0
	for _, operation := range served {
		if o := c.done[operation]; o != nil {
			called++
			refused += min(1, len(o.refused))
		}
	}
	return fmt.Sprintf("%d of %d served operations called, %d of them with an error", called, len(served), refused)
}
