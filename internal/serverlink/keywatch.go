package serverlink

import (
	"context"
	"errors"
	"sync"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/permit"
	"github.com/musterhq/muster/internal/policy"
)

// ConnectAction is the policy action of a game server that connects for its fleet with a signature of an access key.
var ConnectAction = policy.MustBe("muster:GameServer.Connect")

// mayConnect checks the policies of a principal for a connection of its game servers to a fleet.
func (s *Server) mayConnect(ctx context.Context, by *identity.Principal, fleetID string) error {
	if !by.Restricted() {
		return nil
	}
	r := permit.Request{By: by, Engine: s.engine}
	r.Name(permit.Fleet, fleetID)
	return r.May(ctx, ConnectAction)
}

// keyWatch waits for the end of the access key that signed for a link.
type keyWatch struct {
	mu   sync.Mutex
	stop func() bool
	over bool // the link has ended
}

// followKey ends a link when the access key that signed for it ends, or when policies no longer allow the key to connect. If policies change but
// still allow it, the link stays, because most SDKs sign only once.
func (s *Server) followKey(l *link, life context.Context) {
	w := &l.outlive
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	w.stop = context.AfterFunc(life, func() {
		why := ""
		switch cause := context.Cause(life); {
		case errors.Is(cause, identity.ErrRevoked):
			why = "the access key that signed for it was revoked"
		case errors.Is(cause, identity.ErrPolicies):
			key, err := l.shown.again()
			if errors.Is(err, identity.ErrExpired) {
				return
			}
			by := key.Principal(l.shown.from)
			if err == nil {
				err = s.mayConnect(s.ctx, &by, l.process.key.Fleet)
			}
			if err == nil {
				s.followKey(l, key.Life())
				return
			}
			why = err.Error()
		default:
			return // temporary credentials were needed only to authenticate; by now the connection has a token of its own
		}
		s.log.Info("a game server's connection was closed: its access key may no longer connect it", "process", l.process.key, "key", l.shown.accessKey, "error", why)
		l.drop()
	})
}

// unfollow stops watching the key of a link that has ended.
func (l *link) unfollow() {
	w := &l.outlive
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.stop != nil {
		w.stop()
	}
}
