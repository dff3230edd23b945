package streams

import (
	"context"
	"errors"
	"hash/maphash"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/insist"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/playerapi/authentication"
	"github.com/musterhq/muster/internal/playerapi/events"
	"github.com/musterhq/muster/internal/playerapi/rates"
	"github.com/musterhq/muster/internal/playerapi/socket"
	"github.com/musterhq/muster/internal/playerapi/state"
	"github.com/musterhq/muster/internal/playerrates"
	"github.com/musterhq/muster/internal/steady"
	"github.com/musterhq/muster/internal/warm"
)

// Config has the dependencies and settings of the streams.
type Config struct {
	Node    func() domain.UUID // the id under which this node currently takes connections; nil: a single node
	State   *state.State
	Auth    *authentication.Authenticator
	Buckets *rates.Buckets
	Allows  func(*http.Request) bool // reports whether the requesting web page, if any, may open a stream
	Panics  *panics.Guard
}

// Streams has the connections of all players' clients, and the waiting polls.
type Streams struct {
	Config
	events   events.Writer
	metrics  *streamMetrics
	gate     *gate
	reading  frames.Config
	ctx      context.Context // ends when the door closes
	stop     context.CancelFunc
	unfollow func()
	running  warm.Group
	losses   *insist.Reports // of streams
	signs    *insist.Reports // acknowledgements and signs of life, which losses do not wait for
	seed     maphash.Seed

	// attaching serialises the attaches of one player, so that the core and this node agree on which came last.
	attaching [256]sync.Mutex

	polling sync.RWMutex // read-locked while polls begin, so that a drain can wait for those that it has not refused

	mu       sync.Mutex
	players  map[string]*stream
	parts    [watchParts]map[*stream]struct{} // the same streams, as watch looks at them
	sessions map[flow.LoginSessionID]*stream
	polls    map[string][]chan struct{}
	dropped  chan struct{} // closed when all streams and polls must begin anew
	closed   bool

	withholds bool      // a drain has begun, and it is open whether it succeeds
	withheld  []*stream // losses that are reported if it fails
}

// subprotocol of the stream.
const subprotocol = "playerflow.v1"

// streamPace is the pace at which a stream is read.
var streamPace = playerrates.FramesMost

const (
	watchEvery = time.Second
	// watchParts is the number of parts into which a round over all streams is divided, so that not all heartbeats are written at once.
	watchParts = 10
)

// Open begins to follow the events of players. Streams must be closed before the engine.
func Open(c Config) *Streams {
	if c.Node == nil {
		c.Node = func() domain.UUID { return domain.UUID{} }
	}
	x := &Streams{
		Config: c, events: events.Writer{State: c.State}, metrics: newStreamMetrics(), gate: newGate(), seed: maphash.MakeSeed(), players: map[string]*stream{}, sessions: map[flow.LoginSessionID]*stream{}, polls: map[string][]chan struct{}{}, dropped: make(chan struct{}),
	}
	x.ctx, x.stop = context.WithCancel(context.Background())
	reports := insist.Config{Open: x.ctx, Running: &x.running, Panics: c.Panics, Door: state.PanicDoor}
	x.losses, x.signs = insist.New(reports), insist.New(reports)
	x.reading = frames.Config{MessageMax: socket.MessageMax, Pace: streamPace, Running: &x.running, Panics: c.Panics, Door: state.PanicDoor}
	x.unfollow = c.State.Follow(kernel.Kinds(new(playerflow.PlayersTold), new(playerflow.LoginChanged), new(playerflow.LoginRemoved), new(playerflow.PresenceChanged)), x.follow)
	x.running.Go(x.watch)
	return x
}

// attach makes a stream the player's present one and greets its client. A code other than 0 refuses the stream.
func (x *Streams) attach(s *stream, after uint64) (code uint16) {
	turn := x.turnOf(s.player)
	turn.Lock()
	defer turn.Unlock()
	old, code := x.enter(s)
	if code != 0 {
		return code
	}
	cmd := playerflow.AttachStream{Player: s.player, LoginSessionID: s.session, Stream: s.number, After: after, Node: s.node}
	if err := x.State.Do(x.ctx, &cmd); err != nil {
		x.unattached(s, old, err)
		return closeCodeOf(err)
	}
	hello, events, head, err := x.beginning(s, &cmd, after)
	if err != nil {
		if x.leave(s) {
			x.lose(s)
		}
		return socket.Draining
	}
	if s.node != x.Node() { // the node was given up meanwhile
		x.leave(s)
		return socket.Draining
	}
	s.greet(hello, events, head)
	return 0
}

// turnOf returns the lock that serialises the attaches of a player.
func (x *Streams) turnOf(player string) *sync.Mutex {
	return &x.attaching[maphash.String(x.seed, player)%uint64(len(x.attaching))]
}

// unattached removes a stream that the core did not attach, or perhaps did; old is the one that it replaced.
func (x *Streams) unattached(s, old *stream, err error) {
	if !x.leave(s) {
		return
	}
	if old != nil { // it is closed, and the core may still have it
		x.lose(old)
	}
	if _, refused := errors.AsType[*domain.Refusal](err); !refused { // the core may have attached it
		x.lose(s)
	}
}

// enter registers a stream and replaces an earlier one of the player, which it returns. From now on the stream gathers events. A code other than 0
// refuses it.
func (x *Streams) enter(s *stream) (old *stream, code uint16) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, away := x.gate.away(); away || x.closed {
		return nil, socket.Draining
	}
	old = x.players[s.player]
	switch {
	case old == nil:
	case old.epoch > s.epoch: // a later login came before this stream arrived
		return nil, socket.Replaced
	case old.session == s.session:
		old.close(socket.Superseded)
	default:
		delete(x.sessions, old.session)
		old.close(socket.Replaced)
	}
	x.put(s)
	x.sessions[s.session] = s
	x.metrics.open.Set(float64(len(x.players)))
	return old, 0
}

// put makes a stream the present one of its player. The caller holds mu.
func (x *Streams) put(s *stream) {
	if old := x.players[s.player]; old != nil {
		delete(x.parts[old.number%watchParts], old)
	}
	part := &x.parts[s.number%watchParts]
	if *part == nil {
		*part = map[*stream]struct{}{}
	}
	x.players[s.player], (*part)[s] = s, struct{}{}
}

// leave removes a stream if it is the present one of its player. It reports whether that is so and the core must still learn of the loss.
func (x *Streams) leave(s *stream) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.players[s.player] != s {
		return false
	}
	delete(x.players, s.player)
	delete(x.parts[s.number%watchParts], s)
	delete(x.sessions, s.session)
	x.metrics.open.Set(float64(len(x.players)))
	return !x.closed
}

// lose reports to the core that a stream is lost, unless players are kept away: then the core knows that they are absent. If the door closes first, that is not
// reported: all clients reconnect anyway.
func (x *Streams) lose(s *stream) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, away := x.gate.away(); !away {
		x.report(s)
	} else if x.withholds {
		x.withheld = append(x.withheld, s)
	}
}

func (x *Streams) report(s *stream) {
	player, number := s.player, s.number
	x.losses.Make(func() error {
		return x.State.Do(context.WithoutCancel(x.ctx), &playerflow.LoseStream{Player: player, Stream: number})
	})
}

// follow passes on events. A stream that ends is closed after the events of the same entry.
func (x *Streams) follow(c engine.Committed) {
	if c.Gap {
		x.missed()
	}
	for i := range c.Events {
		if e, ok := c.Events[i].Event.(*playerflow.PlayersTold); ok {
			x.tell(e, flow.Told{At: c.Events[i].At, Commit: c.Number, Part: c.Events[i].Part, Type: e.Type, Body: e.Body})
		}
	}
	for _, e := range c.Events {
		switch e := e.Event.(type) {
		case *playerflow.PresenceChanged:
			if e.Node != 0 {
				x.moved(e.Player, e.Stream)
			}
			if e.Presence == flow.Offline { // perhaps because the login session has ended, whose event names no player
				x.mu.Lock()
				x.wakePolls(e.Player)
				x.mu.Unlock()
			}
		case *playerflow.LoginChanged:
			if e.Login.State != flow.LoginLive {
				x.end(e.Login.ID, socket.Replaced)
			}
		case *playerflow.LoginRemoved:
			x.end(e.ID, socket.Ended)
		}
	}
}

// tell passes on an event, as the outboxes store it in as.
func (x *Streams) tell(e *playerflow.PlayersTold, as flow.Told) {
	told := x.attached(e)
	if len(told) == 0 {
		return
	}
	defer x.Panics.Confine(state.PanicDoor, func() { // they reconnect, and then each gets the event separately
		for _, to := range told {
			to.stream.drop()
		}
	})
	// No caller waits for the write. A client that attaches from here on begins after this entry, which is durable.
	tail, err := x.events.Tail(x.ctx, told[0].seq, &as, told[0].stream.player)
	for _, to := range told {
		if err != nil {
			to.stream.close(socket.Draining)
		} else {
			to.stream.tell(to.seq, tail)
		}
	}
}

// addressed is a stream, with the number that an event has for its player.
type addressed struct {
	stream *stream
	seq    uint64
}

// attached finds the streams of an event's recipients, and wakes their polls.
func (x *Streams) attached(e *playerflow.PlayersTold) (told []addressed) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, to := range e.To {
		if s := x.players[to.Player]; s != nil {
			told = append(told, addressed{s, to.Seq})
		}
		x.wakePolls(to.Player)
	}
	return told
}

// wakePolls makes the polls of a player look again. The caller holds mu.
func (x *Streams) wakePolls(player string) {
	for _, poll := range x.polls[player] {
		select {
		case poll <- struct{}{}:
		default: // already awake
		}
	}
}

func (x *Streams) end(session flow.LoginSessionID, code uint16) {
	x.mu.Lock()
	s := x.sessions[session]
	x.mu.Unlock()
	if s != nil {
		s.close(code)
	}
}

// watch sends heartbeats, drops silent streams, and keeps alive the login sessions of clients that only listen.
func (x *Streams) watch() {
	ticker := time.NewTicker(watchEvery / watchParts)
	defer ticker.Stop()
	var all []*stream
	for part := 0; ; part = (part + 1) % watchParts {
		select {
		case <-x.ctx.Done():
			return
		case <-ticker.C:
		}
		all = x.part(all, part)
		now := steady.Now()
		config := &x.State.Settings().Sessions
		for _, s := range all {
			x.look(s, now, config)
		}
		clear(all)
		all = all[:0]
	}
}

// part appends the streams of a part.
func (x *Streams) part(all []*stream, part int) []*stream {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.AppendSeq(all, maps.Keys(x.parts[part]))
}

// look does what is due for one stream. It never waits for the journal, because one goroutine sends the heartbeats of all streams.
func (x *Streams) look(s *stream, now int64, config *flow.SessionConfig) {
	defer x.Panics.Confine(state.PanicDoor, s.drop)
	// The intervals of the client's greeting still hold: the service sends heartbeats no less often, and gives the client no less time to answer.
	switch {
	case now-s.heard.Load() > int64(max(config.DeadAfter, s.promised.DeadAfter)):
		s.drop()
	case now-s.pinged >= int64(min(config.PingInterval, s.promised.PingInterval)-watchEvery/2): // the look that is nearest to the interval
		s.pinged = now
		s.beat()
	}
	if now-s.renewed > int64(config.IdleExpiry/10) && s.renewing.CompareAndSwap(false, true) {
		s.renewed = now
		x.signs.Make(s.renew)
	}
}

// renew keeps the login session of a stream alive. The next renewal makes up for one that fails; a session that has ended closes its stream.
func (s *stream) renew() error {
	defer s.renewing.Store(false)
	_ = s.of.State.Do(s.of.ctx, &playerflow.PollEvents{Player: s.player, LoginSessionID: s.session, Node: s.node, Stream: s.number})
	return nil
}

// reads starts to read from a stream. It returns false if the door is closed.
func (x *Streams) reads(s *stream) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return false
	}
	frames.Read(s.conn, &x.reading, heardFrom{s})
	return true
}

// moved closes a stream if its player has attached another at another node. A player's changes of presence arrive in order, so a different
// number after that of a stream belongs to a later one.
func (x *Streams) moved(player string, stream uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch s := x.players[player]; {
	case s == nil || stream == 0:
	case s.number == stream:
		s.attached = true
	case s.attached:
		s.close(socket.Superseded)
	}
}

// Drop disconnects all clients, also those that poll, which reconnect to this node or another. It returns the number of closed streams.
func (x *Streams) Drop() (closed int) {
	x.mu.Lock()
	close(x.dropped)
	x.dropped = make(chan struct{})
	x.mu.Unlock()
	all := x.all()
	for _, s := range all {
		s.sayBye(socket.ComeBack)
	}
	return len(all)
}

// dropping returns a channel that is closed by the next Drop.
func (x *Streams) dropping() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.dropped
}

// Close tells clients to come back, and waits until no stream is left. Presence stays as it is: after the restart every player has time to come back.
func (x *Streams) Close() {
	x.stop()
	x.unfollow()
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	for _, s := range x.all() {
		s.sayBye(socket.ComeBack)
	}
	x.running.Wait()
}

// all returns the streams.
func (x *Streams) all() []*stream {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Collect(maps.Values(x.players))
}

// Count returns the number of attached streams.
func (x *Streams) Count() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.players)
}
