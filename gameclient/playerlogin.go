package gameclient

import (
	"context"
	"time"
)

// A login lasts as long as its player gives signs of life, but its access token is replaced now and then: one that was found
// somewhere is worth little.
const (
	refreshAfter = 45 * time.Minute
	refreshPause = 30 * time.Second // after an attempt that failed; the old token is good meanwhile
)

// Refresh takes a new access token and prolongs the login. It happens by itself: after 45 minutes, when half the time that is
// left of the login is over, and when the service says that the login is about to expire.
func (p *Player) Refresh(ctx context.Context) error {
	p.refreshing.Lock() // two at once would each take the other's token away
	defer p.refreshing.Unlock()
	var answer struct {
		AccessToken string    `json:"access_token"`
		ExpiresAt   time.Time `json:"expires_at"`
	}
	if err := p.call(ctx, "Session.Refresh", struct{}{}, &answer); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.token, p.expiresAt = answer.AccessToken, answer.ExpiresAt
	return nil
}

// keepLogin refreshes until ctx ends, or the login.
func (p *Player) keepLogin(ctx context.Context) {
	for wait := p.refreshIn(); ; wait = p.refreshIn() {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-p.expiring:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return
		}
		for {
			err := p.Refresh(ctx)
			if err == nil {
				break
			}
			if endOf(err) != nil {
				return // the events end with the reason
			}
			p.options.Logger.Info("the login was not refreshed", "player", p.ID, "err", err)
			if sleep(ctx, refreshPause/2+jitter(refreshPause/2)) != nil {
				return
			}
		}
	}
}

// refreshIn is how long the token may stay.
func (p *Player) refreshIn() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.expiresAt.IsZero() {
		return refreshAfter
	}
	left := p.expiresAt.Sub(time.Now().Add(p.ahead))
	return min(refreshAfter, max(left/2, minPause))
}

// accessToken is the one that calls show now.
func (p *Player) accessToken() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.token
}

// ackEvery is how many events the game has taken before the service is told. It counts them in the same steps, and need not
// keep them any more.
const ackEvery = 64

// ackDue is up to which event the game has taken all, when that is worth telling.
func (p *Player) ackDue() (seq uint64, due bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken < p.acked+ackEvery {
		return 0, false
	}
	p.acked = p.taken
	return p.taken, true
}

// revKey is where a context holds the revision that a call is good for.
type revKey struct{}

// IfRev makes calls with the context conditional: they are refused with REV_CONFLICT, and change nothing, unless the flow record
// of the player still has the revision, which Flow and Snapshot have. For a button that shall do what it said when it was drawn.
//
//	err := player.LeaveParty(gameclient.IfRev(ctx, seen.Rev))
func IfRev(ctx context.Context, rev uint64) context.Context {
	return context.WithValue(ctx, revKey{}, rev)
}
