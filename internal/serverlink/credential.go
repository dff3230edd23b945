package serverlink

import (
	"context"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/identity"
)

// credential is a link's credential: an access key that signed the connection request, or an auth token of the compute.
type credential struct {
	accessKey    string          // id of the key; "" for a token
	life         context.Context // ends with the key; nil for a token, and for an unknown key
	registration domain.UUID     // of the compute, for a token
	generation   uint32          // of the token; 0 for a signature
	expires      domain.Time     // expiry of the token, or the time after which a live process can no longer reconnect with the signature; 0: never
	fleeting     bool            // a signature that the SDK does not send with every connection

	again func() (identity.AccessKey, error) // returns the key's current state; nil for a token, and for an unknown key
	from  string                             // client address, for policies
}

// voidNow reports whether a link's token has become void since it was checked. Once the link is attached, events take care
// of that.
func (s *Server) voidNow(l *link) bool {
	void := false
	_ = s.engine.ReadHere(s.ctx, func(v *cell.View) error { // an error means that the engine has stopped, which also ends the link
		x, ok := v.Compute(l.process.key.Fleet, l.process.key.Compute)
		void = ok && l.shown.generation != 0 && (l.shown.registration != x.Registration || l.shown.generation <= x.TokensVoid)
		return nil
	})
	return void
}

// registered closes connections that were authenticated with a token of an earlier registration of the compute. Their
// processes ended with that registration.
func (s *Server) registered(e *hosting.ComputeRegistered) {
	for _, l := range s.linksOn(e.Compute.FleetID, e.Compute.Name) {
		if l.shown.generation != 0 && l.shown.registration != e.Compute.Registration {
			l.drop()
		}
	}
}

// tokensVoid closes connections that were authenticated with a token that is now void, or sends their processes the new
// token.
func (s *Server) tokensVoid(e *hosting.TokenIssued) {
	if e.Void == 0 || e.Void+1 != e.Generation {
		return // only RotateToken voids the previous token
	}
	for _, l := range s.linksOn(e.Fleet, e.Compute) {
		switch {
		case l.shown.generation == 0 || l.shown.generation > e.Void:
		case e.KeepLinks:
			l.process.mu.Lock()
			l.stale = true
			l.process.mu.Unlock()
		default:
			s.log.Info("a game server's connection was closed: the auth token of its compute was replaced", "process", l.process.key)
			l.drop()
		}
	}
}

// linksOn returns the open connections of a compute's processes.
func (s *Server) linksOn(fleetID, compute string) (links []*link) {
	s.mu.Lock()
	var on []*process
	for key, p := range s.processes {
		if key.Fleet == fleetID && key.Compute == compute {
			on = append(on, p)
		}
	}
	s.mu.Unlock()
	for _, p := range on {
		p.mu.Lock()
		links = append(links, p.links...)
		p.mu.Unlock()
	}
	return links
}
