package gameclient

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// Pauses between attempts to get events: a random time up to the first value, doubled with each failure up to the second.
	streamPause    = 500 * time.Millisecond
	streamPauseMax = 30 * time.Second

	greetWithin = 10 * time.Second // from the beginning of an attempt to the first frame

	pollWait  = 20 * time.Second // of one long poll
	pollFor   = time.Minute      // then another attempt to open a stream
	pollAfter = 2                // consecutive failures to open a stream

	streamProtocol = "playerflow.v1"
	frameMax       = 16 << 20 // bytes of one message of the service; more ends the stream
)

// Close codes after which a client does not reconnect.
const (
	closeUnauthenticated = 4401
	closeReplaced        = 4409
	closeEnded           = 4410
)

// follow receives events until the login ends or Close is called. It reconnects without limit, so that a player returns after an outage
// of any length.
func (p *Player) follow(ctx context.Context) {
	defer p.stop() // ends keepLogin
	for failures := 0; ; failures++ {
		var greeted bool
		var wait time.Duration
		var err error
		if p.options.LongPoll || failures >= pollAfter {
			greeted, err = p.followPolls(ctx)
		} else {
			greeted, wait, err = p.followStream(ctx)
		}
		p.setOffline()
		over := endOf(err)
		if ctx.Err() != nil {
			over = ErrClosed
		}
		if over != nil {
			p.mu.Lock()
			p.over = over
			p.tellLocked()
			p.mu.Unlock()
			return
		}
		p.options.Logger.Info("the events are interrupted", "player", p.ID, "error", err)
		if greeted {
			failures = 0
		}
		_ = sleep(ctx, wait+jitter(pauseMax(failures))) // the next attempt fails if ctx has ended
	}
}

// pauseMax bounds the pause after consecutive failures. The pause is added to the time that a closing service announces, which is
// the same for all clients, so that they do not reconnect at the same moment.
func pauseMax(failures int) time.Duration { return min(streamPause<<min(failures, 10), streamPauseMax) }

// setOnline notes that the player receives events.
func (p *Player) setOnline() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.online {
		p.online = true
		p.tellLocked()
	}
}

// setOffline notes the end of an attempt.
func (p *Player) setOffline() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.online || !p.tried {
		p.online, p.tried = false, true
		p.tellLocked()
	}
}

// endOf returns the reason why no more events can arrive, or nil if another attempt may succeed.
func endOf(err error) error {
	if closed, ok := errors.AsType[*websocket.CloseError](err); ok {
		switch closed.Code {
		case closeReplaced:
			return ErrReplaced
		case closeUnauthenticated, closeEnded:
			return ErrLoggedOut
		}
	}
	if refused, ok := errors.AsType[*FlowError](err); ok {
		switch {
		case refused.Code == "SESSION_REPLACED":
			return ErrReplaced
		case refused.Action == ActionLogin:
			return ErrLoggedOut
		}
	}
	return nil
}

// followPolls receives events by long poll. It ends after pollFor, for another attempt with a stream.
func (p *Player) followPolls(ctx context.Context) (answered bool, err error) {
	for began := time.Now(); p.options.LongPoll || time.Since(began) < pollFor; {
		var answer struct {
			Events []json.RawMessage `json:"events"`
		}
		request := map[string]any{"after_seq": p.from(), "wait_ms": pollWait.Milliseconds()}
		if !answered {
			delete(request, "wait_ms") // the first answer shows at once whether polls work
		}
		if err := p.callOnce(ctx, "Session.PollEvents", "", request, &answer); err != nil {
			return answered, err
		}
		answered = true
		p.setOnline()
		for _, text := range answer.Events {
			e, err := readEvent(text)
			if err == nil {
				err = p.take(e)
			}
			if err != nil {
				return answered, err
			}
		}
		if seq, due := p.ackDue(); due {
			// If it is lost, the next one includes it.
			_ = p.callOnce(ctx, "Session.Ack", "", object{"seq": seq}, nil)
		}
	}
	return answered, errors.New("long polls end for another attempt to open a stream")
}

// stream is one WebSocket. Its reader does not trust any length in a frame.
type stream struct {
	player   *Player
	socket   *websocket.Conn
	patience time.Duration // closes the connection after this time without a frame
	greeted  bool
	wait     time.Duration // until the client may reconnect, as the service has asked
}

// followStream receives events by a WebSocket until it ends. The error is never nil.
func (p *Player) followStream(ctx context.Context) (greeted bool, wait time.Duration, err error) {
	u := p.address("stream")
	u.Scheme = "ws" + u.Scheme[len("http"):]
	u.RawQuery = "after_seq=" + strconv.FormatUint(p.from(), 10)
	dialer := websocket.Dialer{HandshakeTimeout: greetWithin, TLSClientConfig: p.tlsConfig(u.Hostname()), Subprotocols: []string{streamProtocol}}
	socket, response, err := dialer.DialContext(ctx, u.String(), http.Header{"Authorization": {"Bearer " + p.accessToken()}})
	if err != nil {
		if response != nil {
			err = fmt.Errorf("open the stream: status %d: %w", response.StatusCode, err)
		}
		return false, 0, err
	}
	defer socket.Close()                                          // may already be closed
	defer context.AfterFunc(ctx, func() { _ = socket.Close() })() // ends a read
	if got := socket.Subprotocol(); got != streamProtocol {
		return false, 0, fmt.Errorf("open the stream: the service speaks the subprotocol %.40q, want %s", got, streamProtocol)
	}
	s := &stream{player: p, socket: socket, patience: greetWithin}
	socket.SetReadLimit(frameMax)
	socket.SetPingHandler(s.ping)
	for err == nil {
		s.heard()
		var text []byte
		if _, text, err = socket.ReadMessage(); err == nil {
			err = s.receive(text)
		}
	}
	return s.greeted, s.wait, err
}

// heard extends the deadline for the next frame. It fails if the connection is closed, and so does the next read.
func (s *stream) heard() { _ = s.socket.SetReadDeadline(time.Now().Add(s.patience)) }

// ping answers a ping, which shows the service that the player is online.
func (s *stream) ping(payload string) error {
	s.heard()
	_ = s.socket.WriteControl(websocket.PongMessage, []byte(payload), time.Now().Add(s.patience)) // the next read fails, too
	return nil
}

// receive handles one frame.
func (s *stream) receive(text []byte) error {
	var control struct {
		Type             string `json:"type"`
		DeadAfterMS      int64  `json:"dead_after_ms"`
		ReconnectAfterMS int64  `json:"reconnect_after_ms"`
	}
	if err := json.Unmarshal(text, &control); err != nil {
		return fmt.Errorf("read a frame: %w", err)
	}
	switch control.Type {
	case "hello":
		s.greeted = true
		if control.DeadAfterMS > 0 {
			s.patience = time.Duration(control.DeadAfterMS) * time.Millisecond
		}
		s.player.setOnline()
		return nil
	case "bye":
		s.wait = time.Duration(control.ReconnectAfterMS) * time.Millisecond
		return nil
	case "ping", "pong", "ack", "error":
		return nil
	}
	e, err := readEvent(text)
	if err != nil {
		return fmt.Errorf("read event %s: %w", control.Type, err)
	}
	if e.Seq == 0 {
		return nil // a control frame of a later service
	}
	if err := s.player.take(e); err != nil {
		return err
	}
	if seq, due := s.player.ackDue(); due {
		// If it fails, so does the next read.
		_ = s.socket.SetWriteDeadline(time.Now().Add(s.patience))
		_ = s.socket.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"type":"ack","seq":%d}`, seq))
	}
	return nil
}

// tlsConfig returns the calls' TLS configuration for the stream.
func (p *Player) tlsConfig(host string) *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t, ok := p.options.HTTPClient.Transport.(*http.Transport); ok && t.TLSClientConfig != nil {
		config = t.TLSClientConfig.Clone()
	}
	config.ServerName = cmp.Or(config.ServerName, host)
	config.NextProtos = nil // no HTTP/2 under a WebSocket
	return config
}
