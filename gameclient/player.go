package gameclient

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// The providers that every service may know. Others have the names that the studio gave them.
const (
	ProviderDev     = "dev"     // believes everybody; only of a service under --dev. DevToken makes its tokens
	ProviderBackend = "backend" // login tickets, which the studio's backend has issued for a player
	ProviderOIDC    = "oidc"    // tokens of the studio's identity provider
)

// DevToken is a token of the development provider: it says who the player is, and nobody asks.
func DevToken(player string) string {
	token, _ := json.Marshal(map[string]string{"player_id": player}) // text always can be written
	return string(token)
}

// PlayerOptions say where to log in, and as whom.
type PlayerOptions struct {
	Endpoint string // of the service: "https://play.example.com"
	Provider string // who says who the player is: ProviderDev, ProviderBackend or another
	Token    string // what the provider gave to the player; for ProviderBackend the login ticket

	ClientVersion string // of the game: players of different versions are not matched
	DeviceLabel   string // "Ann's laptop": what another device is told when it loses the player to this one

	// AutoReconnect has the details of a running game sent at once after a login, as an event, without Reconnect. For
	// games that load faster than a seat is reserved (60 s by default).
	AutoReconnect bool

	// OnQueued is told the place in the line while so many log in that this player has to wait.
	OnQueued func(position int, wait time.Duration)

	HTTPClient *http.Client // default http.DefaultClient; the TLS configuration of its transport holds for the events, too
	LongPoll   bool         // never try a WebSocket for the events

	Logger *slog.Logger // of lost connections; default: nothing is logged
}

// Player is a player who has logged in, with everything that the service tells about this player. Its methods may be called
// from any goroutine. It is in use until Logout or Close.
type Player struct {
	// ID is who the player is for the service.
	ID string

	// AtLogin is how everything was when the player logged in: after a crash there may be a party, a search and a game in it.
	AtLogin Snapshot

	options PlayerOptions
	base    *url.URL
	ahead   time.Duration // how far the service's clock is ahead of ours
	stop    context.CancelFunc
	running sync.WaitGroup // what follows the events, and keeps the login

	refreshing sync.Mutex
	expiring   chan struct{} // has something in it when the service says that the login is about to expire

	mu        sync.Mutex
	token     string
	expiresAt time.Time // when the login ends, by the service's clock
	flow      Flow
	events    []Event
	last      uint64 // number of the last event that came in
	taken     uint64 // and of the last one that the game has
	acked     uint64 // and up to which the service was told so
	whole     bool   // ask for everything: events were thrown away
	online    bool
	tried     bool          // to open a stream, whatever came of it
	over      error         // no event comes any more, and why
	happened  chan struct{} // closed, and replaced, when flow, events, online or over change
}

// Login logs in and begins to follow the events of the player. Another device that is logged in as the same player loses
// control. When so many log in that there is a line, Login waits in it, until ctx ends.
//
// A login is never refused because of what the player is in: after a crash AtLogin says what that is. For a player to whom
// nothing has ever happened, Login returns when the stream of events is open, or cannot be opened: such a player has no
// event yet behind which a stream could begin, and what happened meanwhile would come as OnSync.
func Login(ctx context.Context, o PlayerOptions) (*Player, error) {
	c := check{call: "Login"}
	base, err := url.Parse(o.Endpoint)
	c.that(err == nil && base.Host != "" && (base.Scheme == "http" || base.Scheme == "https"), "Endpoint", o.Endpoint, "a URL with http or https")
	c.need("Provider", o.Provider)
	c.need("Token", o.Token)
	if c.err != nil {
		return nil, c.err
	}
	o.HTTPClient = cmp.Or(o.HTTPClient, http.DefaultClient)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	p := &Player{options: o, base: base, expiring: make(chan struct{}, 1), happened: make(chan struct{})}

	request := loginRequest{Provider: o.Provider, Token: o.Token, ClientVersion: o.ClientVersion, DeviceLabel: o.DeviceLabel}
	if o.AutoReconnect {
		request.Capabilities = []string{"auto_reconnect"}
	}
	var answer struct {
		AccessToken string    `json:"access_token"`
		ExpiresAt   time.Time `json:"expires_at"`
		Snapshot    Snapshot  `json:"flow_snapshot"`
	}
	for {
		err := p.callOnce(ctx, "Session.Login", "", request, &answer)
		if err == nil {
			break
		}
		refused, ok := errors.AsType[*FlowError](err)
		if !ok || refused.Code != "LOGIN_QUEUED" {
			return nil, err
		}
		if o.OnQueued != nil {
			o.OnQueued(refused.Details.Position, refused.RetryAfter)
		}
		if err := sleep(ctx, max(refused.RetryAfter, minPause)); err != nil {
			return nil, noAnswer("Session.Login", err)
		}
	}
	p.AtLogin, p.ID = answer.Snapshot, answer.Snapshot.PlayerID
	p.token, p.expiresAt, p.ahead = answer.AccessToken, answer.ExpiresAt, time.Until(p.AtLogin.ServerTime)
	p.last, p.taken, p.acked = p.AtLogin.Seq, p.AtLogin.Seq, p.AtLogin.Seq // what came before is in the snapshot
	// The login outlives the call, so it does not end with the call's context.
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	p.stop = stop
	p.running.Go(func() { p.follow(following) })
	p.running.Go(func() { p.keepLogin(following) })
	if p.AtLogin.Seq == 0 && !o.LongPoll {
		// For the first stream. It must not make a login fail: who has no stream now gets one later.
		p.until(ctx, func() bool { return p.online || p.tried || p.over != nil })
	}
	return p, nil
}

// until waits until something holds, which is looked at with p.mu locked, or ctx ends.
func (p *Player) until(ctx context.Context, holds func() bool) {
	for {
		p.mu.Lock()
		done, happened := holds(), p.happened
		p.mu.Unlock()
		if done {
			return
		}
		select {
		case <-happened:
		case <-ctx.Done():
			return
		}
	}
}

type loginRequest struct {
	Provider      string   `json:"provider"`
	Token         string   `json:"token"`
	ClientVersion string   `json:"client_version,omitempty"`
	DeviceLabel   string   `json:"device_label,omitempty"`
	Capabilities  []string `json:"capabilities,omitempty"`
}

// Flow is how the player stood when the service was last heard: in an answer or an event.
func (p *Player) Flow() Flow {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.flow
}

// Online reports whether events come in now. While it is false the service may believe that the player is gone; the
// connection is being sought meanwhile.
func (p *Player) Online() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.online
}

// Snapshot asks the service for everything about the player.
func (p *Player) Snapshot(ctx context.Context) (Snapshot, error) {
	var answer struct {
		Snapshot Snapshot `json:"flow_snapshot"`
	}
	err := p.call(ctx, "Session.GetFlow", struct{}{}, &answer)
	return answer.Snapshot, err
}

// Logout ends the login: the player leaves the party and the search. A game goes on without the login. The Player is of no
// use afterwards, also when the service could not be told; then it counts the player as offline after a while.
func (p *Player) Logout(ctx context.Context) error {
	err := p.call(ctx, "Session.Logout", struct{}{}, nil)
	p.Close()
	return err
}

// Close ends the following of events without a logout, as the end of the program does.
func (p *Player) Close() {
	p.stop()
	p.running.Wait()
}

// noteFlow keeps the latest. Answers and events come in on two ways, so an older one may come later.
func (p *Player) noteFlow(f Flow) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noteFlowLocked(f)
}

func (p *Player) noteFlowLocked(f Flow) {
	if f.Seq >= p.flow.Seq {
		p.flow = f
		p.tellLocked()
	}
}

// tellLocked wakes those who wait for a change.
func (p *Player) tellLocked() {
	close(p.happened)
	p.happened = make(chan struct{})
}

// address of a call or of the stream.
func (p *Player) address(name string) *url.URL {
	u := *p.base
	u.Path = strings.TrimSuffix(u.Path, "/") + "/playerflow/v1/player/" + name
	return &u
}

func (p *Player) String() string { return fmt.Sprintf("player %s (%s)", p.ID, p.Flow().Phase) }
