// Package playerhooks asks the studio's backend about players' calls before the service carries them out: whether the player may make the call, and
// what data the studio adds. Each hook is one signed POST with a short timeout. The hook's configuration says what happens if there is no answer.
//
// A disabled hook costs nothing. A hook whose receiver is down costs little: after failures for several players, no requests are sent for a while,
// and the number of requests that may wait for one receiver is bounded.
package playerhooks

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/musterhq/muster/internal/live"
	"github.com/musterhq/muster/internal/rate"
)

// Name of a hook, in the configuration, the guide and the messages.
type Name string

// The hooks.
const (
	BeforeCreateParty      Name = "BeforeCreateParty"
	BeforeJoinParty        Name = "BeforeJoinParty"
	BeforeInvite           Name = "BeforeInvite"
	BeforeEnterMatchmaking Name = "BeforeEnterMatchmaking"
	BuildPlayerData        Name = "BuildPlayerData"
	BeforeDirectJoin       Name = "BeforeDirectJoin"
	BeforePlayerUpdate     Name = "BeforePlayerUpdate"
	ChooseRegions          Name = "ChooseRegions"
	DecidePenalty          Name = "DecidePenalty"
)

// names are all hooks, with their defaults. Unless the studio configures otherwise, players can still play if the receiver of a hook that only adds
// data is silent.
var names = map[Name]OnTimeout{
	BeforeCreateParty: Deny, BeforeJoinParty: Deny, BeforeInvite: Deny, BeforeEnterMatchmaking: Deny, BeforeDirectJoin: Deny,
	BeforePlayerUpdate: Deny, BuildPlayerData: Allow, ChooseRegions: Allow, DecidePenalty: Allow,
}

// KeyTarget is the name of the hooks' receiver for `muster webhook-key`.
const KeyTarget = "player-hooks"

// Hooks are the enabled hooks. Nil means none.
type Hooks struct {
	keys    func() []string // sign requests
	log     *slog.Logger
	now     live.Value[table]
	metrics *metrics
}

// table is the contents of a configuration.
type table struct {
	hooks     map[Name]*hook
	receivers map[string]*receiver // by URL: hooks that share one share its connections
}

// complainEvery bounds the log lines about a hook that fails constantly.
const complainEvery = time.Minute

type hook struct {
	Hook
	receiver *receiver
	circuit  circuit // one per hook, because a receiver may fail for one hook and work for another
	log      *slog.Logger
	told     rate.Lines // about unusable answers
}

// New returns the hooks of a configuration. The keys sign the requests.
func New(c Config, keys func() []string, log *slog.Logger) *Hooks {
	h := &Hooks{keys: keys, log: log, metrics: newMetrics()}
	h.Set(c)
	return h
}

// Set changes the configuration during operation. Requests in progress finish with the old one; the failures of receivers are forgotten.
func (h *Hooks) Set(c Config) {
	t := table{map[Name]*hook{}, map[string]*receiver{}}
	for name, x := range c.Hooks {
		r := t.receivers[x.URL]
		if r == nil {
			r = newReceiver(x.URL, c.Concurrency, h.keys)
			t.receivers[x.URL] = r
		}
		t.hooks[name] = &hook{Hook: x, receiver: r, circuit: circuit{now: time.Now}, log: h.log, told: rate.Lines{Most: 1, Period: complainEvery}}
	}
	was := h.now.Get()
	h.now.Set(t)
	was.close()
}

// close closes idle connections.
func (t table) close() {
	for _, r := range t.receivers {
		r.client.CloseIdleConnections()
	}
}

// Close closes the connections. No request may follow.
func (h *Hooks) Close() {
	if h != nil {
		h.now.Get().close()
	}
}

// On reports whether a hook is on.
func (h *Hooks) On(n Name) bool {
	if h == nil {
		return false
	}
	_, on := h.now.Get().hooks[n]
	return on
}

// Denied is the studio's refusal.
type Denied struct {
	Hook    Name
	Message string // for the player's client
}

func (e *Denied) Error() string { return fmt.Sprintf("hook %s denied the call: %s", e.Hook, e.Message) }

// Silent means that a hook whose answer is required gave no usable one.
type Silent struct {
	Hook Name
	err  error
}

func (e *Silent) Error() string { return fmt.Sprintf("hook %s gave no answer: %s", e.Hook, e.err) }

// Unwrap returns the cause.
func (e *Silent) Unwrap() error { return e.err }

// answer is the interface of every kind of answer.
type answer interface {
	check() error                            // nil if it is usable
	verdict() (allowed bool, message string) // of one that only adds something: allowed
}

// Ask sends a request to a hook and returns its answer. The answer is the zero value if the hook is off, or if it does not answer and its policy is
// ALLOW. The error is a *Denied, a *Silent, or the context's.
func Ask[A any, P interface {
	*A
	answer
}](ctx context.Context, h *Hooks, n Name, q question) (A, error) {
	var none A
	if h == nil {
		return none, nil
	}
	x, on := h.now.Get().hooks[n]
	if !on {
		return none, nil
	}
	limited, cancel := context.WithTimeout(ctx, x.Timeout)
	defer cancel()
	var got A
	began := time.Now()
	err := x.ask(limited, n, q, func(body []byte) error { return readAnswer(body, P(&got)) })
	allowed, message := false, ""
	if err == nil {
		allowed, message = P(&got).verdict()
	}
	h.metrics.note(n, began, allowed, err)
	switch {
	case err == nil && allowed:
		return got, nil
	case err == nil:
		return none, &Denied{n, message}
	case ctx.Err() != nil: // the caller has gone
		return none, ctx.Err()
	case x.OnTimeout == Allow:
		return none, nil
	}
	return none, &Silent{n, err}
}
