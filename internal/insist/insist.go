// Package insist lets a door report what has happened, such as the loss of a connection, until the core knows of it: a refusal, because too many
// commands wait or a cluster has no leader, would undo nothing.
//
// After a mass disconnect many reports wait, perhaps while the disk stalls. Each takes some hundred bytes in a queue; a goroutine that waits with it
// would take 8 KiB.
package insist

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/warm"
)

const (
	// workersMost is how many reports of one door are made at once. The engine writes those that arrive together with one sync.
	workersMost = 64
	// pause is how long a goroutine whose report was refused makes no other.
	pause = time.Second
)

// Config is the part of a door in which reports are made.
type Config struct {
	Open    context.Context // when it ends, the door closes: reports that wait are dropped
	Running *warm.Group     // counts the goroutines
	Panics  *panics.Guard
	Door    string // the label under which Panics counts them
}

// Reports has the reports of one door that wait to be made.
type Reports struct {
	Config

	mu      sync.Mutex
	waiting []func() error
	workers int
}

// New returns the reports of a door.
func New(c Config) *Reports { return &Reports{Config: c} }

// Make makes a report soon, and again while it fails with an error that can pass: anything but a refusal, or a refusal as domain.Overloaded.
// Reports are made in any order.
func (r *Reports) Make(report func() error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Open.Err() != nil {
		return
	}
	r.waiting = append(r.waiting, report)
	if r.workers < workersMost {
		r.workers++
		r.Running.Go(r.work)
	}
}

func (r *Reports) work() {
	for report := r.next(); report != nil; report = r.next() {
		if !canPass(r.try(report)) {
			continue
		}
		r.mu.Lock()
		r.waiting = append(r.waiting, report)
		r.mu.Unlock()
		select {
		case <-time.After(pause):
		case <-r.Open.Done():
		}
	}
}

// next takes the report that has waited longest. It returns nil if the goroutine must end.
func (r *Reports) next() (report func() error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Open.Err() != nil {
		r.waiting = nil
	}
	if len(r.waiting) == 0 {
		r.workers--
		return nil
	}
	report, r.waiting[0] = r.waiting[0], nil
	r.waiting = r.waiting[1:]
	return report
}

func (r *Reports) try(report func() error) error {
	defer r.Panics.Confine(r.Door, nil)
	return report()
}

func canPass(err error) bool {
	refusal, refused := errors.AsType[*domain.Refusal](err)
	return err != nil && (!refused || refusal.Reason == domain.Overloaded)
}
