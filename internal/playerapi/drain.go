package playerapi

import (
	"context"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
)

// ReadyPath says to load balancers whether players should be sent here.
const ReadyPath = Prefix + "ready"

// DrainRequest sends players' clients away, or lets them come again.
type DrainRequest struct {
	Why
	Node             string `json:"node,omitempty" maxLength:"255" doc:"The machine that is meant; absent: the one that answers."`
	Drain            *bool  `json:"drain,omitempty" doc:"false lets clients come again; absent: true."`
	ReconnectAfterMS int64  `json:"reconnect_after_ms,omitempty" minimum:"0" maximum:"86400000" doc:"When clients are told to come again; 0: ten seconds. They spread it by themselves."`
	HoldMS           int64  `json:"hold_ms,omitempty" minimum:"0" maximum:"86400000" doc:"How long players who cannot come back keep all that they have; 0: an hour."`
}

// DrainAnswer is how it stands.
type DrainAnswer struct {
	Node     string `json:"node"`
	Draining bool   `json:"draining"`
	Closed   int    `json:"streams_closed"`
}

// AnnounceMaintenanceRequest tells players that the service will be down.
type AnnounceMaintenanceRequest struct {
	Why
	StartsAt string `json:"starts_at" format:"date-time"`
	Message  string `json:"message" maxLength:"1024" doc:"For players."`
}

// AnnounceMaintenanceAnswer is how many players were told.
type AnnounceMaintenanceAnswer struct {
	PlayersTold int `json:"players_told"`
}

const (
	defaultAway = 10 * time.Second
	defaultHold = time.Hour
	// announceStep is how many players are told in one transaction.
	announceStep = 256
)

// gate is closed while clients are kept away.
type gate struct {
	turn sync.Mutex // one drain or its end at a time

	mu     sync.Mutex
	after  time.Duration // when clients are to come again; 0: they may be here
	closed chan struct{} // closed with the gate
}

func newGate() *gate { return &gate{closed: make(chan struct{})} }

// shut closes the gate, or changes when clients are to come again. It returns what it was.
func (g *gate) shut(after time.Duration) (was time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	was, g.after = g.after, after
	if was == 0 {
		close(g.closed)
	}
	return was
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.after != 0 {
		g.after, g.closed = 0, make(chan struct{})
	}
}

// away is when clients are to come again while the gate is closed.
func (g *gate) away() (after time.Duration, closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.after, g.after != 0
}

// closing is closed when the gate is.
func (g *gate) closing() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// refuse is the answer to what waits for the end of the drain; nil while there is none.
func (g *gate) refuse() error {
	if after, closed := g.away(); closed {
		return later(codeMaintenance, after, "the service takes no players now; nobody loses anything meanwhile")
	}
	return nil
}

func (d *Door) declareDrain() {
	operatorCall(d, "Operator.Drain", "Sends players' clients away before work on this machine, or lets them come again. Nobody loses a key.", d.drain)
	operatorCall(d, "Operator.AnnounceMaintenance", "Tells all players who are online that the service will be down.", d.announceMaintenance)
}

func (d *Door) drain(ctx context.Context, body *DrainRequest) (*DrainAnswer, error) {
	node, err := os.Hostname()
	if err != nil {
		node = "localhost"
	}
	if body.Node != "" && body.Node != node {
		return nil, refusal(flow.InvalidArgument, "node %q: want %q, the only one there is", body.Node, node)
	}
	d.gate.turn.Lock()
	defer d.gate.turn.Unlock()
	if body.Drain != nil && !*body.Drain {
		// First the time to come back, then the way: who is here already must not be awaited.
		if _, closed := d.gate.away(); closed {
			if err := d.engine.Do(ctx, &cell.AwaitPlayers{}); err != nil {
				return nil, err
			}
			d.gate.open()
		}
		return &DrainAnswer{Node: node}, nil
	}
	after, hold := defaultAway, defaultHold
	if body.ReconnectAfterMS > 0 {
		after = time.Duration(body.ReconnectAfterMS) * time.Millisecond
	}
	if body.HoldMS > 0 {
		hold = time.Duration(body.HoldMS) * time.Millisecond
	}
	was := d.gate.shut(after) // from here on nobody comes, and a stream that ends takes nobody away
	if err := d.engine.Do(ctx, &cell.AwaitPlayers{For: hold}); err != nil {
		if was == 0 {
			d.gate.open()
		}
		return nil, err
	}
	return &DrainAnswer{Node: node, Draining: true, Closed: d.streams.sendAway(after)}, nil
}

// sendAway tells all clients when to come again, and closes their streams.
func (x *streams) sendAway(after time.Duration) int {
	x.mu.Lock()
	all := make([]*stream, 0, len(x.players))
	for _, s := range x.players {
		all = append(all, s)
	}
	x.mu.Unlock()
	for _, s := range all {
		s.sayBye(after)
	}
	return len(all)
}

// sayBye tells the client when to come again, and closes the stream.
func (s *stream) sayBye(after time.Duration) {
	s.send(opText, []byte(`{"type":"bye","reconnect_after_ms":`+strconv.FormatInt(after.Milliseconds(), 10)+`}`))
	s.close(closeDraining)
}

func (d *Door) announceMaintenance(ctx context.Context, body *AnnounceMaintenanceRequest) (*AnnounceMaintenanceAnswer, error) {
	at, err := time.Parse(time.RFC3339, body.StartsAt)
	if err != nil {
		return nil, refusal(flow.InvalidArgument, "starts_at: %.40q, want a time such as 2030-01-02T03:04:05Z", body.StartsAt)
	}
	answer := &AnnounceMaintenanceAnswer{}
	cmd := cell.AnnounceMaintenance{StartsAt: domain.TimeOf(at), Text: body.Message, Limit: announceStep}
	// An operator whose connection breaks has told all players, or the service has gone.
	ctx = context.WithoutCancel(ctx)
	for {
		if err := d.engine.Do(ctx, &cmd); err != nil {
			return nil, err
		}
		answer.PlayersTold += cmd.Told
		if cmd.Next == 0 {
			return answer, nil
		}
		cmd.After = cmd.Next
	}
}

// serveReady says whether players should be sent here.
func (d *Door) serveReady(w http.ResponseWriter) {
	after, draining := d.gate.away()
	switch err := d.engine.Err(); {
	case err != nil:
		writeProblem(w, later(flow.Unavailable, again, "the service cannot do its work"))
	case draining:
		writeProblem(w, later(codeMaintenance, after, "the service takes no players now"))
	default:
		writeJSON(w, "application/json", http.StatusOK, []byte(`{"ready":true}`))
	}
}
