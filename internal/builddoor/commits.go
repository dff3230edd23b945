package builddoor

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/buildfiles"
)

// Bounds of commits.
const (
	commitWait = 20 * time.Second // for the answer; proxies close connections that are idle for a minute
	commitsMax = 16               // at a time
)

// commits are the pushed builds that are being recorded. In a cluster that takes until the files are copied; the client asks again until it is done.
type commits struct {
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu   sync.Mutex
	open map[string]*committing // by build
}

// committing is the commit of one build.
type committing struct {
	manifest buildfiles.Digest
	done     chan struct{}
	err      error // once done is closed
}

func newCommits() *commits {
	c := &commits{open: map[string]*committing{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// close cancels the open commits and waits for them.
func (c *commits) close() {
	c.mu.Lock()
	c.cancel()
	c.mu.Unlock()
	c.work.Wait()
}

// run runs a commit, or waits for a running one of the same files. done is false if it takes longer than a client should wait for the answer.
func (c *commits) run(build string, m *buildfiles.Manifest, commit func(context.Context) error) (done bool, err error) {
	text, err := m.Encode()
	if err != nil {
		return true, err
	}
	x, err := c.join(build, buildfiles.DigestOf(text), commit)
	if err != nil {
		return true, err
	}
	select {
	case <-x.done:
		return true, x.err
	case <-time.After(commitWait):
		return false, nil
	}
}

// join begins a commit or finds the open one.
func (c *commits) join(build string, manifest buildfiles.Digest, commit func(context.Context) error) (*committing, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.open[build]
	switch {
	case c.ctx.Err() != nil:
		return nil, fail(http.StatusServiceUnavailable, "ServiceUnavailable", "the service stops: try again")
	case x != nil && x.manifest != manifest:
		return nil, fail(http.StatusConflict, "OperationAborted", "other files are being recorded for build %s", build)
	case x != nil:
		return x, nil
	case len(c.open) >= commitsMax:
		return nil, slowDown()
	}
	x = &committing{manifest: manifest, done: make(chan struct{})}
	c.open[build] = x
	c.work.Go(func() {
		x.err = commit(c.ctx)
		c.mu.Lock()
		delete(c.open, build) // a repeat finds the build READY, or tries again
		c.mu.Unlock()
		close(x.done)
	})
	return x, nil
}
