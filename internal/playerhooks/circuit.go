package playerhooks

import (
	"sync"
	"time"
)

// Thresholds of a circuit.
const (
	failuresMax  = 5 // consecutive
	playersLeast = 3 // different players in whose requests they happened
	triesMax     = 3 // trial requests after each pause, each of another player
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// circuit is a circuit breaker: it stops the requests of one hook to a receiver that is down. After some consecutive
// failures it sends none for a while, then a few as a trial.
//
// A failure may be caused by the player's own request. So it takes failures for several players to start a pause, and as
// many to make the next one longer; no player alone can stop the requests for others.
type circuit struct {
	now func() time.Time

	mu       sync.Mutex
	failures int             // consecutive
	players  map[string]bool // in whose requests they happened, as many as count
	pauses   int             // consecutive
	until    time.Time       // the end of the pause
	tries    map[string]bool // by player, since the last pause: whether the request has failed
	trying   time.Time       // when the first of them was sent
}

// closed reports whether a player's request may be sent. If so, the caller must report its outcome.
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

// answered records that the receiver works, and reports whether this ends a pause.
func (c *circuit) answered() (back bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	back = c.pauses > 0
	c.failures, c.players, c.pauses, c.tries = 0, nil, 0, nil
	return back
}

// failed records that there was no answer. It returns the pause that starts with it, and whether that is the first.
func (c *circuit) failed(player string) (pause time.Duration, opened bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses > 0 {
		if _, tried := c.tries[player]; !tried || c.now().Before(c.until) { // it was in progress when the pause began
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

// gaveUp records a request that proves nothing about the receiver.
func (c *circuit) gaveUp(player string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tries, player)
}
