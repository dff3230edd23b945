package gameserver

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gorilla/websocket"
)

// NoticeType says what a notice is about.
type NoticeType string

// The types of notices, with the fields of a Notice that they set beside Seq, At, Type and Data. A later service may know more: pass
// over what you do not know.
const (
	// OnSync is how the game stands: StartData. It comes first, and again when notices were missed for so long that the
	// service does not have them any more; its Seq is that of the last one.
	OnSync NoticeType = "OnSync"

	OnPlayersAdded            NoticeType = "OnPlayersAdded"            // Players: first all who belong to the game, later newcomers
	OnPlayerLeft              NoticeType = "OnPlayerLeft"              // PlayerID, Reason
	OnPlayerDeclinedReconnect NoticeType = "OnPlayerDeclinedReconnect" // PlayerID; OnPlayerLeft follows
	OnPlayerReconnecting      NoticeType = "OnPlayerReconnecting"      // PlayerID, Attempt, PlayerSessionID: the player will connect with it
	OnPlayerSessionSuperseded NoticeType = "OnPlayerSessionSuperseded" // PlayerID, Attempt, Old, New: another device takes over
	OnReconnectExpired        NoticeType = "OnReconnectExpired"        // PlayerID; OnPlayerLeft follows

	OnGameInstanceEnteredMatchmaking NoticeType = "OnGameInstanceEnteredMatchmaking" // MatchmakingID, Queue, Seats
	OnGameInstanceLeftMatchmaking    NoticeType = "OnGameInstanceLeftMatchmaking"    // MatchmakingID, Queue, Seats, Reason
)

// Notice is one thing that has happened to the players of the game. Which fields count depends on the Type.
type Notice struct {
	Seq  uint64 // rises by one with each notice of the game
	At   time.Time
	Type NoticeType
	Data json.RawMessage // all that the service said, for what this package does not know

	StartData *StartData // of OnSync
	NoticeData
}

// NoticeData is what notices say.
type NoticeData struct {
	Players         []InstancePlayer `json:"players"`
	PlayerID        string           `json:"player_id"`
	Reason          string           `json:"reason"`
	Attempt         int              `json:"attempt"`
	PlayerSessionID string           `json:"player_session_id"`
	Old             string           `json:"old"` // player session
	New             string           `json:"new"`
	MatchmakingID   string           `json:"matchmaking_id"`
	Queue           string           `json:"queue"`
	Seats           int              `json:"slots"` // 0: as many as there is room for
}

// Pauses between attempts to get the notices: of any length up to the first, then up to twice as long each time.
const (
	noticesPause    = 500 * time.Millisecond
	noticesPauseMax = 30 * time.Second
	noticesGreet    = 10 * time.Second // from the beginning of an attempt to the first frame

	noticesProtocol = "playerflow.partner.v1"
	noticeMax       = 16 << 20 // bytes of one message of the service; more ends the connection
)

// Close codes after which nothing comes any more.
const (
	closeNotAllowed = 4401
	closeGameOver   = 4410
)

// Notices tells what happens to the players of the game, each notice once and in order, beginning with an OnSync. A lost connection is
// sought again for as long as it takes. The loop ends when the game is over, and with an error when ctx ends or the service
// does not know this server any more. What one turn of the loop does should take seconds, not minutes: the service is not answered
// meanwhile. A game server that hears none of it is correct as well.
//
//	for n, err := range instance.Notices(ctx) {
//		if err != nil {
//			return err
//		}
//		if n.Type == gameserver.OnPlayerReconnecting {
//			world.Expect(n.PlayerID)
//		}
//	}
func (g *GameInstance) Notices(ctx context.Context) iter.Seq2[Notice, error] {
	return func(yield func(Notice, error) bool) {
		l := &listener{instance: g, yield: yield}
		for failures := 0; ; failures++ {
			before := l.after
			err := l.listen(ctx)
			switch closed, _ := errors.AsType[*websocket.CloseError](err); {
			case l.enough:
				return
			case ctx.Err() != nil:
				yield(Notice{}, failed("Notices", context.Cause(ctx)))
				return
			case closed != nil && closed.Code == closeGameOver, errors.Is(err, ErrNoFlow):
				return
			case closed != nil && closed.Code == closeNotAllowed:
				yield(Notice{}, &Error{"Notices", ErrUnauthorized, err})
				return
			case errors.Is(err, ErrUnauthorized):
				yield(Notice{}, err)
				return
			}
			if l.after > before {
				failures = 0
			}
			g.server.log.Info("the notices are interrupted", "game_instance", g.ID, "err", err)
			pause := min(noticesPause<<min(failures, 10), noticesPauseMax)
			select {
			case <-time.After(l.wait + mathrand.N(pause)): // servers that lost the service together shall not come back together
			case <-ctx.Done():
			}
		}
	}
}

// listener takes notices in, by one WebSocket after the other.
type listener struct {
	instance *GameInstance
	socket   *websocket.Conn
	yield    func(Notice, error) bool
	after    uint64 // the last notice that was told
	enough   bool   // the loop was left
	patience time.Duration
	wait     time.Duration // until the service wants to see this server again
}

// listen takes notices in until the connection ends. The error is never nil.
func (l *listener) listen(ctx context.Context) error {
	g := l.instance
	u := g.address("stream")
	u.Scheme = "ws" + u.Scheme[len("http"):]
	if l.after > 0 {
		u.RawQuery = "after_seq=" + strconv.FormatUint(l.after, 10)
	}
	l.wait, l.patience = 0, noticesGreet
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return g.dial(ctx, u) }
	dialer := websocket.Dialer{HandshakeTimeout: noticesGreet, NetDialContext: dial, NetDialTLSContext: dial, Subprotocols: []string{noticesProtocol}}
	socket, response, err := dialer.DialContext(ctx, u.String(), http.Header{"Authorization": {"Bearer " + g.token}})
	switch {
	case err == nil:
	case response == nil:
		return err
	case response.StatusCode == http.StatusUnauthorized:
		return &Error{"Notices", ErrUnauthorized, err}
	case response.StatusCode == http.StatusNotFound:
		return &Error{"Notices", ErrNoFlow, err}
	default:
		return fmt.Errorf("open the stream: status %d: %w", response.StatusCode, err)
	}
	defer socket.Close()                                          // closed already is as good
	defer context.AfterFunc(ctx, func() { _ = socket.Close() })() // ends a read
	if got := socket.Subprotocol(); got != noticesProtocol {
		return fmt.Errorf("open the stream: the service speaks the subprotocol %.40q, want %s", got, noticesProtocol)
	}
	l.socket = socket
	socket.SetReadLimit(noticeMax)
	socket.SetPingHandler(l.ping)
	for err == nil {
		l.heard()
		var text []byte
		if _, text, err = socket.ReadMessage(); err == nil {
			err = l.take(text)
		}
	}
	return err
}

// dial connects the way the calls do.
func (g *GameInstance) dial(ctx context.Context, u *url.URL) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, noticesGreet)
	defer cancel()
	if u.Scheme == "ws" {
		return (&net.Dialer{}).DialContext(ctx, "tcp", withPort(u, "80"))
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t, ok := g.client.Transport.(*http.Transport); ok && t.TLSClientConfig != nil {
		config = t.TLSClientConfig.Clone()
	}
	config.NextProtos = nil // no HTTP/2 under a WebSocket
	return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", withPort(u, "443"))
}

func withPort(u *url.URL, port string) string {
	if u.Port() != "" {
		port = u.Port()
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// heard fails on a connection that is gone already, as the next read does.
func (l *listener) heard() { _ = l.socket.SetReadDeadline(time.Now().Add(l.patience)) }

// ping answers: this is how the service knows that the server listens.
func (l *listener) ping(payload string) error {
	l.heard()
	_ = l.socket.WriteControl(websocket.PongMessage, []byte(payload), time.Now().Add(l.patience)) // as the next read sees
	return nil
}

var errEnough = errors.New("the loop was left")

// take takes in one frame. It runs in the goroutine of the loop.
func (l *listener) take(text []byte) error {
	var frame struct {
		Type             NoticeType      `json:"type"`
		DeadAfterMS      int64           `json:"dead_after_ms"`
		ReconnectAfterMS int64           `json:"reconnect_after_ms"`
		Seq              uint64          `json:"seq"`
		TS               time.Time       `json:"ts"`
		Data             json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(text, &frame); err != nil {
		return fmt.Errorf("read a frame: %w", err)
	}
	switch {
	case frame.Type == "hello" && frame.DeadAfterMS > 0:
		l.patience = time.Duration(frame.DeadAfterMS) * time.Millisecond
	case frame.Type == "bye":
		l.wait = time.Duration(frame.ReconnectAfterMS) * time.Millisecond
	}
	if frame.Seq == 0 && frame.Type != OnSync || frame.Seq <= l.after && frame.Type != OnSync {
		return nil // a control frame, or a notice that was told before
	}
	n := Notice{Seq: frame.Seq, At: frame.TS, Type: frame.Type, Data: frame.Data}
	if err := json.Unmarshal(frame.Data, &n.NoticeData); err != nil {
		return fmt.Errorf("read notice %s: %w", frame.Type, err)
	}
	if n.Type == OnSync {
		n.StartData = &StartData{}
		if err := json.Unmarshal(frame.Data, n.StartData); err != nil {
			return fmt.Errorf("read notice %s: %w", frame.Type, err)
		}
	}
	l.after = n.Seq
	if !l.yield(n, nil) {
		l.enough = true
		return errEnough
	}
	return nil
}
