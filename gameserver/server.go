package gameserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model"
	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/server"
)

// reportTimeout is how long the report of the end may take. The SDK itself waits 20 s for an answer.
const reportTimeout = 25 * time.Second

// reportAgain is the pause before a report without an answer is repeated.
const reportAgain = 200 * time.Millisecond

// Server is a server process of the service, with at most one game session. Its methods may be called from any goroutine.
type Server struct {
	options   Options
	callbacks []Callbacks
	sdk       SDK
	log       *slog.Logger

	session       context.Context // cancelled, with the reason, when the process ends
	cancelSession context.CancelCauseFunc
	ask           chan struct{} // closed when the process should end
	done          chan struct{} // closed when the process has ended

	updating sync.Mutex // held during the callbacks of an update: the SDK delivers each in a goroutine of its own

	mu          sync.Mutex
	stage       stage
	moved       chan struct{} // closed when the stage underWay is over; nil before the first one
	living      bool          // live runs, or has run: done will be closed
	asked       bool          // ask is closed
	hosted      *Session      // nil before OnCreateSessionBegin
	creating    chan struct{} // closed when OnCreateSessionBegin and the activation are over; nil before
	over        bool          // the end is being reported: all calls are refused
	terminateAt time.Time     // the service's deadline; zero: none
	failures    []error       // what Wait returns

	connections map[ConnectionID]*connection
	someCame    bool // a player was accepted
	someLeft    bool // the connection of an accepted player has closed
	overdue     bool // EmptyTimeout has passed
}

// stage is the progress of a Server.
type stage uint8

const (
	fresh     stage = iota
	underWay        // a call is bringing it to the next stage
	connected       // the service knows the process
	ready           // the service may send a game session
	gone            // given up, or ended
)

// New makes a Server. It does not connect, and reports wrong options only when Connect or Start does. It calls all sets of callbacks, in
// this order.
func New(o Options, c ...Callbacks) *Server {
	o = o.inForce(os.Getenv)
	s := &Server{
		options: o, callbacks: c,
		sdk:         o.SDK,
		log:         o.Logger.With("process", o.ProcessID),
		ask:         make(chan struct{}),
		done:        make(chan struct{}),
		connections: map[ConnectionID]*connection{},
	}
	if s.sdk == nil {
		s.sdk = official{o, s.log, &heartbeats{}}
	}
	s.session, s.cancelSession = context.WithCancelCause(context.WithValue(context.Background(), serverKey{}, s))
	return s
}

// Run is Start followed by Wait.
func (s *Server) Run(ctx context.Context) error {
	if err := s.Start(ctx); err != nil {
		return err
	}
	return s.Wait()
}

// Start is Connect followed by NotifyProcessReady.
func (s *Server) Start(ctx context.Context) error {
	return s.advance(ctx, "Start", fresh, ready, func() error {
		if err := s.connect(); err != nil {
			return err
		}
		return s.processReady()
	})
}

// Connect connects to the service. The service creates no game session before NotifyProcessReady. A Server can connect once, because a
// server process ends with its session. The official SDK allows one such Server in a program. Others fail with ErrAlreadyStarted, and tests use
// Fleet.ServerOptions of package mustertest. After an error of the service or of the options, a new Server may connect.
//
// A wrong option is an *OptionError. Connect returns it at once, and other permanent failures, too, with a *ConnectError that has the
// service's reason: ErrUnauthorized for a wrong token or key, ErrWrongEndpoint for a certificate that is not trusted, a host name that does
// not exist, or a server that is not a game session service. Connect tries for three minutes to reach a service, logs each attempt, and
// then fails with ErrUnavailable; a deadline of ctx ends that sooner. Only when ctx ends while the SDK itself connects, which cannot be stopped, the
// next Server fails with ErrAlreadyStarted until the SDK has given up.
func (s *Server) Connect(ctx context.Context) error {
	return s.advance(ctx, "Connect", fresh, connected, s.connect)
}

// NotifyProcessReady reports to the service that the game's port is open and it may create a game session. Callbacks may be called
// before it returns. When ctx ends later, the process ends as after End. It fails with ErrNotReady before Connect, and with
// ErrAlreadyStarted if it was called before.
func (s *Server) NotifyProcessReady(ctx context.Context) error {
	return s.advance(ctx, "NotifyProcessReady", connected, ready, s.processReady)
}

// advance brings the Server from one stage to another with blocking calls of the SDK.
func (s *Server) advance(ctx context.Context, call string, from, to stage, do func() error) error {
	if err := s.options.check(os.Getenv("GAMELIFT_COMPUTE_TYPE") == "CONTAINER"); err != nil {
		return err
	}
	if err := s.depart(call, from); err != nil {
		return err
	}
	reached, err := fresh, s.await(ctx, from)
	if err == nil {
		reached, err = s.carryOut(ctx, to, do)
	} else {
		s.abandon()
	}
	s.mu.Lock()
	s.stage, s.living = reached, reached == ready
	close(s.moved)
	s.mu.Unlock()
	if err != nil {
		return failed(call, err)
	}
	if reached == ready {
		s.log.Info("ready for a game session",
			"port", s.options.Port, "fleet", s.options.FleetID, "host", s.options.HostID)
		go s.live(ctx)
	}
	return nil
}

// await waits for the service before the SDK connects. It ends with ctx, and leaves the SDK to other Servers.
func (s *Server) await(ctx context.Context, from stage) error {
	if x, ok := s.sdk.(official); ok && from == fresh && x.options.canAsk() {
		return awaitService(ctx, x.options, x.log)
	}
	return nil
}

// carryOut makes a blocking call of the SDK and returns the stage that the Server has reached.
func (s *Server) carryOut(ctx context.Context, to stage, do func() error) (stage, error) {
	came := make(chan error, 1)
	go func() { came <- do() }()
	select {
	case err := <-came:
		if err != nil {
			s.abandon()
			return fresh, err
		}
		return to, nil
	case <-ctx.Done():
		// The SDK cannot be stopped. If it connects after all, the process ends at once, and has no game session until then.
		s.askEnd()
		s.cancelSession(ErrEnded)
		go func() {
			if <-came != nil {
				s.abandon()
				return
			}
			s.report()
			s.disconnect()
		}()
		return gone, fmt.Errorf("connect to %s: %w", s.options.WebSocketURL, ctx.Err())
	}
}

// depart leaves the stage from, or fails if the Server is in another one.
func (s *Server) depart(call string, from stage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stage == fresh && from == connected:
		return &Error{Call: call, Kind: ErrNotReady}
	case s.stage != from:
		return &Error{Call: call, Kind: ErrAlreadyStarted}
	}
	if x, ok := s.sdk.(official); ok && from == fresh && !x.begin() {
		return &Error{call, ErrAlreadyStarted, errSDKInUse}
	}
	s.stage, s.moved = underWay, make(chan struct{})
	return nil
}

func (s *Server) connect() error {
	o := s.options
	p := server.ServerParameters{
		WebSocketURL: o.WebSocketURL,
		ProcessID:    o.ProcessID,
		HostID:       o.HostID,
		FleetID:      o.FleetID,
		AuthToken:    o.AuthToken,
		AwsRegion:    o.Region,
		AccessKey:    o.AccessKey,
		SecretKey:    o.SecretKey,
		SessionToken: o.SessionToken,
	}
	if x, ok := s.sdk.(official); ok {
		return x.connect(p)
	}
	return s.sdk.InitSDK(p)
}

func (s *Server) processReady() error {
	return s.sdk.ProcessReady(server.ProcessParameters{
		OnStartGameSession:  s.onStart,
		OnUpdateGameSession: s.onUpdate,
		OnProcessTerminate:  s.onTerminate,
		OnHealthCheck:       s.onHealth,
		Port:                s.options.Port,
		LogParameters:       server.LogParameters{LogPaths: s.options.LogPaths},
	})
}

// abandon ends a failed attempt to connect.
func (s *Server) abandon() {
	s.disconnect()
	if x, ok := s.sdk.(official); ok {
		x.release()
	}
}

func (s *Server) disconnect() {
	if err := s.sdk.Destroy(); err != nil {
		s.log.Debug("close the connection", "error", err) // the process is over either way
	}
}

// Done is closed when the Server has reported the end and OnDestroySessionEnd has returned.
func (s *Server) Done() <-chan struct{} { return s.done }

// Wait waits for the end of the process, after Start has succeeded. It returns nil after an orderly end. Otherwise it returns the
// errors of OnCreateSessionBegin and OnDestroySessionBegin, and of calls to activate the session and to report the end.
func (s *Server) Wait() error {
	<-s.done
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.failures...)
}

// End ends a started process in an orderly way and waits for the end until ctx ends; the process ends in any case. A second call only waits.
// End returns the errors of Wait, ErrNotReady if the process never started, or ErrUnavailable if ctx ends first. It
// must not be called from a callback, because it waits for the callbacks: return an error there, or use a goroutine.
func (s *Server) End(ctx context.Context) error {
	s.askEnd()
	for {
		s.mu.Lock()
		if s.stage == connected { // it was never reported ready
			s.stage, s.living = gone, true
			go s.live(context.WithoutCancel(ctx))
		}
		living, starting, next := s.living, s.stage == underWay, s.done
		if !living {
			next = s.moved
		}
		s.mu.Unlock()
		if !living && !starting {
			return &Error{Call: "End", Kind: ErrNotReady}
		}
		select {
		case <-next:
			if living {
				return s.Wait()
			}
		case <-ctx.Done():
			return failed("End", ctx.Err())
		}
	}
}

func (s *Server) askEnd() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asked {
		s.asked = true
		close(s.ask)
	}
}

func (s *Server) fail(err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, err)
}

// Session returns the game session of this process, and whether there is one yet.
func (s *Server) Session() (Session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hosted == nil {
		return Session{}, false
	}
	return *s.hosted, true
}

// TerminationTime returns the time until which the service waits for the end of this process, and whether it has asked for the end.
func (s *Server) TerminationTime() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.terminateAt, !s.terminateAt.IsZero()
}

func (s *Server) onHealth() bool {
	healthy := true
	for _, c := range s.callbacks {
		if c.OnSessionHealthCheck != nil && !c.OnSessionHealthCheck(s.session) {
			healthy = false
		}
	}
	return healthy
}

// onStart runs in a goroutine of the SDK.
func (s *Server) onStart(gs model.GameSession) {
	hosted := sessionOf(gs)
	s.mu.Lock()
	if s.hosted != nil || s.asked {
		// A second session of this process, or one that crossed with its end. The service will time it out.
		s.mu.Unlock()
		s.log.Warn("ignored a game session: this process has one or is ending", "game_session", hosted.ID)
		return
	}
	s.hosted = &hosted
	s.creating = make(chan struct{})
	defer close(s.creating)
	s.mu.Unlock()

	s.log.Info("the service creates a game session", "game_session", hosted.ID, "players_max", hosted.MaxPlayers)
	var loading []error
	for _, c := range s.callbacks {
		if c.OnCreateSessionBegin != nil {
			loading = append(loading, c.OnCreateSessionBegin(s.session, hosted))
		}
	}
	if err := errors.Join(loading...); err != nil {
		s.fail(fmt.Errorf("gameserver: create session %s: %w", hosted.ID, err))
		s.askEnd()
		return
	}
	if s.session.Err() != nil {
		return // the process is ending: the activation would only let players in
	}
	if err := s.call(s.session, "ActivateGameSession", s.sdk.ActivateGameSession); err != nil {
		s.fail(err)
		s.askEnd()
		return
	}
	s.log.Info("game session active", "game_session", hosted.ID)
	if wait := s.options.EmptyTimeout; wait > 0 {
		time.AfterFunc(wait, s.endIfUnused)
	}
	for _, c := range s.callbacks {
		if c.OnCreateSessionEnd != nil {
			c.OnCreateSessionEnd(s.session)
		}
	}
}

// onTerminate runs in a goroutine of the SDK, possibly more than once.
func (s *Server) onTerminate() {
	seconds, err := s.sdk.GetTerminationTime()
	s.mu.Lock()
	if err == nil && s.terminateAt.IsZero() {
		s.terminateAt = time.Unix(seconds, 0)
	}
	at := s.terminateAt
	s.mu.Unlock()
	s.log.Info("the service ends this process", "until", at)
	s.askEnd()
}
