// Package warm runs short tasks on goroutines that have run others before.
//
// A goroutine begins with a stack of 2 KiB, which is copied to a larger one whenever a call needs more. To handle a message takes 8 to 16 KiB, so these copies
// cost a new goroutine as much as the rest of a small message. A goroutine that has handled one keeps its stack.
package warm

import "sync"

// idleMost is how many goroutines of a group wait for tasks at most: a burst leaves no more than some hundred KiB of stacks behind.
const idleMost = 64

// Group counts running tasks, as sync.WaitGroup does, and its Go lets goroutines carry out one task after the other. Unlike with sync.WaitGroup, a task may begin
// while Wait returns: a request that arrives while a door closes may still write to its connection. The zero value is ready for use.
type Group struct {
	mu      sync.Mutex
	running int           // tasks
	none    chan struct{} // closed when no task runs; nil: Wait is not waiting
	idle    []chan func() // of goroutines that wait for a task; the last one has waited least
	over    bool
}

// Add counts a task that the caller runs, until Done.
func (g *Group) Add() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running++
}

// Done ends a task that Add counted.
func (g *Group) Done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running--; g.running == 0 && g.none != nil {
		close(g.none)
		g.none = nil
	}
}

// Go runs task on a goroutine that waits for one, or else on a new one. A panic in task ends the process.
func (g *Group) Go(task func()) {
	g.mu.Lock()
	g.running++
	n := len(g.idle) - 1
	if n < 0 {
		g.mu.Unlock()
		go g.work(task)
		return
	}
	next := g.idle[n]
	g.idle = g.idle[:n]
	g.mu.Unlock()
	next <- task
}

// GoNew runs task on a new goroutine with a small stack: for tasks that wait for long, and of which there are many.
func (g *Group) GoNew(task func()) {
	g.Add()
	go g.run(task)
}

// Wait waits until no task runs, and ends the goroutines that wait for one. Later tasks run on goroutines of their own.
func (g *Group) Wait() {
	g.mu.Lock()
	if g.running > 0 {
		if g.none == nil {
			g.none = make(chan struct{})
		}
		none := g.none
		g.mu.Unlock()
		<-none
		g.mu.Lock()
	}
	defer g.mu.Unlock()
	g.over = true
	for _, next := range g.idle {
		close(next)
	}
	g.idle = nil
}

func (g *Group) work(task func()) {
	next := make(chan func(), 1)
	for task != nil {
		g.run(task)
		if !g.rest(next) {
			return
		}
		task = <-next // nil when the group is over
	}
}

func (g *Group) run(task func()) {
	defer g.Done()
	task()
}

// rest reports whether the goroutine may wait for a task.
func (g *Group) rest(next chan func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over || len(g.idle) == idleMost {
		return false
	}
	g.idle = append(g.idle, next)
	return true
}
