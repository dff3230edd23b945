package playerhooks

import (
	"sync"
	"time"
)

// How patient a circuit is.
const (
	failuresMax  = 5 // in a row
	playersLeast = 3 // whose questions they were
	triesMax     = 3 // by as many players after each pause
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// circuit keeps the questions of one hook away from a receiver that is down: after some failures in a row nobody is asked for a
// while, then a few questions try whether it is back.
//
// What one player's question does to the receiver says little about it: it takes several players to begin a pause, and as many
// to make the next one longer, so that nobody's questions keep the others from being asked.
type circuit struct {
	now func() time.Time

	mu       sync.Mutex
	failures int             // in a row
	players  map[string]bool // whose they were, as many as count
	pauses   int             // in a row
	until    time.Time       // nobody is asked
	tries    map[string]bool // by player, since the last pause: whether the question has failed
	trying   time.Time       // when the first of them was sent
}

// closed reports whether a player's question may be sent. Who is told so must say how it went.
func (c *circuit) closed(player string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	switch {
	case c.pauses == 0:
		return true
	case now.Before(c.until):
		return false
	case len(c.tries) == 0 || c.underWay() == 0 && !now.Before(c.trying.Add(firstPause)):
		c.tries, c.trying = map[string]bool{}, now
	}
	if _, tried := c.tries[player]; tried || len(c.tries) == triesMax {
		return false
	}
	c.tries[player] = false
	return true
}

func (c *circuit) underWay() (n int) {
	for _, failed := range c.tries {
		if !failed {
			n++
		}
	}
	return n
}

// answered notes that the receiver is there, and reports whether that is news.
func (c *circuit) answered() (back bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	back = c.pauses > 0
	c.failures, c.players, c.pauses, c.tries = 0, nil, 0, nil
	return back
}

// failed notes that there was no answer, and reports whether a pause begins with it, and whether that is the first.
func (c *circuit) failed(player string) (pause time.Duration, opened bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses > 0 {
		if _, tried := c.tries[player]; !tried || c.now().Before(c.until) { // it was under way when the pause began
			return 0, false
		}
		if c.tries[player] = true; len(c.tries) < triesMax || c.underWay() > 0 {
			return 0, false
		}
	} else {
		c.failures++
		if c.players == nil {
			c.players = map[string]bool{}
		}
		if len(c.players) < playersLeast {
			c.players[player] = true
		}
		if c.failures < failuresMax || len(c.players) < playersLeast {
			return 0, false
		}
		opened = true
	}
	pause = min(firstPause<<min(c.pauses, 10), longestPause)
	c.pauses++
	c.until, c.tries = c.now().Add(pause), nil
	return pause, opened
}

// gaveUp notes a question that says nothing about the receiver.
func (c *circuit) gaveUp(player string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tries, player)
}
