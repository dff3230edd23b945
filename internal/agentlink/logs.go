package agentlink

import (
	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/session"
)

// logUpload returns where an agent uploads the logs of an ended server process. It does so only for a game session that this process of this
// compute hosted.
func (l *link) logUpload(r *agentproto.RequestLogUpload) (*agentproto.LogUpload, error) {
	s := l.server
	if s.config.LogUpload == nil {
		return nil, &failure{404, "this installation keeps no logs of game sessions"}
	}
	id := session.IDOf(r.GameSessionID)
	if id == "" { // it ended before the session was active
		if err := s.engine.Read(s.ctx, func(v *cell.View) error {
			p, _ := v.Process(l.key(r.ProcessID))
			id = session.ID(p.Game)
			return nil
		}); err != nil {
			return nil, err
		}
	}
	if id == "" {
		return nil, &failure{404, "this process had no game session"}
	}
	g, err := s.engine.GameSession(s.ctx, id)
	if err != nil {
		return nil, err
	}
	switch {
	case g.FleetID != l.compute().fleet || g.ComputeName != l.compute().name || g.ProcessID != r.ProcessID:
		return nil, &failure{404, "this process had no such game session"}
	case g.Live():
		return nil, domain.Refuse(domain.NotReady, "game session %s has not ended", g.ID)
	}
	return &agentproto.LogUpload{URL: s.config.LogUpload(string(g.ID))}, nil
}
