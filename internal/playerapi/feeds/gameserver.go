package feeds

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/playerapi/events"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/principal"
	"github.com/musterhq/muster/internal/playerapi/problem"
	"github.com/musterhq/muster/internal/playerapi/socket"
)

// serverProtocol is the subprotocol of a game server's stream.
const serverProtocol = "playerflow.partner.v1"

const (
	// noticesStep is the maximum number of notices in one read.
	noticesStep = 64
	// connectionsMax is the maximum number of concurrent streams of one game: its server's stream, earlier ones whose loss is not yet
	// detected, and those of observers.
	connectionsMax = 16
)

// ServeGameServer opens the stream of a game instance, for its server or for a service account that names it.
func (x *Feeds) ServeGameServer(w http.ResponseWriter, r *http.Request) {
	by, after, _, refused := x.admit(r, serverProtocol, "after_seq")
	if refused != nil {
		problem.Write(w, refused)
		return
	}
	instance, err := x.streamedInstance(r, by)
	if err != nil {
		problem.Write(w, x.State.Problem(r.Context(), err, ""))
		return
	}
	f := &serverFeed{of: x, instance: instance, after: after, whole: after == 0}
	l, ok := x.open(w, r, by, serverProtocol, f)
	if !ok {
		return
	}
	all := x.servers
	x.serve(l, func() {
		if all[instance] == nil {
			all[instance] = map[*connection]bool{}
		}
		if len(all[instance]) >= connectionsMax {
			l.end(socket.RateLimited)
		}
		all[instance][l] = true
	}, func() {
		if delete(all[instance], l); len(all[instance]) == 0 {
			delete(all, instance)
		}
	})
}

// streamedInstance finds the game instance of a stream by its id or by the id of its game session.
func (x *Feeds) streamedInstance(r *http.Request, by *principal.Principal) (instance flow.InstanceID, err error) {
	query := r.URL.Query()
	named := query.Get("game_session_id")
	if named == "" {
		instance, err = by.InstanceFor(query.Get("game_instance_id"))
	}
	if err != nil {
		return instance, err
	}
	err = x.State.Read(r.Context(), func(v *cell.View) error {
		known := false
		if named == "" {
			_, _, known = v.GameInstance(instance)
		} else {
			instance, known = v.GameInstanceOf(session.IDOf(named))
		}
		if !known {
			return problem.New(flow.GameInstanceNotFound, "there is no game instance %s", strings.TrimSpace(objects.ID(instance)+" "+named))
		}
		return nil
	})
	if err == nil && named != "" {
		_, err = by.InstanceFor(objects.ID(instance))
	}
	return instance, err
}

// serverFeed provides the notices for the server of a game instance.
type serverFeed struct {
	of       *Feeds
	instance flow.InstanceID
	after    uint64 // number of the last notice sent
	whole    bool   // begin with a full OnSync
}

func (*serverFeed) take(context.Context, uint64) {} // notices need no acknowledgement, because their number is bounded

// serverHello is the first frame of a game server's stream.
type serverHello struct {
	Type           string `json:"type"`
	GameInstanceID string `json:"game_instance_id"`
	HeadSeq        uint64 `json:"head_seq"`
	PingIntervalMS int64  `json:"ping_interval_ms"`
	DeadAfterMS    int64  `json:"dead_after_ms"`
	Resume         string `json:"resume"`
}

func (f *serverFeed) hello(ctx context.Context, promised *flow.SessionConfig) ([]byte, error) {
	var head uint64
	err := f.of.State.Read(ctx, func(v *cell.View) error {
		var ok bool
		_, head, _, ok = v.ServerNotices(f.instance, f.after, 1)
		f.whole = f.whole || !ok
		return nil
	})
	resume := events.ResumeReplay
	if f.whole {
		resume = events.ResumeSnapshot
	}
	body, _ := json.Marshal(serverHello{
		"hello", objects.ID(f.instance), head, promised.PingInterval.Milliseconds(), promised.DeadAfter.Milliseconds(), resume,
	})
	return body, err
}

func (f *serverFeed) next(ctx context.Context, frames []byte) (all []byte, more bool, code uint16, err error) {
	var notices []playerflow.ServerNotice
	var head uint64
	var commit string
	var live, known bool
	sync := &objects.StartDataAnswer{}
	err = f.of.State.ReadHere(ctx, func(v *cell.View) error {
		var ok bool
		if !f.whole {
			notices, head, live, ok = v.ServerNotices(f.instance, f.after, noticesStep)
		}
		if known = ok; ok {
			return nil
		}
		f.whole = true
		g, members, there := v.GameInstance(f.instance)
		if known = there; there {
			sync, head, live = objects.StartDataOf(&g, members), g.NoticeSeq(), g.Live()
			if n := g.Notices(); len(n) > 0 {
				commit = flow.CommitName(n[len(n)-1].Commit, n[len(n)-1].Part)
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return frames, false, 0, err
	case !known:
		return frames, false, socket.Ended, nil
	case f.whole:
		tail := f.of.events.ServerSync(commit, sync)
		frames = socket.Append(frames, socket.Text, events.Whole(head, tail))
		f.after, f.whole = head, false
	}
	for i := range notices {
		n := &notices[i]
		frames = socket.Append(frames, socket.Text, events.Whole(n.Seq, f.of.events.Notice(&n.Noticed)))
		f.after = n.Seq
	}
	if more = f.after < head; !more && !live {
		code = socket.Ended
	}
	return frames, more, code, nil
}
