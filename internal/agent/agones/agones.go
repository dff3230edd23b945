//go:build !quick

package agones

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/rate"
)

// Process is the interface for one server process.
type Process struct {
	config  Config
	log     *slog.Logger
	adopted bool // an earlier agent served it
	cancel  context.CancelFunc
	done    sync.WaitGroup

	grpc *grpc.Server
	http *http.Server

	calls   rate.Bucket
	turns   rate.Bucket
	watches chan struct{} // a slot for each watch

	mu      sync.Mutex
	memory  Memory
	changed chan struct{} // closed and replaced at each change of the memory
	begun   time.Time     // when health began to be judged; zero: not yet
	pinged  time.Time     // the latest sign of health
	ended   bool          // End or Unhealthy was called
}

// Open serves the interface. If an earlier agent has left a state in the file, the process continues with it. Open fails if it cannot listen on a
// port.
func Open(config Config) (*Process, error) {
	memory, err := recall(config.File)
	adopted := err == nil
	if errors.Is(err, os.ErrNotExist) {
		memory, err = config.GameServer.begin(), nil
	}
	if err != nil {
		return nil, err
	}
	p := &Process{
		config: config, log: config.Log.With("process", config.ID), adopted: adopted, watches: make(chan struct{}, watchesMax), memory: memory, changed: make(chan struct{}),
	}
	grpcListener, err := listen(config.GRPCPort)
	if err != nil {
		return nil, err
	}
	httpListener, err := listen(config.HTTPPort)
	if err != nil {
		grpcListener.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.grpc = p.grpcServer()
	p.http = p.httpServer(ctx)
	p.done.Go(func() { p.grpc.Serve(grpcListener) })
	p.done.Go(func() { p.http.Serve(httpListener) })
	p.done.Go(func() { p.keep(ctx) })
	p.done.Go(func() { p.watchTime(ctx) })
	if config.Service != nil {
		p.done.Go(func() { newLink(p).run(ctx) })
	}
	switch memory.State { // the earlier agent did not get that far
	case Shutdown:
		p.end(config.End)
	case Unhealthy:
		p.end(config.Unhealthy)
	}
	return p, nil
}

// listen listens on loopback only, because the interface has no authentication: it takes every caller for the server process.
func listen(port int) (net.Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	return connlimit.AtMost(l, connectionsMax), nil
}

// Close ends the interface, but keeps the file for the next agent. It does nothing for a nil Process.
func (p *Process) Close() {
	if p == nil {
		return
	}
	p.cancel()
	p.grpc.Stop()
	p.http.Close()
	p.done.Wait()
}

// Remove closes the interface of a process that has ended, and removes the file.
func (p *Process) Remove() {
	if p == nil {
		return
	}
	p.Close()
	if err := os.Remove(p.config.File); err != nil && !errors.Is(err, os.ErrNotExist) {
		p.log.Warn("state of an Agones server cannot be removed", "error", err)
	}
}

// Busy reports whether the process has a game session, or has reserved or allocated itself. A busy process is not ended because there are too many,
// or because it was never ready. known is false for a nil Process, and for a game that does not call the SDK.
func (p *Process) Busy() (busy, known bool) {
	if p == nil {
		return false, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.memory.State == Reserved || p.memory.State == Allocated, p.memory.Used
}

// change lets f change the memory, and notifies the goroutines that follow it. After an error, nothing has changed.
func (p *Process) change(f func(m *Memory) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.memory.life()
	if err := f(&p.memory); err != nil {
		return err
	}
	p.memory.Version++
	if p.memory.life() != before {
		p.memory.Turn = p.memory.Version
	}
	close(p.changed)
	p.changed = make(chan struct{})
	return nil
}

// look returns a copy of the memory, and a channel that is closed when the memory has changed. Maps and slices in the copy must not be modified.
func (p *Process) look() (Memory, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.memory.clone(), p.changed
}

// end makes the agent end the process, once.
func (p *Process) end(how func()) {
	p.mu.Lock()
	first := !p.ended
	p.ended = true
	p.mu.Unlock()
	if first {
		go how()
	}
}
