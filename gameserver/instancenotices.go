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

// NoticeType is the type of a notice.
type NoticeType string

// The types of notices, with the fields of a Notice that they set in addition to Seq, At, Type and Data. A later service may have more
// types; ignore unknown ones.
const (
	// OnSync: StartData is the state of the game. It comes first, and again if the server has missed more notices than the
	// service keeps. Its Seq is that of the last notice.
	OnSync NoticeType = "OnSync"

	OnPlayersAdded            NoticeType = "OnPlayersAdded"            // Players: at first all players of the game, later new ones
	OnPlayerLeft              NoticeType = "OnPlayerLeft"              // PlayerID, Reason
	OnPlayerDeclinedReconnect NoticeType = "OnPlayerDeclinedReconnect" // PlayerID; OnPlayerLeft follows
	OnPlayerReconnecting      NoticeType = "OnPlayerReconnecting"      // PlayerID, Attempt, PlayerSessionID: the player returns with this player session
	OnPlayerSessionSuperseded NoticeType = "OnPlayerSessionSuperseded" // PlayerID, Attempt, Old, New: the player continues on another device
	OnReconnectExpired        NoticeType = "OnReconnectExpired"        // PlayerID; OnPlayerLeft follows

	OnGameInstanceEnteredMatchmaking NoticeType = "OnGameInstanceEnteredMatchmaking" // MatchmakingID, Queue, Seats
	OnGameInstanceLeftMatchmaking    NoticeType = "OnGameInstanceLeftMatchmaking"    // MatchmakingID, Queue, Seats, Reason
)

// Notice is something that has happened to the players of the game. Its Type decides which fields are set.
type Notice struct {
	Seq  uint64          // from 1; rises by one with each notice of the game
	At   time.Time       // when it happened, by the service's clock
	Type NoticeType      // a service may know more of them
	Data json.RawMessage // the complete data of the notice, for fields that this package does not know

	StartData *StartData // of OnSync
	NoticeData
}

// NoticeData contains the fields of notices. The constants of NoticeType say which ones a notice sets; the others are zero.
type NoticeData struct {
	Players         []InstancePlayer `json:"players"`           // with their ids only
	PlayerID        string           `json:"player_id"`         // the player of the notice
	Reason          string           `json:"reason"`            // such as LEFT or RECONNECT_EXPIRED; a service may know more of them
	Attempt         int              `json:"attempt"`           // 1, and one more with each return
	PlayerSessionID string           `json:"player_session_id"` // with which the player will connect
	Old             string           `json:"old"`               // player session id that is no longer valid
	New             string           `json:"new"`               // player session id that replaces it
	MatchmakingID   string           `json:"matchmaking_id"`    // of the game's search
	Queue           string           `json:"queue"`             // of the game's search
	Seats           int              `json:"slots"`             // of the game's search; 0: one for each free seat
}

// Pauses between attempts to get notices: a random time up to the first value, doubled with each failure up to the second.
const (
	noticesPause    = 500 * time.Millisecond
	noticesPauseMax = 30 * time.Second
	noticesGreet    = 10 * time.Second // from the beginning of an attempt to the first frame

	noticesProtocol = "playerflow.partner.v1"
	noticeMax       = 16 << 20 // bytes of one message of the service; more ends the connection
)

// Close codes after which no more notices can come.
const (
	closeNotAllowed = 4401
	closeGameOver   = 4410
)

// Notices iterates over the notices of the game, each once and in order, beginning with an OnSync. It reconnects for as long as it takes.
// The loop ends when the game has ended, and with an error when ctx ends or the service no longer accepts this server
// (ErrUnauthorized). The body of the loop should take seconds at most, because the service gets no answer meanwhile. A game server need
// not follow the notices.
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
			g.server.log.Info("the notices are interrupted", "game_instance", g.ID, "error", err)
			pause := min(noticesPause<<min(failures, 10), noticesPauseMax)
			select {
			case <-time.After(l.wait + mathrand.N(pause)): // servers that lost the service at the same moment must not all reconnect at once
			case <-ctx.Done():
			}
		}
	}
}

// listener receives notices over one WebSocket after another.
type listener struct {
	instance *GameInstance
	socket   *websocket.Conn
	yield    func(Notice, error) bool
	after    uint64 // number of the last notice that was yielded
	enough   bool   // the loop was left
	patience time.Duration
	wait     time.Duration // before this server may reconnect, as the service has requested
}

// listen receives notices until the connection ends. The error is never nil.
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
	defer socket.Close()                                          // may already be closed
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

// dial connects as the calls do.
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

// heard extends the deadline for the next frame. It fails if the connection is closed, and so does the next read.
func (l *listener) heard() { _ = l.socket.SetReadDeadline(time.Now().Add(l.patience)) }

// ping answers a ping, which shows the service that the server is listening.
func (l *listener) ping(payload string) error {
	l.heard()
	_ = l.socket.WriteControl(websocket.PongMessage, []byte(payload), time.Now().Add(l.patience)) // the next read fails, too
	return nil
}

var errEnough = errors.New("the loop was left")

// take handles one frame. It runs in the goroutine of the loop.
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
		return nil // a control frame, or a notice that was yielded before
	}
	n := Notice{Seq: frame.Seq, At: frame.TS, Type: frame.Type, Data: frame.Data}
	// Fields that a later service sends in another form stay zero and are in Data. To reject the notice would block all later ones.
	_ = json.Unmarshal(frame.Data, &n.NoticeData)
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
