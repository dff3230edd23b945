package gameclient

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// Future is a call that runs in a goroutine of its own and completes exactly once. Any number of goroutines may await its result, poll
// it, or observe it with a callback; all get the same result.
type Future[T any] struct {
	cancel context.CancelFunc
	done   chan struct{}
	report func(string, ...any)

	mu        sync.Mutex
	observers []func(T, error)
	completed bool

	value T // written before done is closed
	err   error
}

// errNoReturn is the result of a function that ended its goroutine, as a test's FailNow does in a connector.
var errNoReturn = errors.New("gameclient: the function ended its goroutine without a result")

// Start runs work in a goroutine and returns a Future of its result at once. Work may be several calls in a row. Cancel cancels
// the context that work gets.
func Start[T any](ctx context.Context, c *Client, work func(context.Context) (T, error)) *Future[T] {
	ctx, cancel := context.WithCancel(ctx)
	f := &Future[T]{cancel: cancel, done: make(chan struct{}), report: c.options.Logger.Error}
	go func() {
		var value T
		err := errNoReturn
		defer func() {
			cancel()
			f.complete(value, err)
		}()
		value, err = work(ctx)
	}()
	return f
}

func (f *Future[T]) complete(value T, err error) {
	f.value, f.err = value, err
	f.mu.Lock()
	f.completed = true
	observers := f.observers
	f.observers = nil
	close(f.done)
	f.mu.Unlock()
	for _, observe := range observers {
		f.tell(observe)
	}
}

// Done is closed when the call has completed.
func (f *Future[T]) Done() <-chan struct{} { return f.done }

// Poll reports, without waiting, whether the call has completed, and its result if so.
func (f *Future[T]) Poll() (value T, completed bool, err error) {
	select {
	case <-f.done:
		return f.value, true, f.err
	default:
		return value, false, nil
	}
}

// Await waits for the result or the end of ctx. In the second case it returns the context's error and the call continues; Cancel stops
// the call.
func (f *Future[T]) Await(ctx context.Context) (T, error) {
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("gameclient: Await: %w", context.Cause(ctx))
	}
}

// OnComplete calls observe once with the result, on another goroutine, also if the call has already completed. Callbacks that were
// registered before completion run one after the other, in the order of registration. A panic in one is logged, and the others run.
func (f *Future[T]) OnComplete(observe func(T, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.completed {
		go f.tell(observe)
		return
	}
	f.observers = append(f.observers, observe)
}

func (f *Future[T]) tell(observe func(T, error)) {
	defer func() {
		if p := recover(); p != nil {
			f.report("a callback of a Future panicked", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	observe(f.value, f.err)
}

// Cancel cancels the context of the call. The call then completes soon, with an error unless it was about to succeed.
func (f *Future[T]) Cancel() { f.cancel() }

// None is the result of a call that returns only an error.
type None = struct{}

func errorOnly(err error) (None, error) { return None{}, err }

// CreateSessionAsync is CreateSession in its asynchronous form.
func (c *Client) CreateSessionAsync(ctx context.Context, r CreateSessionRequest) *Future[Session] {
	return Start(ctx, c, func(ctx context.Context) (Session, error) { return c.CreateSession(ctx, r) })
}

// CreateSessionOnQueueAsync is CreateSessionOnQueue in its asynchronous form.
func (c *Client) CreateSessionOnQueueAsync(ctx context.Context, r CreateSessionOnQueueRequest) *Future[Placement] {
	return Start(ctx, c, func(ctx context.Context) (Placement, error) { return c.CreateSessionOnQueue(ctx, r) })
}

// SearchSessionsAsync is SearchSessions in its asynchronous form.
func (c *Client) SearchSessionsAsync(ctx context.Context, r SearchSessionsRequest) *Future[SearchPage] {
	return Start(ctx, c, func(ctx context.Context) (SearchPage, error) { return c.SearchSessions(ctx, r) })
}

// JoinSessionAsync is JoinSession in its asynchronous form.
func (c *Client) JoinSessionAsync(ctx context.Context, r JoinSessionRequest) *Future[Seat] {
	return Start(ctx, c, func(ctx context.Context) (Seat, error) { return c.JoinSession(ctx, r) })
}

// AwaitActiveAsync is AwaitActive in its asynchronous form.
func (c *Client) AwaitActiveAsync(ctx context.Context, id string) *Future[Session] {
	return Start(ctx, c, func(ctx context.Context) (Session, error) { return c.AwaitActive(ctx, id) })
}

// ConnectAsync is Connect in its asynchronous form.
func (c *Client) ConnectAsync(ctx context.Context, seat Seat) *Future[None] {
	return Start(ctx, c, func(ctx context.Context) (None, error) { return errorOnly(c.Connect(ctx, seat)) })
}

// JoinFriendAsync is JoinFriend in its asynchronous form.
func (c *Client) JoinFriendAsync(ctx context.Context, r JoinFriendRequest) *Future[Seat] {
	return Start(ctx, c, func(ctx context.Context) (Seat, error) { return c.JoinFriend(ctx, r) })
}

// JoinOrCreateAsync is JoinOrCreate in its asynchronous form.
func (c *Client) JoinOrCreateAsync(ctx context.Context, r JoinOrCreateRequest) *Future[Seat] {
	return Start(ctx, c, func(ctx context.Context) (Seat, error) { return c.JoinOrCreate(ctx, r) })
}

// LeaveSessionAsync is LeaveSession in its asynchronous form.
func (c *Client) LeaveSessionAsync(ctx context.Context) *Future[None] {
	return Start(ctx, c, func(ctx context.Context) (None, error) { return errorOnly(c.LeaveSession(ctx)) })
}

// ReleaseAsync is Release in its asynchronous form.
func (c *Client) ReleaseAsync(ctx context.Context, playerSessionID string) *Future[bool] {
	return Start(ctx, c, func(ctx context.Context) (bool, error) { return c.Release(ctx, playerSessionID) })
}

// StartMatchmakingAsync is StartMatchmaking in its asynchronous form.
func (c *Client) StartMatchmakingAsync(ctx context.Context, r StartMatchmakingRequest) *Future[Ticket] {
	return Start(ctx, c, func(ctx context.Context) (Ticket, error) { return c.StartMatchmaking(ctx, r) })
}

// StopMatchmakingAsync is StopMatchmaking in its asynchronous form.
func (c *Client) StopMatchmakingAsync(ctx context.Context, ticketID string) *Future[None] {
	return Start(ctx, c, func(ctx context.Context) (None, error) { return errorOnly(c.StopMatchmaking(ctx, ticketID)) })
}

// AcceptMatchAsync is AcceptMatch in its asynchronous form.
func (c *Client) AcceptMatchAsync(ctx context.Context, r AcceptMatchRequest) *Future[None] {
	return Start(ctx, c, func(ctx context.Context) (None, error) { return errorOnly(c.AcceptMatch(ctx, r)) })
}
