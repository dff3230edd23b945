package rates

import (
	"sync"
	"time"
)

// LoginQueue admits logins at a steady rate, in the order of their first attempt. A waiting player holds no connection: each has a
// place, which is an instant, learns how long to wait, and comes back. Players in a game do not wait, but their logins delay those who do.
type LoginQueue struct {
	now func() time.Time

	mu     sync.Mutex
	every  time.Duration // between two logins; 0: no limit
	next   time.Time     // the first free instant
	places map[string]time.Time
	swept  time.Time
}

const (
	// loginSaved is how much of the rate accumulates while no player comes.
	loginSaved = time.Second
	// placeKept is how long a place is kept for a player who does not come back.
	placeKept = time.Minute
	// placesMax bounds memory. Further players get no place, and are told to try again.
	placesMax = 200_000
	// loginRetryMax is the longest wait that a player is told, because the queue may become shorter.
	loginRetryMax = 30 * time.Second
)

// NewLoginQueue makes a queue without a limit.
func NewLoginQueue(now func() time.Time) *LoginQueue {
	return &LoginQueue{now: now, places: map[string]time.Time{}}
}

// SetRate changes the number of logins per second; 0: no limit. Waiting players keep their place in the queue, which now moves at the new rate.
func (q *LoginQueue) SetRate(perSecond int) {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	was := q.every
	if q.every = 0; perSecond > 0 {
		q.every = time.Second / time.Duration(perSecond)
	}
	if q.every == 0 { // without a limit no player waits; a later limit begins with an empty queue
		clear(q.places)
		q.next = time.Time{}
	}
	if was == 0 || q.every == 0 || was == q.every {
		return
	}
	pace := float64(q.every) / float64(was)
	moved := func(at time.Time) time.Time {
		if !at.After(now) {
			return at
		}
		return now.Add(time.Duration(float64(at.Sub(now)) * pace))
	}
	q.next = moved(q.next)
	for player, place := range q.places {
		q.places[player] = moved(place)
	}
}

// Admit admits a player, or returns the position in the queue and how long to wait.
func (q *LoginQueue) Admit(player string, inGame bool) (position int, wait time.Duration, ok bool) {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.every == 0 {
		clear(q.places)
		q.next = time.Time{}
		return 0, 0, true
	}
	q.sweep(now)
	place, waits := q.places[player]
	if !waits {
		if q.next.Before(now.Add(-loginSaved)) {
			q.next = now.Add(-loginSaved)
		}
		place = q.next
		if inGame || !place.After(now) {
			q.next = q.next.Add(q.every)
			return 0, 0, true
		}
		if len(q.places) >= placesMax {
			return placesMax, loginRetryMax, false
		}
		q.next = q.next.Add(q.every)
		q.places[player] = place
	}
	if inGame || !place.After(now) {
		delete(q.places, player)
		return 0, 0, true
	}
	wait = place.Sub(now)
	return int(wait/q.every) + 1, min(wait, loginRetryMax), false
}

// Waiting returns the number of players who have a place in the queue.
func (q *LoginQueue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.places)
}

// sweep forgets players who did not come back.
func (q *LoginQueue) sweep(now time.Time) {
	if now.Sub(q.swept) < sweepEvery {
		return
	}
	q.swept = now
	for player, place := range q.places {
		if now.Sub(place) > placeKept {
			delete(q.places, player)
		}
	}
}
