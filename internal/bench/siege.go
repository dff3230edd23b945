package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/identity"
)

// attack is an attack on a service that honest clients use at the same time. Each worker calls do repeatedly; an error means that the
// service defended itself, and counts as a unit.
type attack struct {
	name, unit string
	serve      []string // further arguments of the service
	workers    func(sizes) int
	rate       func(sizes) float64       // a second; 0: as many as the machine allows
	pause      func(sizes) time.Duration // of a worker, after each unit; nil: none
	do         func(a *attacker, ctx context.Context, worker int) error
}

// attacks lists all attacks; their code is in siege_attacks.go.
var attacks = []attack{
	{name: "anonymous connections that stay", unit: "connections", workers: func(z sizes) int { return z.siegeConnections },
		pause: func(z sizes) time.Duration { return z.siegeReturn }, do: (*attacker).holdConnection},
	{name: "anonymous connections that reconnect at once", unit: "connections", workers: func(z sizes) int { return z.siegeConnections },
		do: (*attacker).holdConnection},
	{name: "malformed frames at each WebSocket door", unit: "frames", serve: []string{"--dev", "--player-flow"},
		workers: func(z sizes) int { return z.siegeFrameWorkers },
		rate:    func(z sizes) float64 { return z.siegeFrames * float64(len(webSocketDoors)) }, do: (*attacker).sendMalformedFrame},
	{name: "worst bodies with a client key, 64 at a time", unit: "bodies", workers: func(z sizes) int { return z.siegeBodies }, do: (*attacker).sendWorstBody},
	{name: "wrong sign-ins", unit: "attempts", workers: func(z sizes) int { return z.siegeSignInWorkers },
		rate: func(z sizes) float64 { return z.siegeSignIns }, do: (*attacker).signInWrongly},
}

// siege is the state of one attack.
type siege struct {
	bench  *bench
	server *server
	client identity.AccessKey // of the role client, which any player can extract from a game
	hall   *hall
	turn   atomic.Uint64
}

// siege measures honest calls without an attack, and during each attack.
func (b *bench) siege(ctx context.Context) error {
	for i := range attacks {
		if !strings.Contains(attacks[i].name, b.options.Attack) {
			continue
		}
		if err := b.underAttack(ctx, &attacks[i]); err != nil {
			return fmt.Errorf("%s: %w", attacks[i].name, err)
		}
	}
	return nil
}

func (b *bench) underAttack(ctx context.Context, a *attack) error {
	dir, err := b.freshDir("siege")
	if err != nil {
		return err
	}
	x := &siege{bench: b}
	if x.client, err = keyBeside(ctx, dir, identity.Client, "attacker"); err != nil {
		return err
	}
	arguments := append([]string{"serve", "--limit-locations", "10000000", perAddress, "0"}, a.serve...)
	if x.server, err = b.start(ctx, "the service", dir, arguments...); err != nil {
		return err
	}
	defer x.server.kill()
	setup, err := dial(ctx, x.server.addr, awsJSON, x.server.key)
	if err != nil {
		return err
	}
	defer setup.close()
	if x.hall, err = b.setUp(setup); err != nil {
		return err
	}

	quiet, err := x.honest(ctx, min(b.sizes.siegeLasts, 10*time.Second))
	if err != nil {
		return err
	}
	besiegers, err := b.besiege(ctx, x.order(a))
	if err != nil {
		return err
	}
	defer besiegers.end()
	time.Sleep(b.sizes.siegeWarm)
	var besieged *honestRun
	before, used := besiegers.done(), besiegers.processorTime()
	err = b.profileWhile(ctx, x.server, "siege", func() error {
		besieged, err = x.honest(ctx, b.sizes.siegeLasts)
		return err
	})
	if err != nil {
		return err
	}
	took := besieged.took.Seconds()
	reached, share := float64(besiegers.done()-before)/took, (besiegers.processorTime()-used).Seconds()/took
	descriptors, resident, peak := x.server.descriptors(), x.server.resident(), x.server.peak()
	if err := besiegers.end(); err != nil {
		return err
	}
	b.table.addLoad("honest calls, no attack", "calls", 1, &quiet.measured, 0)
	b.table.addLoad("honest calls under "+a.name, "calls", 1, &besieged.measured, 0)
	b.table.addFact(a.name+": done a second", "–", "%s %s", thousands(int64(reached)), a.unit)
	b.table.addFact(a.name+": honest calls lost", "0", "%d of %d", besieged.lost, besieged.units+besieged.lost)
	b.table.addFact(a.name+": p50 and p99 of honest calls", "p50 below 5 ms", "%s, %s", milliseconds(besieged.latency.quantile(0.5)), milliseconds(besieged.latency.quantile(0.99)))
	b.table.addFact(a.name+": resident memory and descriptors of the service", "–", "%s (at most %s), %d", megabytes(resident), megabytes(peak), descriptors)
	b.progress("  %s: %.0f %s a second on %.2f processors; honest: %s, lost %d; service: %s resident, at most %s, %d descriptors",
		a.name, reached, a.unit, share, besieged, besieged.lost, megabytes(resident), megabytes(peak), descriptors)
	return nil
}

// order makes the order for the attackers' process.
func (x *siege) order(a *attack) *attackOrder {
	z := x.bench.sizes
	o := &attackOrder{
		Attack: a.name, Address: x.server.addr, Key: x.client, Fleet: x.hall.fleet, Token: x.hall.token,
		Workers: a.workers(z), Lasts: z.siegeWarm + z.siegeLasts,
	}
	if a.rate != nil {
		o.Rate = a.rate(z)
	}
	if a.pause != nil {
		o.Pause = a.pause(z)
	}
	return o
}

// honestRun is the result of honest clients.
type honestRun struct {
	measured
	lost uint64
}

// honestFresh is after how many calls an honest client opens a new connection, which the service may refuse.
const honestFresh = 20

// honest makes calls at a steady rate, alternating reads and durable writes. A call whose first attempt fails counts as
// lost.
func (x *siege) honest(ctx context.Context, lasts time.Duration) (*honestRun, error) {
	const workers = 8
	run := &honestRun{}
	var lost atomic.Uint64
	each := make([]*conn, workers)
	made := make([]int, workers)
	defer func() {
		for _, c := range each {
			if c != nil {
				c.close()
			}
		}
	}()
	m, err := load{workers: workers, rate: x.bench.sizes.siegeHonest, measure: lasts}.run(ctx, x.server, func(w int) error {
		made[w]++
		if err := x.honestCall(ctx, &each[w], made[w]); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if n := lost.Add(1); n <= 3 {
				x.bench.progress("  an honest call is lost: %v", err)
			}
			if each[w] != nil {
				each[w].close()
				each[w] = nil
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	run.measured, run.lost = *m, lost.Load()
	run.units -= min(run.units, run.lost)
	return run, nil
}

func (x *siege) honestCall(ctx context.Context, c **conn, n int) (err error) {
	if *c != nil && n%honestFresh == 0 {
		(*c).close()
		*c = nil
	}
	if *c == nil {
		if *c, err = dial(ctx, x.server.addr, rpcCBOR, x.server.key); err != nil {
			return err
		}
	}
	if err := (*c).tcp.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return err
	}
	if n%2 == 0 {
		_, err = (*c).call("ListFleets")
		return err
	}
	_, err = (*c).call("CreateLocation", member{name: "LocationName", text: "custom-" + strconv.FormatUint(x.turn.Add(1), 10)})
	return err
}

// descriptors returns the number of open descriptors of the process; 0 where the system does not report it.
func (s *server) descriptors() int {
	open, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(s.process.Pid), "fd"))
	if err != nil {
		return 0
	}
	return len(open)
}
