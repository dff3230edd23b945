package gameclient

import (
	"context"
	"time"
)

// A login lasts while its player is active, but the access token is replaced regularly, so that a stolen one soon becomes useless.
const (
	refreshAfter = 45 * time.Minute
	refreshPause = 30 * time.Second // after a failed attempt; the old token is still valid then
)

// Refresh gets a new access token and prolongs the login. The Player calls it by itself: after 45 minutes or half of the login's remaining
// time, whichever is earlier, and when the service reports that the login is about to expire.
func (p *Player) Refresh(ctx context.Context) error {
	p.refreshing.Lock() // two refreshes at once would invalidate each other's token
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

// keepLogin refreshes the login until ctx or the login ends.
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
				return // follow reports the reason
			}
			p.options.Logger.Info("the login was not refreshed", "player", p.ID, "error", err)
			if sleep(ctx, refreshPause/2+jitter(refreshPause/2)) != nil {
				return
			}
		}
	}
}

// refreshIn returns the time until the next refresh.
func (p *Player) refreshIn() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.expiresAt.IsZero() {
		return refreshAfter
	}
	left := p.expiresAt.Sub(time.Now().Add(p.ahead))
	return min(refreshAfter, max(left/2, minPause))
}

// accessToken returns the current token.
func (p *Player) accessToken() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.token
}

// ackEvery is how many events the game takes before they are acknowledged. The service counts in the same steps, and need not keep
// acknowledged events.
const ackEvery = 64

// ackDue returns the number of the last event that the game has taken, and whether it should be acknowledged.
func (p *Player) ackDue() (seq uint64, due bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken < p.acked+ackEvery {
		return 0, false
	}
	p.acked = p.taken
	return p.taken, true
}

// revKey is the key of the revision in a context.
type revKey struct{}

// IfRev makes calls with the returned context conditional: the service refuses them with the code REV_CONFLICT unless the player's record
// still has this revision, Flow.Rev. Use it for a button whose effect must be the one that the player saw on it.
//
//	err := player.LeaveParty(gameclient.IfRev(ctx, seen.Rev))
func IfRev(ctx context.Context, rev uint64) context.Context {
	return context.WithValue(ctx, revKey{}, rev)
}
