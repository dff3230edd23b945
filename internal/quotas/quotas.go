// Package quotas connects the quotas of the core (package quota) with the callers at the doors. A door puts the caller of a request into its context; the engine
// gives the holder to commands that create records, and counts, logs and completes refusals. All of the program reads the quotas in force from one Desk.
package quotas

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/rate"
)

// Caller is who makes a request.
type Caller interface {
	// Quota returns the name of the holder for whom the records that the request creates count: for all temporary credentials that of the access key, person or
	// machine that they were issued to. Empty: they have no holder.
	Quota() (holder string)
}

// Key is the key of a Caller in a context. Doors whose contexts have types of their own answer it themselves.
type Key struct{}

// With returns a context with the caller of a request.
func With(ctx context.Context, by Caller) context.Context { return context.WithValue(ctx, Key{}, by) }

// PlayersName is the holder of what players create, in settings, metrics and refusals.
const PlayersName = "players"

// Bounds of a Desk.
const (
	namesMax       = 8192 // holders whose names are remembered; others are shown as numbers, unless they are access keys
	refusalsLogged = 20   // lines in refusalsWithin
	refusalsWithin = 10 * time.Second
)

// Desk has the quotas in force, the names of holders, and the counts of refusals.
type Desk struct {
	live    quota.Quotas
	refused *prometheus.CounterVec
	lines   rate.Lines
	log     *slog.Logger

	names sync.Map // quota.Holder → string
	named atomic.Int64
}

// New makes a Desk with the quotas of a setting; see Parse.
func New(setting string, log *slog.Logger) (*Desk, error) {
	d := &Desk{
		log: log, lines: rate.Lines{Most: refusalsLogged, Period: refusalsWithin},
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "muster_quota_refused_total", Help: "Requests that were refused because their caller has reached its quota, by quota."}, []string{"quota"}),
	}
	for _, k := range quota.Kinds() {
		d.refused.WithLabelValues(k.String())
	}
	return d, d.Set(setting)
}

// Set puts the quotas of a setting into force. What holders have beyond them stays.
func (d *Desk) Set(setting string) error {
	table, err := Parse(setting)
	if err == nil {
		d.live.Set(table)
	}
	return err
}

// Live returns the quotas in force, which Set changes.
func (d *Desk) Live() *quota.Quotas { return &d.live }

// Refused has the numbers of refusals.
func (d *Desk) Refused() prometheus.Collector { return d.refused }

// HolderNamed returns the holder with a name.
func HolderNamed(name string) quota.Holder {
	switch name {
	case "":
		return 0
	case PlayersName:
		return quota.Players
	}
	return quota.HolderNamed(name)
}

// Hold gives the holder of a request to its command, if that creates records.
func (d *Desk) Hold(ctx context.Context, cmd kernel.Command) {
	if d == nil {
		return
	}
	taker, ok := kernel.Unwrapped(cmd).(quota.Taker)
	if !ok {
		return
	}
	by, ok := ctx.Value(Key{}).(Caller)
	if !ok {
		return
	}
	name := by.Quota()
	h := HolderNamed(name)
	if taker.Hold(h); h == 0 {
		return
	}
	d.remember(h, name)
}

func (d *Desk) remember(h quota.Holder, name string) {
	if _, known := d.names.Load(h); !known && d.named.Load() < namesMax {
		d.named.Add(1)
		d.names.Store(h, name)
	}
}

// Tell counts a refusal by a quota, and names the holder in it and in the log. Other errors stay as they are.
func (d *Desk) Tell(ctx context.Context, err error) error {
	if d == nil || err == nil {
		return err
	}
	refusal, ok := errors.AsType[*domain.Refusal](err)
	if !ok || refusal.Quota == "" {
		return err
	}
	d.refused.WithLabelValues(refusal.Quota).Inc()
	name := "unknown"
	if by, ok := ctx.Value(Key{}).(Caller); ok {
		name = by.Quota()
	}
	if write, leftOut := d.lines.Note(time.Now()); write {
		d.log.Warn("a caller has reached its quota: its request is refused", "quota", refusal.Quota, "holder", name, "reason", refusal.Detail, "left_out", leftOut)
	}
	told := *refusal
	told.Detail += "; the holder is " + name
	return &told
}

// Name returns the name of a holder that has made a request here.
func (d *Desk) Name(h quota.Holder) (name string, ok bool) {
	if h == quota.Players {
		return PlayersName, true
	}
	if x, ok := d.names.Load(h); ok {
		return x.(string), true
	}
	return "", false
}
