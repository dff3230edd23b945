package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/identity"
)

// attackOrder is the input of the attackers' process, as JSON.
type attackOrder struct {
	Attack  string
	Address string
	Key     identity.AccessKey // of the role client
	Fleet   string
	Token   string // of a compute in the fleet
	Workers int
	Rate    float64       // units a second, of all workers; 0: no limit
	Pause   time.Duration // of a worker, after each unit
	Lasts   time.Duration // how long the siege is expected to last
}

// attacker is the state of the attackers' process.
type attacker struct {
	order attackOrder
	began time.Time
	conns []*conn // of workers that keep one
	turn  atomic.Uint64
}

// elapsed returns which of a number of equal parts of the siege is running, from 0.
func (x *attacker) elapsed(parts int) int {
	return min(int(time.Since(x.began)*time.Duration(parts)/max(x.order.Lasts, 1)), parts-1)
}

const (
	// descriptorsKept is how many descriptors the attackers' process leaves to its files and to the runtime.
	descriptorsKept = 16

	// reportEvery is how often the attackers' process reports the number of units done.
	reportEvery = 50 * time.Millisecond
)

// Attack reads an order, attacks until its input ends, and regularly writes a line with the number of units done. It
// runs in its own process, so that the attackers do not share a scheduler, a garbage collector or descriptors with the
// honest clients.
func Attack(ctx context.Context, in io.Reader, out io.Writer) error {
	read := json.NewDecoder(in)
	x := &attacker{began: time.Now()}
	if err := read.Decode(&x.order); err != nil {
		return fmt.Errorf("read the attack: %w", err)
	}
	i := slices.IndexFunc(attacks, func(a attack) bool { return a.name == x.order.Attack })
	if i < 0 {
		return fmt.Errorf("attack %q is unknown", x.order.Attack)
	}
	workers := max(1, min(x.order.Workers, connlimit.Descriptors()-descriptorsKept))
	x.conns = make([]*conn, workers)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, in) // until the parent closes it or is gone
		stop()
	}()
	var done atomic.Int64
	var running sync.WaitGroup
	for w := range workers {
		running.Go(func() {
			pace := newPace(load{workers: workers, rate: x.order.Rate}, x.began, w)
			for ctx.Err() == nil {
				pace.next()
				_ = attacks[i].do(x, ctx, w) // however the service defends itself
				done.Add(1)
				if x.order.Pause > 0 {
					wait(ctx, x.order.Pause)
				}
			}
		})
	}
	report := time.NewTicker(reportEvery)
	defer report.Stop()
	for ctx.Err() == nil {
		if _, err := fmt.Fprintln(out, done.Load()); err != nil {
			stop()
		}
		select {
		case <-report.C:
		case <-ctx.Done():
		}
	}
	running.Wait()
	for _, c := range x.conns {
		if c != nil {
			c.close()
		}
	}
	return nil
}

// besiegers is the parent's view of the attackers' process.
type besiegers struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	units atomic.Int64
	read  chan struct{} // closed when its output has ended
	ended bool
}

// niceness makes the attackers yield to the service and the honest clients, as attackers on machines of their own would
// not take their processors.
const niceness = "19"

// besiege starts the attackers' process.
func (b *bench) besiege(ctx context.Context, order *attackOrder) (*besiegers, error) {
	text, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	command := []string{b.options.Binary, "bench-attack"}
	if nice, err := exec.LookPath("nice"); err == nil {
		command = append([]string{nice, "-n", niceness}, command...)
	}
	g := &besiegers{cmd: exec.CommandContext(ctx, command[0], command[1:]...), read: make(chan struct{})}
	g.cmd.Stderr = os.Stderr
	if g.in, err = g.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := g.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the attackers: %w", err)
	}
	go func() {
		defer close(g.read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if n, err := strconv.ParseInt(lines.Text(), 10, 64); err == nil {
				g.units.Store(n)
			}
		}
	}()
	if _, err := g.in.Write(text); err != nil {
		return nil, errors.Join(fmt.Errorf("tell the attackers what to do: %w", err), g.end())
	}
	return g, nil
}

// done returns how many units the attackers have done.
func (g *besiegers) done() int64 { return g.units.Load() }

// processorTime returns the processor time of the attackers so far.
func (g *besiegers) processorTime() time.Duration {
	return processorTimeOf(strconv.Itoa(g.cmd.Process.Pid))
}

// end stops the attackers and waits until they are gone. It may be called twice.
func (g *besiegers) end() error {
	if g.ended {
		return nil
	}
	g.ended = true
	_ = g.in.Close() // it may have ended by itself, which Wait reports
	<-g.read
	if err := g.cmd.Wait(); err != nil {
		return fmt.Errorf("the attackers: %w", err)
	}
	return nil
}
