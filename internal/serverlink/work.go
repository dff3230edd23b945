package serverlink

import (
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/steady"
)

// tasksMax is how many requests of one connection may be queued, and waitingMax their total size in bytes. Further requests are answered with
// 429.
const (
	tasksMax   = 1024
	waitingMax = 4 * messageMax
)

// task is one unit of work of a link, in the order in which its messages arrived: a request to execute, or work of the door itself.
type task struct {
	request *request
	own     func(*link)
}

// receive handles a request, and reports whether it is kept for later. It never blocks, so that pongs are sent regardless of the cost of
// requests.
func (l *link) receive(r *request, now time.Time) (kept bool) {
	s := l.process.server
	s.counters.requests.Add(1)
	switch r.action {
	case pushCreateGameSession, pushUpdateGameSession, pushTerminateProcess, pushRefreshConnection:
		s.counters.garbage.Add(1) // an SDK would take an answer with such an Action for the push
		return false
	}
	class, known := rateOf(r.action)
	switch {
	case r.fault != "":
		l.fail(r, 400, r.fault)
	case !known:
		l.fail(r, 400, fmt.Sprintf("unknown action %.100q", r.action))
	case !l.process.buckets[class].Take(s.config.Rates.of(class), steady.Nanos(now)):
		s.counters.throttled.Add(1)
		l.fail(r, 429, "too many "+r.action+" requests of this process; send again later")
	case r.action == actHeartbeatServerProcess && !l.requested():
		began := time.Now()
		l.heartbeat(r)
		s.calls.Done(r.action, callstats.OK, began)
	default:
		if l.enqueue(r) {
			return true
		}
		s.counters.throttled.Add(1)
		l.fail(r, 429, fmt.Sprintf("%d requests of this connection, or %d bytes of them, are waiting; send again later", tasksMax, waitingMax))
	}
	return false
}

// rateOf returns the rate that applies to an action, and whether the action exists.
func rateOf(action string) (rateClass, bool) {
	switch action {
	case actHeartbeatServerProcess:
		return heartbeatRate, true
	case actAcceptPlayerSession, actRemovePlayerSession:
		return playerRate, true
	case actDescribePlayerSessions, actGetComputeCertificate, actGetFleetRoleCredentials:
		return readRate, true
	case actActivateServerProcess, actActivateGameSession, actUpdatePlayerSessionCreationPolicy, actStartMatchBackfill,
		actStopMatchBackfill, actTerminateServerProcess:
		return lifecycleRate, true
	}
	return 0, false
}

// requested reports whether a request is queued or being executed: a message that is handled at once would overtake it. It may overtake tasks of the door, which
// can wait for the journal while the process seems silent.
func (l *link) requested() bool {
	l.work.Lock()
	defer l.work.Unlock()
	return l.work.requests > 0
}

// busy reports whether any task is queued or being executed.
func (l *link) busy() bool {
	l.work.Lock()
	defer l.work.Unlock()
	return l.work.busy
}

// enqueue adds a request, unless too many are queued.
func (l *link) enqueue(r *request) bool {
	l.work.Lock()
	defer l.work.Unlock()
	if len(l.work.tasks) >= tasksMax || l.work.bytes+r.bytes > waitingMax {
		return false
	}
	l.work.bytes += r.bytes
	l.work.requests++
	l.addTask(task{request: r})
	return true
}

// enqueueOwn adds a task of the door itself. It has no bound, because these tasks are few by nature.
func (l *link) enqueueOwn(do func(*link)) {
	l.work.Lock()
	defer l.work.Unlock()
	l.addTask(task{own: do})
}

// addTask adds a task, and starts a goroutine if none is running: an idle link holds none. l.work must be locked.
func (l *link) addTask(t task) {
	l.work.tasks = append(l.work.tasks, t)
	if !l.work.busy {
		l.work.busy = true
		l.process.server.running.Go(l.workOff)
	}
}

func (l *link) workOff() {
	for {
		l.work.Lock()
		tasks := l.work.tasks
		l.work.tasks, l.work.bytes = nil, 0
		if len(tasks) == 0 {
			l.work.busy = false
			l.work.Unlock()
			return
		}
		l.work.Unlock()
		for i := range tasks {
			l.do(&tasks[i])
			if tasks[i].request != nil {
				l.work.Lock()
				l.work.requests--
				l.work.Unlock()
			}
		}
	}
}

// do executes one task. If it panics, the connection ends; the remaining tasks are still executed, because some concern the process.
func (l *link) do(t *task) {
	s := l.process.server
	defer s.config.Panics.Confine(panicDoor, l.drop)
	if t.own != nil {
		t.own(l)
	} else {
		l.handle(s.ctx, t.request)
		t.request.free()
	}
}

// fail answers a request with a failure, without blocking.
func (l *link) fail(r *request, status int, message string) {
	l.process.server.calls.Done(r.action, callstats.OfStatus(status), time.Now())
	b := newFrame()
	*b = appendFailure(*b, r, status, message)
	l.post(b, frames.Text)
}

// reply sends an answer on the request's connection or, if that is closed, on the current one. The SDKs match answers by RequestId only.
func (l *link) reply(b *[]byte) {
	to := l
	if !l.alive() {
		if current := l.process.currentLink(); current != nil {
			to = current
		}
	}
	to.send(b, frames.Text)
}

// heartbeat records a sign of life and answers 200 for any health. It passes only changes of the health to the core.
func (l *link) heartbeat(r *request) {
	p := l.process
	now := p.server.now()
	status := fleet.Unhealthy
	behind := l.busy() // a task of the door may change the health that the core has recorded
	p.mu.Lock()
	p.lastBeat = now
	if r.healthy {
		status = fleet.Healthy
		p.lastHealthy = now
	}
	p.reported = status
	passes := !p.passing && (p.ended || p.ready && p.health != status || behind) // else a task that waits passes it on
	p.passing = p.passing || passes
	p.mu.Unlock()

	b := newFrame()
	*b = appendOK(*b, r)
	l.post(b, frames.Text)
	if passes {
		l.enqueueOwn((*link).passHealth)
	}
}

// passHealth passes the health of the last heartbeat to the core, if it is a change.
func (l *link) passHealth() {
	p := l.process
	p.mu.Lock()
	p.passing = false
	status, ended := p.reported, p.ended
	p.mu.Unlock()
	if ended && l.evict() { // otherwise the heartbeat is of a new process with the same id
		return
	}
	if p.unlike(status) {
		p.reportHealth(status == fleet.Healthy)
	}
}
