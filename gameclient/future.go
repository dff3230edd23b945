package gameclient

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// Future is the asynchronous form of a call: the call is under way, and completes exactly once. Its result can be
// awaited, polled from a game loop, or observed by a callback, by any number of goroutines and in any mixture: all see
// the same.
type Future[T any] struct {
	cancel context.CancelFunc
	done   chan struct{}
	report func(string, ...any)

	mu        sync.Mutex
	watching  []func(T, error)
	completed bool

	value T // written before done is closed
	err   error
}

// errNoReturn is the result of work that ended its goroutine, as a test's FailNow does in a connector.
var errNoReturn = errors.New("gameclient: the work ended without a result")

// Start makes a Future of any work, for example of several calls in a row. It returns at once.
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
	watching := f.watching
	f.watching = nil
	close(f.done)
	f.mu.Unlock()
	for _, observe := range watching {
		f.tell(observe)
	}
}

// Done is closed when the call has completed.
func (f *Future[T]) Done() <-chan struct{} { return f.done }

// Poll tells, without waiting, whether the call has completed, and then its result.
func (f *Future[T]) Poll() (value T, completed bool, err error) {
	select {
	case <-f.done:
		return f.value, true, f.err
	default:
		return value, false, nil
	}
}

// Await waits for the result, for as long as ctx allows. The call itself goes on when ctx ends: Cancel stops it.
func (f *Future[T]) Await(ctx context.Context) (T, error) {
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("gameclient: await a call: %w", context.Cause(ctx))
	}
}

// OnComplete calls observe with the result, once, from another goroutine than this one; also when the call has completed
// already. Callbacks registered before run one after the other in their order. One that panics is logged and hurts
// nobody else.
func (f *Future[T]) OnComplete(observe func(T, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.completed {
		go f.tell(observe)
		return
	}
	f.watching = append(f.watching, observe)
}

func (f *Future[T]) tell(observe func(T, error)) {
	defer func() {
		if p := recover(); p != nil {
			f.report("a callback of a game client panicked", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	observe(f.value, f.err)
}

// Cancel cancels the context of the call, which then completes with an error soon, unless it was about to succeed.
func (f *Future[T]) Cancel() { f.cancel() }

// None is the result of a call that has none but its error.
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
