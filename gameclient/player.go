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

// The identity providers that a service may have. The studio chooses the names of others.
const (
	ProviderDev     = "dev"     // accepts every token of DevToken without a check; only with muster serve --dev
	ProviderBackend = "backend" // login tickets, which the studio's backend issues for a player
	ProviderOIDC    = "oidc"    // tokens of the studio's OpenID provider
)

// DevToken is a token of the development provider for a player id of 1 to 128 characters. The service does not check it.
func DevToken(player string) string {
	token, _ := json.Marshal(map[string]string{"player_id": player}) // never fails for strings
	return string(token)
}

// PlayerOptions are the options of a login. Endpoint, Provider and Token are required.
type PlayerOptions struct {
	Endpoint string // URL of the service: "https://play.example.com"
	Provider string // the identity provider that issued Token: ProviderDev, ProviderBackend, ProviderOIDC or another
	Token    string // the player's token; for ProviderBackend the login ticket

	ClientVersion string // of the game; players of different versions are not matched
	DeviceLabel   string // such as "Ann's laptop"; a device that this login replaces gets it

	// AutoReconnect makes the service send the connection details of a running game right after the login, as an event, without
	// Reconnect. Use it in games that load within the reservation of a seat (60 s by default).
	AutoReconnect bool

	// OnQueued, if not nil, is called while the player waits in the login queue, with the position in it (from 1) and the time until the
	// next attempt.
	OnQueued func(position int, wait time.Duration)

	HTTPClient *http.Client // default http.DefaultClient; the TLS configuration of its transport applies to the event stream, too
	LongPoll   bool         // gets events by long poll only, never by WebSocket

	Logger *slog.Logger // receives lost connections; nil: they are not logged
}

// Player is a logged-in player. Its methods may be called from any goroutine. It follows the player's events and refreshes
// the login until Logout or Close. Its calls fail with a *FlowError.
type Player struct {
	// ID is the service's id for the player.
	ID string

	// AtLogin is the player's state at the login. After a crash it may contain a party, a search and a game.
	AtLogin Snapshot

	options PlayerOptions
	base    *url.URL
	ahead   time.Duration // of the service's clock, compared with this machine's
	stop    context.CancelFunc
	running sync.WaitGroup // follow and keepLogin

	refreshing sync.Mutex
	expiring   chan struct{} // holds an element when the service says that the login is about to expire

	mu        sync.Mutex
	token     string
	expiresAt time.Time // when the login ends, by the service's clock
	flow      Flow
	events    []Event
	last      uint64 // number of the last event that was received
	taken     uint64 // of the last one that the game has taken
	acked     uint64 // of the last one that was acknowledged to the service
	whole     bool   // events were dropped: request an OnSync
	online    bool
	tried     bool          // an attempt to open a stream has ended
	over      error         // why no event can come any more
	happened  chan struct{} // closed, and replaced, when flow, events, online or over change
}

// Login logs in and begins to follow the player's events. It replaces a login of the same player on another device, which gets
// ErrReplaced. If the service has a login queue, Login waits in it until ctx ends.
//
// The service does not refuse a login because of a running party, search or game; AtLogin contains them. The error is an
// *InvalidRequestError or a *FlowError, such as ErrUnauthorized for a token that the provider does not accept.
//
// For a player without any event, Login also waits until the event stream is open or an attempt to open it has failed. Otherwise an
// event before the stream would arrive as OnSync.
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
		// For the first stream. A failure is not the login's: the Player opens the stream later.
		p.until(ctx, func() bool { return p.online || p.tried || p.over != nil })
	}
	return p, nil
}

// until waits until holds, which is called with p.mu locked, returns true, or ctx ends.
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

// Flow returns the player's phase and keys as of the last answer or event of the service.
func (p *Player) Flow() Flow {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.flow
}

// Online reports whether the Player receives events now. While it does not, it tries to reconnect, and the service may consider the player
// offline.
func (p *Player) Online() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.online
}

// Snapshot requests the player's whole state.
func (p *Player) Snapshot(ctx context.Context) (Snapshot, error) {
	var answer struct {
		Snapshot Snapshot `json:"flow_snapshot"`
	}
	err := p.call(ctx, "Session.GetFlow", struct{}{}, &answer)
	return answer.Snapshot, err
}

// Logout ends the login: the player leaves the party and the search, but stays in a running game. Logout also closes the Player, even
// if the call fails; the service then notices that the player is offline.
func (p *Player) Logout(ctx context.Context) error {
	err := p.call(ctx, "Session.Logout", struct{}{}, nil)
	p.Close()
	return err
}

// Close stops the Player without a logout, as the end of the program does. The login continues until it expires.
func (p *Player) Close() {
	p.stop()
	p.running.Wait()
}

// noteFlow keeps the latest Flow. Answers and events use different connections, so an older one may arrive later.
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

// tellLocked wakes the goroutines that wait for a change.
func (p *Player) tellLocked() {
	close(p.happened)
	p.happened = make(chan struct{})
}

// address returns the URL of a call or of the stream.
func (p *Player) address(name string) *url.URL {
	u := *p.base
	u.Path = strings.TrimSuffix(u.Path, "/") + "/playerflow/v1/player/" + name
	return &u
}

func (p *Player) String() string { return fmt.Sprintf("player %s (%s)", p.ID, p.Flow().Phase) }
