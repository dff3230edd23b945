package bench

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/linkclient"
)

// idle measures the memory of each of many idle game servers, plain and with TLS, and how long all take to reconnect after the service
// was killed.
func (b *bench) idle(ctx context.Context) error {
	for _, way := range []string{"ws", "wss", "wss-hybrid"} {
		if b.options.Part != "" && b.options.Part != way { // one name contains the other
			continue
		}
		if err := b.idleOver(ctx, way); err != nil {
			return fmt.Errorf("%s: %w", way, err)
		}
	}
	return nil
}

func (b *bench) idleOver(ctx context.Context, way string) error {
	scheme, _, hybrid := strings.Cut(way, "-")
	over := scheme
	if hybrid {
		over += " with a hybrid key exchange"
	}
	dir, err := b.freshDir("idle")
	if err != nil {
		return err
	}
	// Development mode provides a certificate; for a game server it does not differ otherwise.
	arguments := []string{"serve", "--dev"}
	s, err := b.start(ctx, "the service", dir, arguments...)
	if err != nil {
		return err
	}
	defer func() { s.kill() }()
	c, err := dial(ctx, s.addr, awsJSON, s.key)
	if err != nil {
		return err
	}
	defer c.close()
	h, err := b.setUp(c)
	if err != nil {
		return err
	}
	n := b.sizes.idleServers
	before := s.resident()
	crowd := newCrowd(h, scheme+"://"+s.addr, n)
	if hybrid {
		crowd.exchange = nil
	}
	defer crowd.close()
	began := time.Now()
	if err := crowd.connect(ctx); err != nil {
		return err
	}
	b.progress("  %d game servers connected over %s in %s", n, over, time.Since(began).Round(time.Millisecond))
	time.Sleep(b.sizes.idleSettle) // long enough for the service to become idle and return memory
	resident := s.resident() - before
	if err := b.profileHeap(ctx, s, "idle-"+way); err != nil {
		return err
	}
	b.table.addFact(fmt.Sprintf("idle game server over %s: resident memory for each of %s", over, thousands(int64(n))), "20 KiB", "%.1f KiB", float64(resident)/float64(n)/1024)

	s.kill()
	if err := crowd.waitFor(ctx, 0); err != nil {
		return err
	}
	down, own, machine := time.Now(), processorTime(nil), machineTime()
	address := s.addr
	if s, err = b.start(ctx, "the service", dir, append(arguments, "--listen", address)...); err != nil {
		return err
	}
	ready := time.Since(down)
	var back, used, others time.Duration
	err = b.profileWhile(ctx, s, "idle-"+way+"-return", func() error {
		err := crowd.waitFor(ctx, n)
		back, used, own = time.Since(down), processorTime(s), processorTime(nil)-own
		others = max(0, machineTime()-machine-used-own)
		return err
	})
	if err != nil {
		return err
	}
	b.progress("  killed and started again: ready after %s, all back after %s; processor time: service %s, load %s, others %s",
		ready.Round(time.Millisecond), back.Round(time.Millisecond), used, own, others)
	b.table.addFact(fmt.Sprintf("%s game servers over %s, trying every second: all back after the start", thousands(int64(n)), over), "8 s",
		"%.1f s (ready after %.1f s)", back.Seconds(), ready.Seconds())
	return nil
}

// crowd has many game servers that try each second to reconnect after a loss.
type crowd struct {
	hall     *hall
	urls     []string // each attempt after a loss uses the next one
	exchange []tls.CurveID

	connected atomic.Int64
	lost      atomic.Int64 // connections
	stopped   chan struct{}
	returning sync.WaitGroup

	mu      sync.Mutex
	clients []*linkclient.Client
}

const tryAgain = time.Second

// classic has the key exchanges that clients with OpenSSL before 3.5 offer, with which a C++ game server may be built. OpenSSL since 3.5 and Go since 1.24 also
// offer a hybrid with ML-KEM, which the service uses if offered; nil is Go's own choice.
var classic = []tls.CurveID{tls.X25519, tls.CurveP256}

func newCrowd(h *hall, url string, n int) *crowd {
	return &crowd{hall: h, urls: []string{url}, exchange: classic, stopped: make(chan struct{}), clients: make([]*linkclient.Client, n)}
}

func (c *crowd) connect(ctx context.Context) error {
	return inParallel(len(c.clients), connecting, func(i int) error {
		if err := c.dial(ctx, i, 0); err != nil {
			return err
		}
		if err := c.clients[i].Activate(ctx, 10_000+i%50_000); err != nil {
			return err
		}
		return c.clients[i].Heartbeat(ctx, true)
	})
}

func (c *crowd) dial(ctx context.Context, i, attempt int) error {
	g := &gameServer{}
	o := c.hall.options(c.urls[attempt%len(c.urls)], i, g)
	o.TLS = &tls.Config{InsecureSkipVerify: true, CurvePreferences: c.exchange} // as the SDKs for C++ and Unreal do; the load has no secrets
	o.OnClose = func(*linkclient.Client, error) {
		c.connected.Add(-1)
		c.lost.Add(1)
		c.comeBack(i, attempt)
	}
	client, err := linkclient.Dial(ctx, o)
	if err != nil {
		return err
	}
	g.client = client
	c.connected.Add(1)
	c.mu.Lock()
	c.clients[i] = client
	c.mu.Unlock()
	return nil
}

// comeBack reconnects: it tries at once and then every second.
func (c *crowd) comeBack(i, attempt int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.stopped:
		return
	default:
	}
	c.returning.Go(func() {
		for {
			attempt++
			if c.dial(context.Background(), i, attempt) == nil {
				return
			}
			select {
			case <-time.After(tryAgain):
			case <-c.stopped:
				return
			}
		}
	})
}

// waitFor waits until n game servers are connected.
func (c *crowd) waitFor(ctx context.Context, n int) error {
	return waitUntil(ctx, func() string {
		return fmt.Sprintf("%d of %d game servers are connected, wanted %d", c.connected.Load(), len(c.clients), n)
	}, func() (bool, error) { return c.connected.Load() == int64(n), nil })
}

// close closes all connections and waits until no game server tries to reconnect.
func (c *crowd) close() {
	c.mu.Lock()
	close(c.stopped)
	c.mu.Unlock()
	c.returning.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, client := range c.clients {
		if client != nil {
			client.Drop()
		}
	}
}
